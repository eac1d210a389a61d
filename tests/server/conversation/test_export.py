"""A conversation as a file, and what it has used."""

from __future__ import annotations

import asyncio
import io
import json
from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.messages.ai import UsageMetadata

from longthread.store.open import open_store
from longthread.store.transfer.archive_reader import ImportTarget, import_threads

SQL = "SELECT 40 + 2 AS n"
SCRIPT = [{"thought": "Count.", "action": "run_sql", "args": {"sql": SQL}}, {"finish": "It is 42 [q1]."}]


def export(running: Any, thread: str, format_: str, **options: Any) -> Any:
    answer = running.client.get(f"/api/conversations/{thread}/export", params={"format": format_, **options})
    assert answer.status_code == 200, answer.text
    named = (
        f"attachment; filename=\"conversation.{format_}\"; filename*=UTF-8''%E5%A4%9A%E5%B0%91%20How%20many.{format_}"
    )
    assert answer.headers["content-disposition"] == named
    return answer


def test_a_conversation_is_exported_to_read_and_as_data(serve: Any) -> None:
    running = serve(SCRIPT)
    thread = running.answer("多少/How many?")["thread_id"]
    running.client.post(f"/api/conversations/{thread}/messages/{running.history(thread)['messages'][1]['id']}/again")
    assert running.client.get(running.history(thread)["run"]["events"]).status_code in {200, 204}
    assert export(running, thread, "md").text == "# 多少/How many?\n\n## 多少/How many?\n\nIt is 42.\n"
    text = export(running, thread, "md", details=True).text
    assert text.count("## 多少/How many?") == 1
    assert "\n> Count.\n" in text and "\nIt is 42 [q1].\n" in text
    end = running.history(thread)["messages"][-1]["id"]
    assert f"*The chosen branch, up to the message {end}. Other branches are left out.*" in text
    alone = running.answer("多少/How many?")["thread_id"]
    assert "branch" not in export(running, alone, "md", details=True).text
    assert f"```sql\n{SQL}\n```" in text and text.count("It is 42 [q1].") == 1
    assert export(running, thread, "json").json() == running.history(thread)


def test_an_export_of_all_that_is_kept_is_imported(serve: Any, tmp_path: Any) -> None:
    running = serve(SCRIPT)
    thread = running.answer("多少/How many?")["thread_id"]
    data = export(running, thread, "jsonl").content
    assert json.loads(data.splitlines()[0])["threads"] == 1

    async def imported() -> int:
        async with open_store(f"sqlite:///{tmp_path}/other.db") as store:
            into = ImportTarget(user_id="default")
            return (await import_threads(store, io.BytesIO(data), "x.jsonl", into, lambda *_: None)).written

    assert asyncio.run(imported()) == 1


def test_a_cost_is_told_where_a_price_is_set(serve: Any) -> None:
    counts = {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110, "input_token_details": {"cache_read": 40}}
    reply = AIMessage("Yes.", usage_metadata=UsageMetadata(**counts))  # type: ignore[typeddict-item]
    prices = {"priced": {"input": 2_000_000, "output": 10_000_000, "cached": 500_000}}
    running = serve([reply], model="priced", prices=prices, currency="EUR")

    def used(**options: Any) -> Any:
        thread = running.answer("How many?", **options)["thread_id"]
        found = running.client.get(f"/api/conversations/{thread}/usage").json()
        assert found["currency"] == "EUR"
        return found["models"]

    [priced] = used()
    assert (priced["input_tokens"], priced["cached_tokens"], priced["output_tokens"]) == (100, 40, 10)
    assert (priced["model"], priced["fallback"], priced["cost"]) == ("priced", False, 60 * 2 + 40 * 0.5 + 10 * 10)
    [unpriced] = used(model="unpriced")
    assert (unpriced["model"], unpriced["input_tokens"], unpriced["cost"]) == ("unpriced", 100, None)


def test_the_usage_counts_all_branches(serve: Any) -> None:
    running = serve(SCRIPT)
    thread = running.answer("How many?")["thread_id"]
    path = f"/api/conversations/{thread}/usage"
    first = running.client.get(path).json()
    assert (first["runs"], first["tool_calls"], [each["calls"] for each in first["models"]]) == (1, 1, [2])
    answer = running.history(thread)["messages"][1]["id"]
    again = running.client.post(f"/api/conversations/{thread}/messages/{answer}/again").json()
    assert running.client.get(again["events"]).status_code == 200
    second = running.client.get(path).json()
    assert (second["runs"], second["tool_calls"], [each["calls"] for each in second["models"]]) == (2, 2, [4])
    [model] = second["models"]
    assert model["uncounted"] == 4 or model["input_tokens"] > 0
