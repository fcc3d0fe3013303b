#!/usr/bin/env python3
"""Writes a text of made-up words whose frequencies follow Zipf's law: the word of rank r with probability ~ 1 / r.

For measuring how time and memory grow with the size of text and vocabulary. The same arguments give the same text.
Needs numpy.
"""

import argparse
import sys

import numpy

BLOCK = 1 << 20  # tokens drawn at a time
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def spell(rank):
    """A short word for a small rank, as in a language; all are different."""
    word = ""
    rank += 1
    while rank:
        rank, letter = divmod(rank - 1, len(LETTERS))
        word = LETTERS[letter] + word
    return word


def write(tokens, types, sentence, seed, out):
    random = numpy.random.default_rng(seed)
    words = numpy.array([spell(rank) for rank in range(types)], dtype=object)
    cumulative = numpy.cumsum(1.0 / numpy.arange(1, types + 1))
    cumulative /= cumulative[-1]
    seen = numpy.zeros(types, dtype=bool)
    left = tokens
    while left > 0:
        drawn = numpy.searchsorted(cumulative, random.random(min(BLOCK, left)))
        seen[drawn] = True
        left -= len(drawn)
        if left == 0:  # every type is there, and the number of tokens is as asked
            missing = numpy.flatnonzero(~seen)
            drawn[len(drawn) - min(len(missing), len(drawn)):] = missing[: len(drawn)]
        for at in range(0, len(drawn), sentence):
            out.write(" ".join(words[drawn[at : at + sentence]]))
            out.write("\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=100_000_000, help="without ends of sentences")
    parser.add_argument("--types", type=int, default=1_000_000)
    parser.add_argument("--sentence", type=int, default=24, help="words a line")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    write(options.tokens, options.types, options.sentence, options.seed, sys.stdout)


if __name__ == "__main__":
    main()
