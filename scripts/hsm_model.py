#!/usr/bin/env python3
"""Reads a model that `hsm train` has saved, with numpy alone, and scores text with it.

    hsm_model.py DIR < text            for each line its log-probability (natural logarithm)
    hsm_model.py DIR --words < text    for each line its words' log-probabilities, as
                                       `hsm score --by word --format jsonl` prints them

Needs the packages numpy and safetensors. It is meant to be read and copied: docs/file-formats.md describes the
files, and the class below is all that it takes to use them.
"""

import argparse
import json
import re
import sys
from pathlib import Path

import numpy as np
from safetensors import safe_open


def sigmoid(x):
    return 0.5 * (1 + np.tanh(0.5 * x))


def log_softmax(logits):
    shifted = logits.astype(np.float64) - logits.max()
    return shifted - np.log(np.exp(shifted).sum())


class Model:
    def __init__(self, directory):
        directory = Path(directory)
        self.config = json.loads((directory / "config.json").read_text(encoding="utf-8"))
        lines = (directory / "vocabulary.txt").read_text(encoding="utf-8").split("\n")
        self.words = [line.split("\t")[0] for line in lines if line]  # a word's place is its id
        self.ids = {word: i for i, word in enumerate(self.words)}
        with safe_open(directory / "model.safetensors", framework="numpy") as file:
            self.cell = file.metadata()["cell"]
            tensors = {name: file.get_tensor(name) for name in file.keys()}

        self.layers = []  # (weight_ih, weight_hh, bias_ih, bias_hh), as in torch.nn.LSTM, GRU and RNN
        while f"rnn.weight_ih_l{len(self.layers)}" in tensors:
            names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            self.layers.append([tensors[f"rnn.{name}_l{len(self.layers)}"] for name in names])
        self.projection = tensors.get("projection.weight")

        # Rows of the word matrix: the shortlist, then cluster by cluster. A tied model reads words there, too.
        self.row_of_word = tensors["head.row_of_word"]
        self.cluster_offsets = tensors["head.cluster_offsets"]
        self.shortlist = self.cluster_offsets[0]
        self.word_weight, self.word_bias = tensors["head.word.weight"], tensors["head.word.bias"]
        self.embedding = tensors.get("embedding.weight", self.word_weight)
        # The root chooses among the words of the shortlist and the clusters.
        self.root_weight = np.concatenate([self.word_weight[: self.shortlist], tensors["head.cluster.weight"]])
        self.root_bias = np.concatenate([self.word_bias[: self.shortlist], tensors["head.cluster.bias"]])

    def start(self):
        """The state before any word: for each layer h and, for an LSTM, c."""
        count = 2 if self.cell == "lstm" else 1
        return [[np.zeros(weight_hh.shape[1], np.float32)] * count for _, weight_hh, _, _ in self.layers]

    def step(self, word, state):
        """Reads the word of this id; returns what the head reads, and the new state."""
        x = self.embedding[self.row_of_word[word]]
        new_state = []
        for (weight_ih, weight_hh, bias_ih, bias_hh), layer_state in zip(self.layers, state):
            layer_state = self.run_cell(weight_ih @ x + bias_ih, weight_hh @ layer_state[0] + bias_hh, layer_state)
            new_state.append(layer_state)
            x = layer_state[0]
        return (x if self.projection is None else self.projection @ x), new_state

    def run_cell(self, from_input, from_hidden, state):
        if self.cell == "lstm":
            i, f, g, o = np.split(from_input + from_hidden, 4)
            c = sigmoid(f) * state[1] + sigmoid(i) * np.tanh(g)
            return [sigmoid(o) * np.tanh(c), c]
        if self.cell == "gru":
            (r, z, n), (hidden_r, hidden_z, hidden_n) = np.split(from_input, 3), np.split(from_hidden, 3)
            n = np.tanh(n + sigmoid(r + hidden_r) * hidden_n)
            z = sigmoid(z + hidden_z)
            return [(1 - z) * n + z * state[0]]
        total = from_input + from_hidden
        return [np.tanh(total) if self.cell == "rnn_tanh" else np.maximum(total, 0)]

    def log_prob(self, head, word):
        """log P of a word: the root's part, and the part within its cluster (0 for a word of the shortlist)."""
        row = self.row_of_word[word]
        root = log_softmax(self.root_weight @ head + self.root_bias)
        if row < self.shortlist:
            return root[row], 0.0
        cluster = np.searchsorted(self.cluster_offsets, row, side="right") - 1
        leaves = slice(self.cluster_offsets[cluster], self.cluster_offsets[cluster + 1])
        within = log_softmax(self.word_weight[leaves] @ head + self.word_bias[leaves])
        return root[self.shortlist + cluster], within[row - leaves.start]

    def tokens(self, line):
        """The words of a line of text, without marks of its edges, and `</s>`."""
        if self.config["data"]["lowercase"]:
            line = "".join(character.lower()[0] for character in line)  # one for one, whatever stands around it
        tokens = [token for token in re.split("[ \t\n\v\f\r]+", line) if token]
        while tokens and tokens[0] in ("<s>", "</s>"):
            tokens.pop(0)
        while tokens and tokens[-1] in ("<s>", "</s>"):
            tokens.pop()
        return tokens + ["</s>"]

    def score(self, tokens, state):
        """Both parts of log P of each token, given those before it, and the state after them. A text begins after
        `</s>`, and so does each of its sentences. Words outside the vocabulary are `<unk>`."""
        parts = []
        previous = self.ids["</s>"]
        for token in tokens:
            head, state = self.step(previous, state)
            previous = self.ids.get(token, self.ids["<unk>"])
            parts.append(self.log_prob(head, previous))
        return parts, state


def main():
    parser = argparse.ArgumentParser(description="Log-probabilities of text, a sentence a line, from standard input.")
    parser.add_argument("directory", help="of a model that `hsm train` has saved")
    parser.add_argument("--words", action="store_true", help="print each word's, as JSON")
    parser.add_argument("--context", choices=["stream", "sentence"], help="default: as the model was trained")
    options = parser.parse_args()

    model = Model(options.directory)
    context = options.context or model.config["train"]["context"]
    state = model.start()
    for number, line in enumerate(sys.stdin.buffer, 1):
        tokens = model.tokens(line.decode("utf-8-sig" if number == 1 else "utf-8"))
        if len(tokens) == 1 and model.config["data"]["skip_blank_lines"]:
            continue
        parts, next_state = model.score(tokens, state)
        if context == "stream":
            state = next_state
        log_probs = [float(root + leaf) for root, leaf in parts]
        if options.words:
            roots = [float(root) for root, _ in parts]
            line_scores = {"line": number, "tokens": tokens, "logprobs": log_probs, "root_logprobs": roots}
            print(json.dumps(line_scores, ensure_ascii=False), flush=True)
        else:
            print(f"{sum(log_probs):.6f}", flush=True)


if __name__ == "__main__":
    main()
