"""Whether who executes a run may still be alive: told by its process here, and by its renewals anywhere. No clock of
the wall tells."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest
from tests.runs.test_workers import dead_worker

from longthread.runs import worker
from longthread.runs.worker import WorkerWatch, here, may_be_alive, new_worker
from longthread.store.queries import queries

ELSEWHERE = "another-host:boot:1/12/x"


def test_a_process_is_alive_as_long_as_it_is() -> None:
    assert may_be_alive(new_worker())
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    assert not may_be_alive(f"{here()}/{dead.pid}/x")


@pytest.mark.parametrize("other", ["another", f"{socket.gethostname()}:another-boot:1", socket.gethostname() + ":x"])
def test_of_a_pid_elsewhere_nothing_is_known(other: str) -> None:
    assert may_be_alive(f"{other}/{2**22 + 1}/x")


def test_containers_that_share_a_hosts_name_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = f"{socket.gethostname()}:{worker._kernel()[0]}:4026599999" if worker._kernel() else "elsewhere"
    assert may_be_alive(f"{theirs}/{2**22 + 1}/x")
    assert new_worker().startswith(f"{here()}/{os.getpid()}/")


@pytest.mark.parametrize("pid", ["0", "-1", "abc", "1e3", "٣", "", "9" * 20, "9" * 5000])
def test_a_name_that_no_process_here_has_made_is_told_by_its_lease(pid: str) -> None:
    assert may_be_alive(f"{here()}/{pid}/x")


@pytest.mark.parametrize("name", ["", "x", "/", "//", "host/x", "a/b/c/123/x", "\n/1/x"])
def test_whatever_an_owner_is_called_nothing_breaks(name: str) -> None:
    assert may_be_alive(name)


def watched(looks: list[tuple[float, int]], *, name: str = ELSEWHERE, own: str | None = None) -> list[bool]:
    """Whether a worker is dead at each look: (a monotonic second, its renewals then)."""
    watcher = WorkerWatch()
    return [name in watcher.dead({name: renewals}, own=own, at=at) for at, renewals in looks]


def test_a_worker_that_renews_lives_and_one_that_is_silent_for_ten_seconds_is_dead() -> None:
    assert not any(watched([(float(n), n // 3) for n in range(40)]))
    silent = watched([(float(n), 7) for n in range(12)])
    assert silent.index(True) == 10
    assert all(silent[10:])


def test_one_that_renews_again_has_the_whole_time_anew() -> None:
    looks = [(float(n), int(n > 9)) for n in range(21)]
    assert watched(looks) == [False] * 20 + [True]


@pytest.mark.parametrize("gap", [11.0, 60.0, 8 * 3600.0])
def test_after_a_pause_of_everybody_the_others_have_time_to_renew(gap: float) -> None:
    """The machine slept, or the store was away: no look was possible, and no renewal."""
    looks = [(float(n), 1) for n in range(4)] + [(3.0 + gap, 1), (4.0 + gap, 1), (6.0 + gap, 2), (7.0 + gap, 2)]
    assert not any(watched(looks))


def test_what_renews_while_nobody_looks_lives() -> None:
    assert not any(watched([(0.0, 1), (100.0, 2), (200.0, 3), (300.0, 4)]))


def test_a_dead_process_of_this_host_is_seen_at_the_first_look() -> None:
    assert watched([(0.0, 1)], name=dead_worker()) == [True]


def test_nobody_is_dead_in_his_own_eyes() -> None:
    own = new_worker()
    assert not any(watched([(float(n), 1) for n in range(60)], name=own, own=own))


def test_the_others_stop_before_anybody_claims_their_runs() -> None:
    between = worker.RENEW_SECONDS + worker.MOST_BETWEEN_LOOKS
    assert worker.LOST_SECONDS < worker.SILENT_SECONDS
    assert between < worker.SILENT_SECONDS, "a renewal comes before the looks after a pause add up"


@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
def test_no_query_asks_a_clock(backend: str) -> None:
    """Moments come from the caller, and durations from its monotonic clock."""
    clocks = ("now()", "'now'", "current_timestamp", "clock_timestamp")
    found = queries(backend)
    assert [name for name in found if any(clock in found[name].lower() for clock in clocks)] == []
