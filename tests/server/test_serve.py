"""The server's start and end."""

from __future__ import annotations

import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from tests.endless import endless_csv

from longthread.errors import AddressUnavailable, PortInUse, StoreUnavailable
from longthread.server.app import run
from longthread.server.http import listen, url_of
from longthread.settings import Settings

PROGRAM = """
import sys
from pathlib import Path
from longthread.server.app import run
from longthread.settings import Settings

folder, database = sys.argv[1:]
settings = Settings.load(
    env_file=None, data_dir=Path(folder), database=database, source="demo", model="demo", port=0
)
run(settings, on_ready=lambda url: print(url, flush=True))
print("over", flush=True)
"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_server_in_good_order_while_streams_are_open(
    tmp_path: Path, backend: str, store_address: str, warmed: Path, how: signal.Signals
) -> None:
    as_it_is = (backend, how) == ("sqlite", signal.SIGINT)
    command = [sys.executable if as_it_is else str(warmed / "python"), "-c", PROGRAM, str(tmp_path), store_address]
    program = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert program.stdout is not None
    with program, httpx.Client(base_url=program.stdout.readline().strip(), timeout=20) as client:
        asked = client.post("/api/chat", json={"question": "How many rockets are there?"}).json()
        with client.stream("GET", asked["events"]) as stream:
            program.send_signal(how)
            stream.read()
        out, _ = program.communicate(timeout=20)
        assert (program.returncode, out) == (0, "over\n")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="it looks for processes in /proc")
def test_a_source_that_never_opens_does_not_keep_the_server(tmp_path: Path, warmed: Path) -> None:
    path = str(endless_csv(tmp_path))
    program = subprocess.Popen(
        [str(warmed / "python"), "-c", PROGRAM, str(tmp_path / "data"), "sqlite:///" + str(tmp_path / "store.db")],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert program.stdout is not None
    with program, httpx.Client(base_url=program.stdout.readline().strip(), timeout=60) as client:
        with ThreadPoolExecutor(1) as elsewhere:
            asked = elsewhere.submit(client.post, "/api/chat", json={"question": "How many?", "source": path})
            while not (reading := _readers(path)):
                assert not asked.done()
            program.send_signal(signal.SIGTERM)
            out, _ = program.communicate(timeout=30)
        assert (program.returncode, out) == (0, "over\n")
        assert not set(reading) & set(_readers(path))


def _readers(path: str) -> list[int]:
    """The processes that have a file open."""
    found = []
    for each in Path("/proc").glob("[0-9]*/fd/*"):
        with suppress(OSError):
            if each.readlink() == Path(path):
                found.append(int(each.parts[2]))
    return found


def test_a_port_that_is_taken_is_named_with_the_way_out(tmp_path: Path) -> None:
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        settings = Settings.load(env_file=None, data_dir=tmp_path, port=port)
        with pytest.raises(PortInUse, match=rf"Port {port} .* --port"):
            run(settings)


@pytest.mark.parametrize("host", ["203.0.113.7", "no-such-host.invalid"])
def test_an_address_that_is_not_ours_is_named(host: str) -> None:
    with pytest.raises(AddressUnavailable, match="--host"):
        listen(host, 0)


def test_a_store_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    settings = Settings.load(env_file=None, database=tmp_path, port=0)
    with pytest.raises(StoreUnavailable):
        run(settings)


def test_an_address_that_means_any_is_shown_as_one_to_open() -> None:
    with listen("0.0.0.0", 0) as listener:
        assert url_of(listener) == f"http://127.0.0.1:{listener.getsockname()[1]}"
