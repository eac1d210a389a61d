"""What runs have used: the provider's counts, and whose they are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from longthread import Analyst, Settings
from longthread.llm.failures import TimedOut
from longthread.llm.langchain import LangChainModel
from longthread.runs.inspect import usage_of
from longthread.testing import ScriptedModel
from longthread.testing.langchain import ScriptedChatModel


@pytest.mark.parametrize("kind", [ScriptedModel, lambda script: LangChainModel(ScriptedChatModel(script))])
async def test_what_the_fallback_answered_is_counted_apart(
    tmp_path: Path, store_address: str, kind: Callable[[list[Any]], Any]
) -> None:
    given = {"model": "first", "fallback_model": "second", "retry_attempts": 0}
    settings = Settings.of(data_dir=tmp_path, database=store_address, **given)
    model = kind(["Yes.", TimedOut("late"), "No."])
    async with Analyst.open(settings, models=lambda name, own: model) as analyst:
        thread = None
        for question in ("Is it?", "And now?"):
            handle = await analyst.ask(question, user_id="ada", source="demo", thread_id=thread)
            assert (await handle.wait()).type == "finished"
            thread = handle.thread_id
        async with analyst.store.reading() as tx:
            used = await usage_of(tx, str(thread), user_id="ada")
    assert [(name, each.calls) for name, each in used.models.items()] == [("first", 1)]
    assert [(name, each.calls) for name, each in used.fallbacks.items()] == [("first", 1)]
    assert used.fallbacks["first"].input_tokens > 0
