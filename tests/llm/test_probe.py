"""A probe asks a model a few tiny questions, and tells how it speaks best."""

from __future__ import annotations

from typing import Any

import pytest

from longthread.llm.failures import ProviderError
from longthread.llm.model_facts import probe_protocol
from longthread.testing import ScriptedModel

CALL = {"action": "run_sql", "args": {"sql": "SELECT COUNT(*) FROM orders"}}
FENCE = "```sql\nSELECT COUNT(*) FROM orders\n```"


@pytest.mark.parametrize(
    ("replies", "protocol"),
    [
        ([CALL, CALL], "native"),
        (["I would count them.", FENCE, FENCE], "sql"),
        ([CALL, "59 [q3]", FENCE, FENCE], "sql"),
        ([CALL, {"action": "run_sql", "args": {"sql": "how many"}}, FENCE, FENCE], "sql"),
        (["59", "59 orders", "I cannot."], "json"),
    ],
)
async def test_the_first_way_that_works_is_chosen(replies: list[Any], protocol: str) -> None:
    model = ScriptedModel(replies, tool_calling=True)
    assert await probe_protocol(model) == protocol
    assert len(model.calls) <= 4


async def test_a_model_without_tools_is_offered_none() -> None:
    model = ScriptedModel([FENCE, FENCE], tool_calling=False)
    assert await probe_protocol(model) == "sql"
    assert not any(call.tools for call in model.calls)


async def test_a_model_that_fails_is_no_answer() -> None:
    with pytest.raises(ProviderError):
        await probe_protocol(ScriptedModel([ProviderError("down", status_code=500)], tool_calling=True))
