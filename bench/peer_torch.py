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


def words_of(path):
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            yield from line.split()
            yield "</s>"


def word_ids(path):
    """Ids by falling frequency."""
    return {word: i for i, (word, _) in enumerate(collections.Counter(words_of(path)).most_common())}


def read_tokens(path, ids):
    """Compact: no list of Python objects a token. Words without an id are read as <unk>."""
    unknown = ids.get("<unk>")
    return torch.frombuffer(array.array("i", (ids.get(word, unknown) for word in words_of(path))), dtype=torch.int32)


def read_training_text(path):
    """Its tokens, and how many words it has."""
    ids = word_ids(path)
    return read_tokens(path, ids), len(ids)


def streams_of(tokens, batch):
    """[stream, time]"""
    length = len(tokens) // batch
    return tokens[: length * batch].view(batch, length)


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
    """Dropout as in hsm: on the input, between layers, and on the output."""

    def __init__(self, words, head, hidden, layers, dropout=None, init_range=0.1):
        super().__init__()
        rates = {"input": 0, "hidden": 0, "output": 0, **(dropout or {})}
        self.embedding = nn.Embedding(words, hidden)
        self.before = nn.Dropout(rates["input"])
        self.layers = nn.LSTM(hidden, hidden, layers, dropout=rates["hidden"])
        self.after = nn.Dropout(rates["output"])
        self.head = HEADS[head](hidden, words)
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -init_range, init_range)

    def forward(self, inputs, state):
        hidden, state = self.layers(self.before(self.embedding(inputs)), state)
        return self.after(hidden), state

    def loss(self, hidden, targets):
        """The mean over all targets."""
        return self.head(hidden.flatten(0, -2), targets.flatten())


def detached(state):
    return None if state is None else tuple(part.detach() for part in state)


def descend(model, loss, rate, clip_norm):
    """A step of plain SGD; clip_norm 0: no clipping."""
    loss.backward()
    if clip_norm > 0:
        nn.utils.clip_grad_norm_(model.parameters(), clip_norm)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.grad is not None:
                parameter.sub_(parameter.grad, alpha=rate)
    model.zero_grad()  # now, so that the next forward pass has their memory


def train(options):
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    print("ready", flush=True)
    tokens, words = read_training_text(options.text)
    streams = streams_of(tokens, options.batch)
    model = LanguageModel(words, options.head, options.hidden, options.layers)
    state = None
    for window in range(options.windows):
        at = window * options.bptt % (streams.shape[1] - options.bptt - 1)
        inputs = streams[:, at : at + options.bptt].t().long()
        targets = streams[:, at + 1 : at + 1 + options.bptt].t().long()
        hidden, state = model(inputs, detached(state))
        loss = model.loss(hidden, targets)
        descend(model, loss * options.bptt, rate=1, clip_norm=5)
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
