"""This process as a worker, and which workers live: each renews its row, and loses its runs if it cannot.

Others take a worker for dead when they have seen no renewal of it for ten seconds, and claim its runs. A worker that
could not renew for `LOST_SECONDS` breaks off its executions before that. A process of this host is known by its name.

Clocks of the wall differ between hosts, and step: when a laptop wakes, when one is set. So none is asked. A worker
counts its renewals in its row. Dead is one whose number stands still while this process looks, by its own monotonic
clock.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import socket
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from longthread.errors import LeaseLost, RunInProgress, StoreError, ThreadNotFound
from longthread.model.ids import new_id
from longthread.store import leases, runs
from longthread.store.driver import Driver, Transaction
from longthread.store.leases import HeldRun
from longthread.store.runs import Lease

_NAME = re.compile(r"(?P<where>.+)/(?P<pid>[1-9][0-9]{0,8})/[^/]*", re.DOTALL)
"""As `new_worker` makes them."""
SILENT_SECONDS = 10.0
"""A worker whose number of renewals has stood still for so long is dead."""
MOST_BETWEEN_LOOKS = 3.5
"""At most so much of the time between two looks counts. If the machine slept, or its store was away, everybody stood
still, and the others must have time to renew."""


def new_worker() -> str:
    """Return a new worker's id, for this process: `where/pid/nonce`."""
    return f"{here()}/{os.getpid()}/{new_id()}"


def may_be_alive(owner: str) -> bool:
    """Return whether an owner may still work: False only for a dead process of this host.

    Other owners (of other hosts, of other containers, with reused pids or unknown names) are dead when they no longer
    renew their rows.
    """
    name = _NAME.fullmatch(owner)
    if name is None or name["where"] != here():
        return True
    try:
        os.kill(int(name["pid"]), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def place_of(owner: str) -> str:
    """Say where a worker is, for people."""
    name = _NAME.fullmatch(owner)
    return f"Process {name['pid']} on {name['where'].split(':')[0]}" if name is not None else "Another process"


def here() -> str:
    """Name the scope of a pid: the host, and on Linux its boot and its pid namespace. Containers may share a host
    name, and so may hosts."""
    return ":".join([socket.gethostname(), *_kernel()])


@lru_cache(maxsize=1)
def _kernel() -> tuple[str, ...]:
    with suppress(OSError):
        booted = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return booted, str(Path("/proc/self/ns/pid").stat().st_ino)
    return ()


@dataclass(slots=True)
class _Silence:
    renewals: int
    seconds: float = 0.0


class WorkerWatch:
    """Watches the workers of a store, look by look."""

    def __init__(self) -> None:
        self._seen: dict[str, _Silence] = {}
        self._looked: float | None = None

    def dead(self, workers: Mapping[str, int], *, own: str | None, at: float) -> dict[str, int]:
        """Note the renewals of all workers, and return those workers of them that are dead: of this host because the
        process is gone, of any because they are silent. Never `own`, this process.

        Args:
            workers: their numbers of renewals, as just read.
            at: this process' monotonic clock, in seconds.
        """
        passed = min(at - self._looked, MOST_BETWEEN_LOOKS) if self._looked is not None else 0.0
        self._looked = at
        seen: dict[str, _Silence] = {}
        for worker, renewals in workers.items():
            silence = self._seen.get(worker)
            if silence is None or silence.renewals != renewals:
                silence = _Silence(renewals)
            else:
                silence.seconds += passed
            seen[worker] = silence
        self._seen = seen
        return {
            worker: silence.renewals
            for worker, silence in seen.items()
            if worker != own and (silence.seconds >= SILENT_SECONDS or not may_be_alive(worker))
        }


RENEW_SECONDS = 3.0
"""How often a worker renews its row, and looks for stops of its runs; also the timeout of one attempt to."""
LOST_SECONDS = 7.0
"""After so long without a renewal, a worker gives its runs up."""
_AGAIN_SECONDS = 0.5
_STOOD_STILL_SECONDS = 1.0
"""A worker that notices so much later that time was up stood still: the process, or its whole machine."""
T = TypeVar("T")
_logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Hold:
    """A run that this worker executes or is about to. `lost` is done when the lease is lost; `stop` stops the
    execution, once there is one. While it is `draining`, no step begins."""

    lease: Lease
    lost: asyncio.Future[None]
    draining: bool = False
    stop: Callable[[], None] | None = None

    def lose(self) -> None:
        """Break the execution off: it writes nothing more."""
        if not self.lost.done():
            self.lost.set_result(None)

    def expect(self) -> None:
        """Raise LeaseLost if the lease is lost."""
        if self.lost.done():
            raise LeaseLost(thread=self.lease.thread_id, run=self.lease.run_id)


@dataclass(slots=True)
class RunWorker:
    """Registers at its first run, and renews its row from then on, on a connection of its own."""

    store: Driver
    draining: bool = False
    watches: bool = False
    """Whether this process looks for dead workers each second, as a server does."""
    _id: str | None = None
    _holds: dict[tuple[str, str], Hold] = field(default_factory=dict)
    _strays: set[Lease] = field(default_factory=set)
    """Runs that are this worker's in the store, and that it does not hold: seen once."""
    _loop: asyncio.Task[None] | None = None
    _alarm: asyncio.TimerHandle | None = None
    _lost_at: float = 0.0
    """When it gives its runs up, by the monotonic clock."""
    _given_up: dict[str, list[Lease]] = field(default_factory=dict)
    """Workers that this process was, each with what it executed when it gave up: its runs are to be given back."""
    _watch: WorkerWatch = field(default_factory=WorkerWatch)
    _registering: asyncio.Lock = field(default_factory=asyncio.Lock)
    _woken: asyncio.Event = field(default_factory=asyncio.Event)
    _wakes: list[asyncio.Event] = field(default_factory=list)
    _losses: list[Callable[[], None]] = field(default_factory=list)

    async def id(self) -> str:
        """Return this worker's id; it is registered now, if it was not. Raises `StoreError`."""
        async with self._registering:
            if self._id is None:
                await self._register()
            assert self._id is not None
            return self._id

    def hold(self, lease: Lease) -> Hold:
        """Return the hold of a lease that is this worker's; `drop` it when the execution has ended."""
        key = lease.thread_id, lease.run_id
        found = self._holds.get(key)
        if found is None or found.lease != lease:
            found = self._holds[key] = Hold(lease, asyncio.get_running_loop().create_future(), self.draining)
            if lease.owner != self._id:
                found.lose()
        return found

    def drop(self, hold: Hold) -> None:
        """End a hold. Nothing happens if the run is held by another execution meanwhile."""
        key = hold.lease.thread_id, hold.lease.run_id
        if self._holds.get(key) is hold:
            del self._holds[key]

    async def release(self, hold: Hold, *, claimable: bool = True) -> None:
        """End a hold and give the run back to the workers, or, if not `claimable`, let only a resume take it."""
        self.drop(hold)
        with suppress(StoreError, ThreadNotFound):  # then the run is a stray
            async with self.store.writing() as tx:
                await runs.give_back(tx, hold.lease, claimable=claimable)

    def drain(self) -> None:
        """Let no execution begin another step: each ends, and gives its run back."""
        self.draining = True
        for hold in self._holds.values():
            hold.draining = True

    def break_off(self) -> None:
        """Break off all executions, without an end of their runs."""
        for hold in list(self._holds.values()):
            hold.lose()

    def lose_thread(self, thread_id: str) -> None:
        """Break off the execution on a thread that was deleted."""
        for (thread, _), hold in list(self._holds.items()):
            if thread == thread_id:
                hold.lose()

    def wake(self) -> None:
        """Look at once for stops of this worker's runs, and for runs to claim."""
        for event in (self._woken, *self._wakes):
            event.set()

    def wake_renewal(self) -> None:
        """Renew at once."""
        self._woken.set()

    def wake_claims(self) -> None:
        """Look at once for runs and questions to begin with."""
        for event in self._wakes:
            event.set()

    def waking(self) -> asyncio.Event:
        """Return an event that each `wake` and `wake_claims` sets."""
        self._wakes.append(asyncio.Event())
        return self._wakes[-1]

    def at_loss(self, lost: Callable[[], None]) -> None:
        """Call `lost` when others may take this worker for dead."""
        self._losses.append(lost)

    def dead(self, workers: Mapping[str, int]) -> dict[str, int]:
        """Return which of all workers are dead, as far as this process has seen, each with its renewals."""
        return self._watch.dead(workers, own=self._id, at=time.monotonic())

    async def past_the_dead(self, begin: Callable[[], Awaitable[T]]) -> T:
        """Begin something. If a worker has the thread, wait for a sign of life of it; if that one is dead, begin again.
        A server does not wait: it watches all workers all the time. Raises what `begin` raises."""
        try:
            return await begin()
        except RunInProgress as busy:
            if self.watches or type(busy) is not RunInProgress or not await self._outlives(busy.thread):
                raise
        return await begin()

    async def _outlives(self, thread_id: str) -> bool:
        """Return False when the worker of a thread's run renews its row; True when it is dead, and its row gone."""
        first: tuple[str, int] | None = None
        while True:
            async with self.store.reading() as tx:
                now = await leases.renewals_of(tx, thread_id)
            if now is None or (first is not None and now != first):
                return now is None
            first = now
            await asyncio.sleep(_AGAIN_SECONDS)

    async def close(self) -> None:
        """Delete the worker's row. Executions that still run are broken off, and their runs given back."""
        if self._loop is not None:
            self._loop.cancel()
            await asyncio.gather(self._loop, return_exceptions=True)
        self._lose_all()
        with suppress(StoreError):  # others find that the process is gone
            await self._give_back()

    async def _register(self) -> None:
        await self._give_back()
        sent, new = time.monotonic(), new_worker()
        async with self.store.writing() as tx:
            await leases.register(tx, new)
        self._id = new
        self._set_alarm(sent)
        if self._loop is None:
            self._loop = asyncio.get_running_loop().create_task(self._keep(), name="the renewal of the worker")

    async def _keep(self) -> None:
        """Renew until cancelled, on one connection after another: one that failed is replaced."""
        while True:
            try:
                async with self.store.dedicated() as own:
                    while True:
                        async with asyncio.timeout(RENEW_SECONDS):
                            await self._renew(own)
                        self._woken.clear()
                        with suppress(TimeoutError):
                            async with asyncio.timeout(RENEW_SECONDS):
                                await self._woken.wait()
            except (StoreError, TimeoutError) as error:
                _logger.warning("The worker could not renew its row; trying again: %s", str(error) or "a timeout")
            await asyncio.sleep(_AGAIN_SECONDS)

    async def _renew(self, own: Transaction) -> None:
        sent, holds = time.monotonic(), dict(self._holds)
        if sent > self._lost_at:  # the alarm may come later
            self._give_up()
        known = self._id
        if known is None:
            await self.id()
        elif await leases.renew(own, known):
            self._set_alarm(sent)
            await self._compare(holds, await leases.held(own, known))
            await self._bury(own)
        else:
            _logger.warning("This process was taken for dead: its runs are given up.")
            self._lose_all()
            await self.id()

    async def _bury(self, own: Transaction) -> None:
        if dead := self.dead(await leases.workers(own)):
            async with self.store.writing() as tx:
                await leases.bury(tx, dead)
            self.wake_claims()

    async def _give_back(self) -> None:
        """Give back the runs that this process gave up. No process died of them, so they count no crash, also where
        another process took them over meanwhile."""
        for gone, executed in list(self._given_up.items()):
            async with self.store.reading() as tx:
                left = await leases.held(tx, gone)
            for each in left:
                with suppress(ThreadNotFound):
                    async with self.store.writing() as tx:
                        await runs.give_back(tx, each.lease)
            async with self.store.writing() as tx:
                for lease in {*executed} - {each.lease for each in left}:
                    await leases.forgive(tx, lease)
                await leases.remove(tx, gone)
            del self._given_up[gone]

    def _set_alarm(self, renewed: float, seconds: float | None = None) -> None:
        self._lost_at = renewed + (LOST_SECONDS if seconds is None else seconds)
        if self._alarm is not None:
            self._alarm.cancel()
        left = self._lost_at - time.monotonic()
        self._alarm = asyncio.get_running_loop().call_later(left, self._give_up)

    def _give_up(self) -> None:
        """Time is up. Who stood still all the while renews first: if others took it for dead, its row is gone."""
        if self._id is None:
            return
        now = time.monotonic()
        if now - self._lost_at > _STOOD_STILL_SECONDS:
            self._set_alarm(now, RENEW_SECONDS)
            self._woken.set()
            return
        _logger.warning("The worker could not renew its row for %.0f seconds: its runs are given up.", LOST_SECONDS)
        self._lose_all()

    async def _compare(self, holds: dict[tuple[str, str], Hold], stored: list[HeldRun]) -> None:
        """Lose runs that were taken or deleted, stop runs that somebody stopped, give back runs that no task
        executes."""
        found = {each.lease: each for each in stored}
        for hold in holds.values():
            if hold.lease not in found:
                hold.lose()
            elif found[hold.lease].stop_by is not None and hold.stop is not None:
                hold.stop()
        held = {hold.lease for hold in self._holds.values()}
        strays = found.keys() - held
        for lease in strays & self._strays:
            with suppress(ThreadNotFound):  # deleted meanwhile
                async with self.store.writing() as tx:
                    await runs.give_back(tx, lease)
        self._strays = strays

    def _lose_all(self) -> None:
        """Break off all executions. The next run registers a new worker, whose runs they are not."""
        if self._id is not None:
            self._given_up[self._id] = [hold.lease for hold in self._holds.values()]
        self._id = None
        if self._alarm is not None:
            self._alarm.cancel()
        self.break_off()
        for lost in self._losses:
            lost()


@dataclass(slots=True)
class Slots:
    """Counts the runs that this process executes or is about to, against the `most` that it may.

    Only new questions wait for a slot. What goes on (resumed, claimed, decided about, or another agent's question)
    takes one anyhow: if it waited, a run could wait for itself. `queued` says whether questions wait in the store, and
    `wanted` whether more of them are due than there are slots: then a new question waits after them.
    """

    most: int
    queued: bool = False
    wanted: bool = False
    _taken: int = 0

    @property
    def free(self) -> int:
        return max(0, self.most - self._taken)

    @property
    def has_room(self) -> bool:
        """Whether a new question may begin at once."""
        return self.free > 0 and not self.wanted

    def take(self) -> None:
        self._taken += 1

    def give(self) -> None:
        self._taken -= 1
