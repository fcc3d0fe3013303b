"""A program's speed and memory seen from outside: it writes lines that tell how far it is, and is timed between them."""

import dataclasses
import os
import re
import resource
import signal
import subprocess
import threading
import time


@dataclasses.dataclass
class Measurement:
    windows_per_second: float
    base_memory: int  # bytes resident when it was ready to start
    peak_memory: int

    @property
    def growth(self):
        return self.peak_memory - self.base_memory


def memory(pid, key):
    with open(f"/proc/{pid}/status", encoding="ascii") as lines:
        for line in lines:
            if line.startswith(key + ":"):
                return int(line.split()[1]) * 1024
    return 0


def processor_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Failed(Exception):
    """The program ended before it could be measured."""


def measure(command, seconds, warm_up=2.0, processor_time=False, limit=300.0):
    """Runs `command` until it has written two lines with "window N" at least `seconds` apart, the first at least
    `warm_up` after the first such line, and ends it then. Start-up and warm-up count for nothing. With
    `processor_time`, seconds are those that the program's threads have run."""
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    watchdog = threading.Timer(limit, process.kill)
    watchdog.start()
    tail = []
    base, begin, first, result = 0, None, None, None
    try:
        for line in process.stdout:
            tail = tail[-9:] + [line.rstrip()]
            if not base:
                base = memory(process.pid, "VmRSS")
            mark = re.search(r"\bwindow (\d+)", line)
            if not mark:
                continue
            now = processor_seconds(process.pid) if processor_time else time.monotonic()
            begin = now if begin is None else begin
            if now - begin < warm_up:
                continue
            if first is None:
                first = now, int(mark[1])
            elif now - first[0] >= seconds:
                speed = (int(mark[1]) - first[1]) / (now - first[0])
                result = Measurement(speed, base, memory(process.pid, "VmHWM"))
                break
    finally:
        watchdog.cancel()
        process.send_signal(signal.SIGKILL)
        process.stdout.close()
        process.wait()
    if result is None:
        raise Failed("\n".join(tail) or f"ended with {process.returncode}")
    return result


def run_seconds(command, processor_time=False):
    """Seconds that a program takes, which must succeed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    elapsed = time.monotonic() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if processor_time:
        return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return elapsed
