#!/usr/bin/env python3
"""Where the time of training goes: samples of a run by what they compute and for which part of a step.

  bench/profile.py build/cpu/hsm train --config FILE --set runtime.threads=1 ...

Needs Linux perf. Reading the text, validation and saving are left out.
"""

import collections
import re
import subprocess
import sys
import tempfile

# The first that a function's name matches.
KINDS = (
    ("GEMM", r"multiply_tile|multiply_rows|dot_tile|row_product|::product<"),
    ("packing", r"multiply_repacked|pack|assign"),
    ("pointwise", r"lstm_|gru_|plain_|tanh|sigmoid"),
    ("softmax", r"softmax|log_sum_exp"),
    ("update", r"update_|sum_of_squares|add_gradients"),
)
# The first that any function on the stack matches.
PARTS = (
    ("clip and update", r"Optimizer::|gradient_norm|sum_of_squares|add_gradients|update_rows|kernels::update"),
    ("head, leaves", r"run_leaves|run_factored|run_small_group"),
    ("head, root", r"run_group|GroupProducts|run_root"),
    ("head, rest", r"head_loss|HeadPlan"),
    ("layers, forward", r"forward_step|input_products|RecurrentLayer<float>::forward|pack_forward"),
    ("layers, backward", r"backward_steps|RecurrentLayer<float>::backward|input_and_weight|hidden_weight|sum_groups"),
    ("embedding", r"gather_rows|scatter_rows|RowGroups|look_up"),
)
TRAINING = re.compile(r"begin_step|train_window|ThreadPool::State::serve")


def first_match(patterns, text):
    return next((name for name, pattern in patterns if re.search(pattern, text)), "other")


def stacks(data):
    """The functions of each sample, innermost first."""
    command = ["perf", "script", "-i", data, "-F", "ip,sym"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as script:
        stack = []
        for line in script.stdout:
            if line.strip():
                stack.append(line.split(None, 1)[-1].strip())
            elif stack:
                yield stack
                stack = []


def main():
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        sys.exit(__doc__)
    with tempfile.NamedTemporaryFile(prefix="hsm-profile-") as data:
        record = ["perf", "record", "-q", "--call-graph", "dwarf,16384", "-F", "200", "-o", data.name, "--"]
        subprocess.run([*record, *sys.argv[1:]], check=True, stderr=subprocess.DEVNULL)
        counts = collections.Counter()
        for stack in stacks(data.name):
            everything = " ".join(stack)
            if TRAINING.search(everything):
                counts[first_match(PARTS, everything), first_match(KINDS, stack[0])] += 1
    total = sum(counts.values())
    if total == 0:
        sys.exit("no sample of a training step: a longer run, or a build with symbols")
    kinds = [name for name, _ in KINDS] + ["other"]
    print("| % of a step's time | " + " | ".join(kinds) + " | all |")
    print("|---" * (len(kinds) + 2) + "|")
    for part in [name for name, _ in PARTS] + ["other", "all"]:
        def share(kind, part=part):
            chosen = (n for (p, k), n in counts.items() if part in (p, "all") and kind in (k, "all"))
            return f"{100 * sum(chosen) / total:.1f}"

        print(f"| {part} | " + " | ".join(share(kind) for kind in [*kinds, "all"]) + " |")


if __name__ == "__main__":
    main()
