"""Processes that are measured from outside: their CPU time and memory, as the system counts them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_SECONDS = 120


@dataclass(frozen=True)
class Server:
    """A server in a process of its own."""

    pid: int
    url: str

    def cpu(self) -> float:
        """Seconds of CPU since its start, in steps of 10 ms."""
        stat = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(stat[11]) + int(stat[12])) / _TICKS

    def tree_cpu(self) -> float:
        """Seconds of CPU of it and of all processes that it has started, those that have ended included."""
        stats = {int(path.parent.name): found for path in Path("/proc").glob("[0-9]*/stat") if (found := stat_of(path))}
        family = {self.pid}
        while more := {pid for pid, stat in stats.items() if int(stat[1]) in family} - family:
            family |= more
        return sum(sum(map(int, stats[pid][11:15])) for pid in family if pid in stats) / _TICKS

    def kill(self) -> None:
        """End it at once, as a crash does, and leave nothing of it: whoever looks at its number finds no process."""
        with suppress(ProcessLookupError, ChildProcessError):
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)

    def rss_mb(self) -> float:
        """Its memory now, in MB of a million bytes."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        assert found is not None
        return int(found[1]) * 1024 / 1e6


@contextmanager
def started(command: Sequence[str | Path], env: Mapping[str, str], says: str = "http://") -> Iterator[Server]:
    """Start a server that says its URL in a line that contains `says`; SIGTERM ends it."""
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        url = next((line.split()[-1] for line in process.stdout if says in line), None)
        if url is None:
            raise SystemExit(f"{command[0]} has ended with {process.wait()} before it listened.")
        yield Server(process.pid, url)
    finally:
        _end(process)


@contextmanager
def started_at(url: str, command: Sequence[str | Path], env: Mapping[str, str]) -> Iterator[Server]:
    """Start a server that listens at a known URL, and wait until it answers."""
    process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + _SECONDS
        while not _answers(url):
            if process.poll() is not None or time.monotonic() > until:
                raise SystemExit(f"{command[0]} does not answer at {url}.")
            time.sleep(0.2)
        yield Server(process.pid, url)
    finally:
        _end(process)


def stat_of(path: Path) -> list[str]:
    """What the system tells of a process, from its state on; nothing when it has ended meanwhile."""
    try:
        return path.read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health/liveliness", timeout=5):
            return True
    except OSError:
        return False


def _end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(15)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
