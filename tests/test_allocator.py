"""The C library's allocator: a server does not keep an arena for each thread."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

COUNT = """
import ctypes, sys, threading
from longthread.server.app import give_back_freed_memory

if sys.argv[2] == "set":
    give_back_freed_memory()
met = threading.Barrier(7)

def allocate():
    held = [bytes(2_000) for _ in range(100)]
    met.wait()

threads = [threading.Thread(target=allocate) for _ in range(6)]
for each in threads:
    each.start()
met.wait()
for each in threads:
    each.join()
libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
file = ctypes.c_void_p(libc.fopen(sys.argv[1].encode(), b"w"))
libc.malloc_info(0, file)
libc.fclose(file)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's allocator alone has arenas")
def test_threads_share_two_arenas(tmp_path: Path) -> None:
    def arenas(way: str) -> int:
        told = tmp_path / way
        subprocess.run([sys.executable, "-c", COUNT, str(told), way], check=True)
        return told.read_text().count("<heap nr=")

    assert arenas("plain") > 2
    assert arenas("set") <= 2
