#!/usr/bin/env python3
"""Trains a recipe of hsm's in PyTorch with another output layer, for its perplexities beside hsm's.

  bench/train_torch.py configs/ptb-small.json --head full
  bench/train_torch.py configs/ptb-medium.json --head full --set train.epochs=5

reads the same configuration (LSTM layers, sizes, dropout, plain SGD, windows, clipping, epoch decay) and prints,
after each epoch, training speed and the perplexities of validation and test text: one stream, state carried along,
every token but those outside the vocabulary (hsm score's "without OOVs"). A setting that it cannot follow is refused,
but that train.calibrate is passed over: these are the logits as trained.
"""

import argparse
import itertools
import math
import pathlib
import time

import torch
from peer_torch import HEADS, LanguageModel, descend, detached, read_tokens, streams_of, word_ids
from recipe import learning_rate, read_recipe


def windows(streams, length):
    """Inputs and targets, [time, stream] each."""
    last = streams.shape[1] - 1
    for at in range(0, last, length):
        end = min(at + length, last)
        yield streams[:, at:end].t().long(), streams[:, at + 1 : end + 1].t().long()


def train_epoch(model, streams, settings, rate):
    model.train()
    state = None
    for inputs, targets in windows(streams, settings["bptt"]):
        hidden, state = model(inputs, detached(state))
        loss = model.loss(hidden, targets)
        if settings["loss_reduction"] == "sum_over_time":
            loss = loss * len(inputs)
        descend(model, loss, rate, settings["clip_norm"])


def perplexity(model, tokens, length, unknown):
    """Of all tokens but `unknown` (negative: none is)."""
    model.eval()
    state, total, count = None, 0.0, 0
    with torch.no_grad():
        for inputs, targets in windows(tokens[None], length):
            hidden, state = model(inputs, state)
            known = targets != unknown
            if known.any():
                total += model.loss(hidden[known], targets[known]).item() * known.sum().item()
                count += known.sum().item()
    return math.exp(total / count)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", type=pathlib.Path)
    parser.add_argument("--head", choices=HEADS, default="full")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="as hsm train's")
    options = parser.parse_args()
    config = read_recipe(options.config, options.set)
    settings = config["train"]
    torch.set_num_threads(options.threads)
    torch.manual_seed(settings["seed"])

    texts = {name: options.config.parent / path for name, path in config["data"].items()}
    ids = word_ids(texts["train"])
    unknown = -1 if "<unk>" in ids else ids.setdefault("<unk>", len(ids))
    tokens = {name: read_tokens(path, ids) for name, path in texts.items()}
    streams = streams_of(tokens["train"], settings["batch"])

    shape = config["model"]
    model = LanguageModel(
        len(ids), options.head, shape["hidden"], shape["layers"], shape.get("dropout"), shape["init_range"]
    )
    training = 0.0
    for epoch in itertools.count(1):
        rate = learning_rate(settings, epoch)
        start = time.monotonic()
        train_epoch(model, streams, settings, rate)
        took = time.monotonic() - start
        training += took
        results = "  ".join(
            f"{name} perplexity {perplexity(model, tokens[name], settings['bptt'], unknown):.2f}"
            for name in ("valid", "test")
            if name in tokens
        )
        print(
            f"epoch {epoch}/{settings['epochs']}  learning rate {rate:g}  {streams.numel() / took:,.0f} words/s  "
            f"{training:.0f} s of training  {results}",
            flush=True,
        )
        if epoch >= settings["epochs"]:
            break


if __name__ == "__main__":
    main()
