"""Trains hsm and its peers in turn on the same text and prints how fast each is and how much memory it takes.

Words/s are timed from outside between two of the lines in which a program tells how far it is, so start-up counts
for nothing; memory is the peak minus what is resident before a text is read. hsm and the peers take turns, and
each ratio is the median over the rounds of hsm's figure by the peer's of the same round. A peer that cannot run
here is skipped, with the reason.
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile

from measured_run import Failed, Measurement, measure, run_seconds

PEERS = {"full": "full softmax", "adaptive": "AdaptiveLogSoftmax", "gather": "gathered HSM"}
MIB = 1 << 20


def find_text(folder):
    """The training text of a folder: its only file named *train*."""
    path = pathlib.Path(folder)
    found = [path] if path.is_file() else sorted(p for p in path.glob("*train*") if p.suffix != ".json")
    if len(found) != 1:
        sys.exit(f"{folder}: expected one file named *train*, found {len(found)}")
    return found[0]


class Hsm:
    """hsm itself: configurations, and the commands that train and score with them."""

    def __init__(self, program, folder, options):
        self.program = program
        self.folder = pathlib.Path(folder)
        self.options = options
        self.learned = {}  # files of classes by text and hidden size

    def classes(self, text, hidden):
        """The section that gives the text's automatic classes; learned ones are made once for all runs."""
        section = {"method": self.options.classes}
        if self.options.classes == "frequency":
            return section
        if (text, hidden) not in self.learned:
            file = self.folder / f"classes-{len(self.learned)}.txt"
            configuration = self.folder / "classes.json"
            configuration.write_text(json.dumps(self.configuration(text, hidden, section, "classes")))
            run_seconds([self.program, "classes", "--config", str(configuration), "--output", str(file)])
            self.learned[text, hidden] = file
        return {"method": "file", "file": str(self.learned[text, hidden])}

    def configuration(self, text, hidden, classes, name, **limits):
        options = self.options
        return {
            "data": {"train": str(text)},
            "classes": classes,
            "model": {"cell": "lstm", "layers": options.layers, "hidden": hidden},
            "train": {
                "epochs": 100, "batch": options.batch, "bptt": options.bptt, "loss_reduction": "sum_over_time",
                "clip_norm": 5, "optimizer": {"name": "sgd", "learning_rate": 1.0}, **limits,
            },
            "runtime": {"threads": options.threads, "device": "cpu"},
            "output": {"directory": str(self.folder / name), "log_every": 5},
        }

    def write_configuration(self, text, hidden, name, **limits):
        path = self.folder / f"{name}.json"
        configuration = self.configuration(text, hidden, self.classes(text, hidden), name, **limits)
        path.write_text(json.dumps(configuration))
        shutil.rmtree(self.folder / name, ignore_errors=True)
        return path

    def train_command(self, text, hidden):
        return [self.program, "train", "--config", str(self.write_configuration(text, hidden, "speed"))]

    def score_speed(self, text, hidden):
        """Words/s of `hsm score`: a long text's time less a short one's."""
        configuration = self.write_configuration(text, hidden, "scored", max_steps=5)
        run_seconds([self.program, "train", "--config", str(configuration)])
        lines = text.read_text(encoding="utf-8").splitlines(keepends=True)
        counts, seconds = [], []
        for name, share in (("short", 40), ("long", 4)):
            part = lines[: max(1, min(len(lines), 80000) // share)]
            path = self.folder / name
            path.write_text("".join(part), encoding="utf-8")
            counts.append(sum(len(line.split()) + 1 for line in part))
            command = [self.program, "score", "--model", str(self.folder / "scored"), str(path)]
            command += ["--threads", str(self.options.threads)]
            seconds.append(min(run_seconds(command, self.options.processor_time) for _ in range(2)))
        return (counts[1] - counts[0]) / (seconds[1] - seconds[0])


def peer_command(name, text, hidden, options):
    script = pathlib.Path(__file__).with_name("peer_torch.py")
    command = [sys.executable, str(script), str(text), "--head", name, "--windows", "1000000"]
    sizes = {"hidden": hidden, "layers": options.layers, "batch": options.batch, "bptt": options.bptt}
    for key, value in {**sizes, "threads": options.threads, "every": 2}.items():
        command += [f"--{key}", str(value)]
    return command


def usable_peers(wanted):
    """Those of the names wanted that run here; says which do not, and why."""
    if not wanted:
        return []
    check = subprocess.run([sys.executable, "-c", "import torch"], capture_output=True, text=True, check=False)
    if check.returncode == 0:
        return wanted
    reason = (check.stderr.strip().splitlines() or ["failed"])[-1]
    for name in wanted:
        print(f"skipped: {PEERS[name]} (import torch: {reason})", flush=True)
    return []


def take_turns(hsm, text, hidden, peers, options):
    """Measurements by name, a list with one a round."""
    results = {}
    for turn in range(options.rounds):
        for name in ["hsm", *peers]:
            command = hsm.train_command(text, hidden) if name == "hsm" else peer_command(name, text, hidden, options)
            try:
                result = measure(command, options.seconds, processor_time=options.processor_time)
            except Failed as failure:
                print(f"{name} failed:\n{failure}", flush=True)
                if name == "hsm":
                    raise
                result = Measurement(float("nan"), 0, 0)
            results.setdefault(name, []).append(result)
            words = result.windows_per_second * options.batch * options.bptt
            print(
                f"  round {turn + 1}: {name:9} {words:9,.0f} words/s, memory {result.base_memory / MIB:.0f} + "
                f"{result.growth / MIB:.0f} MiB",
                flush=True,
            )
    return results


def median_ratio(ours, theirs, value):
    return statistics.median(value(a) / value(b) for a, b in zip(ours, theirs))


def table_row(label, results, options, score):
    words = options.batch * options.bptt
    ours = results["hsm"]
    speed = statistics.median(m.windows_per_second for m in ours) * words
    row = [label, f"{speed:,.0f}", f"{statistics.median(m.growth for m in ours) / MIB:.0f}"]
    row.append("" if score is None else f"{score:,.0f} ({score / speed:.1f} ×)")
    for name in options.peers:
        theirs = results.get(name)
        if theirs is None:
            row.append("skipped")
            continue
        their_speed = statistics.median(m.windows_per_second for m in theirs) * words
        growth = statistics.median(m.growth for m in theirs) / MIB
        faster = median_ratio(ours, theirs, lambda m: m.windows_per_second)
        smaller = median_ratio(ours, theirs, lambda m: m.growth or float("nan"))
        row.append(f"{their_speed:,.0f}; {growth:.0f}: **{faster:.2f} ×** faster, {smaller:.2f} of its memory")
    return row


def processor_name():
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()


def heading(hsm, options):
    version = subprocess.run([hsm.program, "--version"], capture_output=True, text=True, check=True).stdout
    clock = "processor time" if options.processor_time else "wall-clock"
    return (
        f"{datetime.date.today().isoformat()}, {processor_name()}, {options.threads} thread(s) of "
        f"{len(os.sched_getaffinity(0))}, {version.splitlines()[0]}; LSTM of {options.layers} layers, batch "
        f"{options.batch}, bptt {options.bptt}, SGD; {options.rounds} round(s) of {options.seconds:g} s, {clock}. hsm's classes: {options.classes}, automatic sizes."
    )


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("texts", nargs="+", metavar="TEXT", help="training text, or a folder with one file named *train*; TEXT:H sets the hidden size")
    add("--program", required=True, help=argparse.SUPPRESS)
    add("--threads", type=int, default=2)
    add("--hidden", type=int, default=200)
    add("--layers", type=int, default=2)
    add("--batch", type=int, default=20)
    add("--bptt", type=int, default=35)
    add("--rounds", type=int, default=3, help="how often hsm and the peers take turns")
    add("--seconds", type=float, default=8, help="how long each is timed in a round")
    add("--peers", default=",".join(PEERS), help=f"of {','.join(PEERS)}; empty for hsm alone")
    add("--classes", choices=["exchange", "frequency"], default="exchange", help="of hsm; sizes are automatic")
    add("--processor-time", action="store_true", help="count processor time, on a busy machine; with --threads 1")
    add("--score", action="store_true", help="measure hsm score, too")
    add("--output", help="append the table to this file")
    options = parser.parse_args(arguments)
    options.peers = [name for name in options.peers.split(",") if name]
    for name in options.peers:
        if name not in PEERS:
            parser.error(f"--peers: {name} given, expected some of {', '.join(PEERS)}")
    if options.processor_time and options.threads != 1:
        parser.error("--processor-time needs --threads 1: threads that wait for each other count, too")
    return options


def main():
    options = parse(sys.argv[1:])
    peers = usable_peers(options.peers)
    rows = [["text", "hsm: words/s", "memory growth, MiB", "hsm score: words/s"]]
    rows[0] += [f"{PEERS[name]}: words/s; MiB" for name in options.peers]
    rows.append(["---"] * len(rows[0]))
    with tempfile.TemporaryDirectory(prefix="hsm-bench-") as folder:
        hsm = Hsm(options.program, folder, options)
        title = heading(hsm, options)
        for name in options.texts:
            path, _, size = name.partition(":")
            text, hidden = find_text(path).resolve(), int(size or options.hidden)
            label = f"{pathlib.Path(path).resolve().name}, {options.layers}×{hidden}"
            print(label, flush=True)
            results = take_turns(hsm, text, hidden, peers, options)
            score = hsm.score_speed(text, hidden) if options.score else None
            rows.append(table_row(label, results, options, score))
    table = title + "\n\n" + "\n".join("| " + " | ".join(row) + " |" for row in rows) + "\n"
    print("\n" + table)
    if options.output:
        with open(options.output, "a", encoding="utf-8") as file:
            file.write("\n" + table)


if __name__ == "__main__":
    main()
