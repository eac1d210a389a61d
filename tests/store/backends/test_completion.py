"""Work that is finished although its caller is cancelled."""

from __future__ import annotations

import asyncio

import pytest

from longthread.loop_bridge import to_the_end


class Work:
    """Work that ends when it is let go, with a result or an error."""

    def __init__(self, error: Exception | None = None) -> None:
        self.free = asyncio.Event()
        self.has_ended = False
        self._error = error

    async def __call__(self) -> str:
        await self.free.wait()
        self.has_ended = True
        if self._error is not None:
            raise self._error
        return "done"


async def cancelled(work: Work, times: int) -> asyncio.Task[str]:
    """A caller of the work that was cancelled so often before it ended."""
    caller = asyncio.create_task(to_the_end(work()))
    for _ in range(times):
        await asyncio.sleep(0)
        caller.cancel()
    await asyncio.sleep(0)
    assert not caller.done()
    work.free.set()
    await asyncio.wait([caller])
    assert work.has_ended
    return caller


@pytest.mark.parametrize("times", [1, 3])
async def test_a_cancelled_caller_waits_for_the_end_and_is_cancelled(times: int) -> None:
    assert (await cancelled(Work(), times)).cancelled()


@pytest.mark.parametrize("times", [1, 3])
async def test_a_cancelled_caller_is_cancelled_though_the_work_fails(times: int) -> None:
    assert (await cancelled(Work(ValueError("refused")), times)).cancelled()


async def test_the_result_and_the_error_come_out() -> None:
    assert await (await cancelled(Work(), 0)) == "done"
    with pytest.raises(ValueError, match="refused"):
        await (await cancelled(Work(ValueError("refused")), 0))
