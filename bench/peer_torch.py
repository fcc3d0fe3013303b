"""What people train in PyTorch today, to measure hsm beside it: nn.LSTM with a softmax of one kind.

  full      nn.Linear over the vocabulary and cross-entropy
  adaptive  nn.AdaptiveLogSoftmaxWithLoss, words sorted by frequency, cut at 2,000 and 10,000
  gather    a two-level softmax that gathers each token's cluster of weights

Plain SGD on the loss summed over time, clipped by norm. Prints a line once torch is there, then one after every
few windows ("window N"), for whoever measures the time between them; ends after --windows.
"""

import argparse
import array
import collections
import math

import torch
from torch import nn
from torch.nn import functional


def read_tokens(path):
    """Word ids by falling frequency, and how many there are. Compact: no list of Python objects a token."""
    counts = collections.Counter()
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            counts.update(line.split())
            counts["</s>"] += 1
    ids = {word: i for i, (word, _) in enumerate(counts.most_common())}
    tokens = array.array("i")
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            tokens.extend(ids[word] for word in line.split())
            tokens.append(ids["</s>"])
    return torch.frombuffer(tokens, dtype=torch.int32), len(ids)


class FullSoftmax(nn.Module):
    def __init__(self, width, words):
        super().__init__()
        self.logits = nn.Linear(width, words)

    def forward(self, hidden, targets):
        return functional.cross_entropy(self.logits(hidden), targets)


class AdaptiveSoftmax(nn.Module):
    def __init__(self, width, words):
        super().__init__()
        cutoffs = [cutoff for cutoff in (2000, 10000) if cutoff < words]
        self.head = nn.AdaptiveLogSoftmaxWithLoss(width, words, cutoffs)

    def forward(self, hidden, targets):
        return self.head(hidden, targets).loss


class GatheredSoftmax(nn.Module):
    def __init__(self, width, words):
        super().__init__()
        self.clusters = math.isqrt(words - 1) + 1
        self.size = -(-words // self.clusters)
        self.cluster = nn.Linear(width, self.clusters)
        self.weight = nn.Parameter(torch.empty(self.clusters, self.size, width))
        self.bias = nn.Parameter(torch.empty(self.clusters, self.size))

    def forward(self, hidden, targets):
        cluster = targets // self.size
        within = torch.einsum("nsd,nd->ns", self.weight[cluster], hidden) + self.bias[cluster]
        return functional.cross_entropy(self.cluster(hidden), cluster) + functional.cross_entropy(
            within, targets % self.size
        )


HEADS = {"full": FullSoftmax, "adaptive": AdaptiveSoftmax, "gather": GatheredSoftmax}


class LanguageModel(nn.Module):
    def __init__(self, words, options):
        super().__init__()
        self.embedding = nn.Embedding(words, options.hidden)
        self.layers = nn.LSTM(options.hidden, options.hidden, options.layers)
        self.head = HEADS[options.head](options.hidden, words)
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -0.1, 0.1)

    def forward(self, inputs, targets, state):
        hidden, state = self.layers(self.embedding(inputs), state)
        return self.head(hidden.flatten(0, 1), targets.flatten()), state


def train(options):
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    print("ready", flush=True)
    tokens, words = read_tokens(options.text)
    length = len(tokens) // options.batch
    streams = tokens[: length * options.batch].view(options.batch, length)
    model = LanguageModel(words, options)
    state = None
    for window in range(options.windows):
        at = window * options.bptt % (length - options.bptt - 1)
        inputs = streams[:, at : at + options.bptt].t().long()
        targets = streams[:, at + 1 : at + 1 + options.bptt].t().long()
        if state is not None:
            state = tuple(part.detach() for part in state)
        model.zero_grad()
        loss, state = model(inputs, targets, state)
        (loss * options.bptt).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5)
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.grad is not None:
                    parameter.sub_(parameter.grad)
        if (window + 1) % options.every == 0:
            print(f"window {window + 1} loss {loss.item():.3f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", help="training text, a sentence a line")
    parser.add_argument("--head", choices=HEADS, default="adaptive")
    for name, value in (
        ("hidden", 200), ("layers", 2), ("batch", 20), ("bptt", 35), ("threads", 2), ("windows", 100), ("every", 5)
    ):
        parser.add_argument(f"--{name}", type=int, default=value)
    train(parser.parse_args())


if __name__ == "__main__":
    main()
