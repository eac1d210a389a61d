"""Memory limits, each in a process that they may end."""

from __future__ import annotations

import subprocess
import sys

import pytest


def _run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not keep this limit")
def test_a_larger_allocation_fails() -> None:
    done = _run(
        "from longthread.tools.analysis.isolation import memory\nmemory.limit_memory(100)\n"
        "small = bytearray(50_000_000)\n"
        "try:\n    bytearray(2_000_000_000)\nexcept MemoryError:\n    print('refused')"
    )
    assert (done.returncode, done.stdout.strip()) == (0, "refused")


def test_where_that_limit_is_not_kept_a_thread_ends_the_process() -> None:
    done = _run(
        # Forked: what is started by somebody begins, on Linux, with the peak of whoever started it.
        "import os, sys, time\nfrom longthread.tools.analysis.isolation import memory\n"
        "if pid := os.fork():\n    sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
        "memory.watch(100)\n"
        "small = b'x' * 10_000_000\ntime.sleep(0.3)\nprint('there', flush=True)\n"
        "large = b'x' * 400_000_000\ntime.sleep(30)\nprint('still there')"
    )
    assert (done.returncode, done.stdout.strip()) == (1, "there")
