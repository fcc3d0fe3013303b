#!/usr/bin/env python3
"""Line coverage of src/ by folder, from the counters that an instrumented build left behind.

Merges gcov's JSON over all objects: a line counts once, and as run when any object ran it."""

import argparse
import collections
import json
import pathlib
import subprocess
import sys


def executed_lines(source, build):
    """file -> line -> whether it ran, of the files below source/src."""
    lines = collections.defaultdict(dict)
    notes = sorted(build.rglob("*.gcno"))
    for start in range(0, len(notes), 50):
        command = ["gcov", "--json-format", "--stdout", *map(str, notes[start : start + 50])]
        output = subprocess.run(command, check=True, capture_output=True, text=True, cwd=build).stdout
        for document in filter(None, output.splitlines()):
            record(json.loads(document), source, lines)
    return lines


def record(document, source, lines):
    base = pathlib.Path(document["current_working_directory"])
    for entry in document["files"]:
        path = (base / entry["file"]).resolve()
        if path.is_relative_to(source / "src"):
            known = lines[path.relative_to(source)]
            for line in entry["lines"]:
                number = line["line_number"]
                known[number] = known.get(number, False) or line["count"] > 0


def print_missed(lines):
    for path, known in sorted(lines.items()):
        missed = [str(number) for number, ran in sorted(known.items()) if not ran]
        if missed:
            print(f"{path}: {' '.join(missed)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--at-least", type=float, default=0, help="per cent below which the exit status is 1")
    parser.add_argument("--missed", action="store_true", help="list the lines that did not run")
    arguments = parser.parse_args()

    lines = executed_lines(arguments.source.resolve(), arguments.build)
    if not lines:
        sys.exit("coverage_report.py: no counters of src/ found; build with the preset coverage and run the tests")
    if arguments.missed:
        print_missed(lines)
    folders = collections.defaultdict(lambda: [0, 0])
    for path, known in lines.items():
        for key in (str(path.parent), "all"):
            folders[key][0] += sum(known.values())
            folders[key][1] += len(known)
    for folder in sorted(folders, key=lambda name: (name == "all", name)):
        ran, total = folders[folder]
        print(f"{folder:<20} {ran:>6} of {total:>6} lines {100 * ran / total:6.1f} %")
    ran, total = folders["all"]
    if 100 * ran < arguments.at_least * total:
        sys.exit(f"coverage_report.py: below {arguments.at_least:g} %")


if __name__ == "__main__":
    main()
