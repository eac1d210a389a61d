"""The context windows that models' endpoints report."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tests.contract.base import Contract

from longthread.store import endpoints
from longthread.store.driver import Driver
from longthread.store.endpoints import AssumedWindow

HERE = AssumedWindow("model", "http://here/v1", 32_000)
OTHERS = (
    AssumedWindow("other", "http://here/v1", 32_000),
    AssumedWindow("model", "http://there/v1", 32_000),
    AssumedWindow("model", "http://here/v1", 16_000),
)


class WindowContract(Contract):
    """`longthread.store.endpoints`."""

    async def test_a_window_is_known_for_its_model_endpoint_and_assumption(self, store: Driver) -> None:
        async with store.writing() as tx:
            await endpoints.save_window(tx, HERE, 16_000)
            await endpoints.save_window(tx, HERE, 8_192)
        async with store.reading() as tx:
            assert await endpoints.find_window(tx, HERE) == 8_192
            assert [await endpoints.find_window(tx, other) for other in OTHERS] == [None, None, None]

    async def test_a_window_that_was_learned_long_ago_is_tried_again(self, store: Driver) -> None:
        async with store.writing() as tx:
            await endpoints.save_window(tx, HERE, 8_192)
            later = datetime.now(UTC) + endpoints.KEPT
            assert await endpoints.find_window(tx, HERE, now=later - timedelta(hours=1)) == 8_192
            assert await endpoints.find_window(tx, HERE, now=later + timedelta(hours=1)) is None

    async def test_a_protocol_is_known_for_its_model_and_endpoint(self, store: Driver) -> None:
        async with store.writing() as tx:
            assert await endpoints.find_protocol(tx, "model", "http://here/v1") is None
            await endpoints.save_protocol(tx, "model", "http://here/v1", "json")
            await endpoints.save_protocol(tx, "model", "http://here/v1", "sql")
            others = [("other", "http://here/v1"), ("model", "http://there/v1")]
            assert [await endpoints.find_protocol(tx, *each) for each in others] == [None, None]
            assert await endpoints.find_protocol(tx, "model", "http://here/v1") == "sql"
            await endpoints.save_protocol(tx, "model", "http://there/v1", "native")
            await endpoints.save_protocol(tx, "second", "http://here/v1", "json")
            assert await endpoints.list_protocols(tx) == {"model": "native", "second": "json"}
