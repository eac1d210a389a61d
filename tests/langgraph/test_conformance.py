"""LangGraph's own conformance suite, on what the checkpointer offers today."""

from __future__ import annotations

from collections.abc import AsyncIterator

from langgraph.checkpoint.conformance import checkpointer_test, validate

from longthread.langgraph.saver.async_saver import AsyncLongthreadSaver
from longthread.store.driver import Driver


async def test_the_checkpointer_conforms(store: Driver) -> None:
    @checkpointer_test(name="longthread")
    async def saver() -> AsyncIterator[AsyncLongthreadSaver]:
        yield AsyncLongthreadSaver(store)

    report = await validate(saver)
    failures = {
        name: result.failures for name, result in report.results.items() if result.detected and not result.passed
    }
    assert not failures
    assert report.passed_all_base()
