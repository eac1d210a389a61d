"""The SQL protocol, schemas and fallbacks in windows that are smaller than they were thought to be."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.analysts import OpenAnalyst
from tests.script import call, events_of, finish

from longthread.llm.failures import ProviderError
from longthread.llm.model_facts import ContextWindows, probe_protocol
from longthread.llm.server_facts import ServerWindow
from longthread.messages.message import Message
from longthread.model.run import Event
from longthread.runs.analyst import Analyst
from longthread.runs.inspect import calls_of, look, sent
from longthread.settings import Settings
from longthread.store import endpoints, runs
from longthread.store.driver import Driver
from longthread.testing import ScriptedModel
from longthread.view.tokens import estimate

pytestmark = pytest.mark.one_backend


def fence(sql: str) -> str:
    return f"```sql\n{sql}\n```"


def is_writing(messages: list[Message]) -> bool:
    return messages[0].text.startswith("You write")


def size_of(messages: list[Message]) -> int:
    return sum(estimate(message.text) for message in messages)


async def ask(analyst: Analyst, question: str, source: str, protocol: Any = "sql") -> list[Event]:
    handle = await analyst.ask(question, source=source, protocol=protocol, thread_id="t", user_id=analyst.settings.user)
    return await events_of(handle)


def warnings(events: list[Event]) -> list[str]:
    return [str(event.data["message"]) for event in events if event.type == "warning"]


@pytest.fixture
def wide(tmp_path: Path) -> str:
    """Twelve tables of long columns, and one of 300 rows of some words."""
    path = tmp_path / "wide.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        for table in range(12):
            columns = ", ".join(f"some_long_column_name_{table}_{n} TEXT" for n in range(14))
            connection.execute(f"CREATE TABLE table_number_{table} (id INTEGER PRIMARY KEY, {columns})")
        connection.execute("CREATE TABLE big (id INTEGER PRIMARY KEY, note TEXT, city TEXT)")
        rows = [(n, f"a note about item {n} which is not short", f"City {n}") for n in range(300)]
        connection.executemany("INSERT INTO big VALUES (?, ?, ?)", rows)
        connection.commit()
    return str(path)


@pytest.mark.parametrize("window", [4_096, 8_192])
async def test_a_result_that_does_not_fit_is_answered_from_the_rows_that_do(
    open_analyst: OpenAnalyst, wide: str, window: int
) -> None:
    model = ScriptedModel([fence("SELECT *, note || note || note AS n3 FROM big"), "Many [q1]."])
    analyst = await open_analyst(model, memory_context_window=window)
    events = await ask(analyst, "Describe the notes.", wide)
    assert (events[-1].type, events[-1].data["answer"]) == ("finished", "Many [q1].")
    shown = model.calls[-1].messages[-1].text
    assert "a note about item 0" in shown and '"q1"' in shown and size_of(model.calls[-1].messages) < window


async def test_short_tables_are_not_taken_for_a_prompt_that_was_cut(open_analyst: OpenAnalyst, wide: str) -> None:
    """The server counts what it was sent: a few rows of each earlier result."""

    def reply(messages: list[Message]) -> Message:
        size = size_of(messages)
        usage: Any = {"input_tokens": size, "output_tokens": 20, "total_tokens": size + 20}
        text = fence(f"SELECT id, note, city FROM big WHERE id > {size % 100}") if is_writing(messages) else "Many."
        return Message("assistant", text, usage_metadata=usage)

    model = ScriptedModel(reply, window=32_000)
    model.address = "http://127.0.0.1:9/v1"
    analyst = await open_analyst(model)
    for n in range(4):
        events = await ask(analyst, f"Describe the notes number {n}", wide)
        assert (events[-1].type, warnings(events)) == ("finished", [])


async def test_a_conversation_counts_as_the_short_tables_that_are_sent(open_analyst: OpenAnalyst, wide: str) -> None:
    """The log has 300 rows of each result, and the model reads three: twelve questions fit into a small window."""
    model = ScriptedModel(lambda messages: Message("assistant", fence("SELECT id, note, city FROM big")))
    analyst = await open_analyst(model, memory_context_window=8_192)
    questions = [f"Which notes are there in city {n}?" for n in range(12)]
    for question in questions:
        await ask(analyst, question, wide)
    shown = [message.text for message in model.calls[-1].messages if message.role == "user"]
    assert [text.splitlines()[-1] for text in shown] == questions
    tables = [text for text in shown if "3 of 300 rows" in text]
    assert len(tables) == 11 and size_of(model.calls[-1].messages) < 6_000
    async with analyst.store.reading() as tx:
        calls = await calls_of(tx, "t")
        inspected = await look(tx, calls, len(calls))
        assert (await sent(tx, calls[-1])).messages == model.calls[-1].messages
    assert inspected.tokens == sum(entry.tokens for entry in inspected.entries) < 2_500


async def test_a_conversation_that_described_a_table_goes_on_in_sql(open_analyst: OpenAnalyst, wide: str) -> None:
    """A description counts as the text that is sent, and its number of rows is no table."""
    script = [call("describe_table", table="big"), finish("It has notes.")]

    def reply(messages: list[Message]) -> Any:
        return fence("SELECT count(*) AS n FROM big") if is_writing(messages) or not script else script.pop(0)

    model = ScriptedModel(reply, tool_calling=True)
    analyst = await open_analyst(model)
    assert (await ask(analyst, "What is in big?", wide, "native"))[-1].type == "finished"
    for question in ("How many notes are there?", "And in all?"):
        events = await ask(analyst, question, wide)
        assert (events[-1].type, "300" in str(events[-1].data["answer"])) == ("finished", True), events[-1].data
    async with analyst.store.reading() as tx:
        calls = await calls_of(tx, "t")
        inspected = await look(tx, calls, len(calls))
        assert (await sent(tx, calls[-1])).messages == model.calls[-1].messages
    texts = [message.text for message in model.calls[-1].messages[1:]]
    assert any("city" in text for text in texts), "the description is sent"
    assert inspected.tokens == sum(entry.tokens for entry in inspected.entries) <= sum(map(estimate, texts)) + 60


@pytest.mark.parametrize("protocol", ["native", "sql"])
async def test_a_smaller_window_has_a_smaller_schema(open_analyst: OpenAnalyst, wide: str, protocol: str) -> None:
    def reply(messages: list[Message]) -> Any:
        if (size := size_of(messages)) > 2_200:
            return ProviderError(
                f"maximum context length is 4096 tokens, and there are {size + 3_000}", status_code=400
            )
        return fence("SELECT 1") if is_writing(messages) else "Hello."

    model = ScriptedModel(reply, tool_calling=True)
    analyst = await open_analyst(model)
    events = await ask(analyst, "How many rows has table_number_11?", wide, protocol)
    assert events[-1].type == "finished", events[-1].data
    first, second = model.calls[:2]
    assert first.messages[0].text.count("CREATE TABLE") == 13
    schema = second.messages[0].text
    assert 1 <= schema.count("CREATE TABLE") < 8 and "-- Other tables:" in schema and "left out" not in schema
    if protocol == "native":
        assert [set(each.tool_names) >= {"list_tables"} for each in (first, second)] == [False, True]


async def test_a_fallback_is_sent_what_is_stored(tmp_path: Path, store_address: str, shop: str) -> None:
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 90)"
    rows = call("run_sql", sql=f"{numbers} SELECT i, 'words and words ' || i FROM n")
    script = [each for n in range(5) for each in (rows, finish(f"Done [q{n + 1}]."))]
    errors = [ProviderError("maximum context length is 6000 tokens, and there are 9999", status_code=400)]

    def primary(messages: list[Message]) -> Any:
        if script:
            return script.pop(0)
        return errors.pop() if errors else ProviderError("the server is broken", status_code=500)

    first = ScriptedModel(primary, tool_calling=True, name="one")
    second = ScriptedModel(lambda messages: "From the fallback.", tool_calling=True, name="two")
    given: Any = {"data_dir": tmp_path, "database": store_address, "memory_enable_summary": False}
    settings = Settings.load(env_file=None, **given, model="test:one", fallback_model="test:two", retry_attempts=0)
    async with Analyst.open(settings, models=lambda name, _: first if "one" in name else second) as analyst:
        for n in range(6):
            events = await ask(analyst, f"Question {n}?", shop, "auto")
        assert events[-1].data["answer"] == "From the fallback."
        async with analyst.store.reading() as tx:
            step = [each for each in await runs.steps_from(tx, "t", 0) if each.kind == "model"][-1]
            again = await sent(tx, step)
    made = second.calls[-1]
    assert [(each.role, each.text) for each in again.messages] == [(each.role, each.text) for each in made.messages]


async def test_a_model_of_the_name_at_another_address_is_not_probed(store: Driver) -> None:
    known = ContextWindows(store, Settings.load(env_file=None))
    known._told["http://127.0.0.1:11434/v1", "qwen2.5"] = ServerWindow(4_096, server="Ollama"), float("inf")
    own, paid = (ScriptedModel(lambda messages: fence("SELECT 1"), name="qwen2.5") for _ in range(2))
    own.address, paid.address = "http://127.0.0.1:11434/v1", "https://api.example.com/v1"
    assert (await known.probe_own(paid), paid.calls) == (None, [])
    assert await known.probe_own(own) == "sql"
    assert (await known.probe_own(own), await known.protocol_of(own)) == (None, "sql")  # it is asked once
    assert len(own.calls) == 3


def cut(text: str) -> Callable[[list[Message]], Message]:
    return lambda messages: Message("assistant", text, response_metadata={"finish_reason": "length"})


@pytest.mark.parametrize("tools", [True, False])
async def test_a_probe_that_was_cut_off_finds_nothing(store: Driver, tools: bool) -> None:
    model = ScriptedModel(cut("<think>Let me see, the user wants"), tool_calling=tools, name="m")
    model.address = "http://127.0.0.1:11434/v1"
    assert await probe_protocol(model) is None
    known = ContextWindows(store, Settings.load(env_file=None))
    known._told[model.address, "m"] = ServerWindow(4_096, server="Ollama"), float("inf")
    asked = len(model.calls)
    assert [await known.probe_own(model) for _ in range(2)] == [None, None]
    assert len(model.calls) <= 2 * asked, "it is asked once in a process"
    async with store.reading() as tx:
        assert await endpoints.list_protocols(tx) == {}


async def test_a_server_that_takes_tools_no_more_is_asked_without_them(open_analyst: OpenAnalyst, shop: str) -> None:
    class Changed(ScriptedModel):
        async def stream(self, messages: Any, tools: Any = (), options: Any = None) -> Any:
            if tools:
                raise ProviderError("registry.ollama.ai/x does not support tools", status_code=400)
            async for chunk in super().stream(messages, tools, options):
                yield chunk

    model = Changed([call("run_sql", sql="SELECT COUNT(*) AS n FROM customers"), finish("3 [q1].")], tool_calling=True)
    analyst = await open_analyst(model)
    async with analyst.store.writing() as tx:
        await endpoints.save_protocol(tx, model.name, model.address, "native")
    events = await ask(analyst, "How many?", shop, "auto")
    assert (events[-1].type, events[-1].data.get("answer")) == ("finished", "3 [q1].")


async def test_what_two_malformed_replies_taught_holds_for_the_next_question(
    open_analyst: OpenAnalyst, shop: str
) -> None:
    def reply(messages: list[Message]) -> str:
        if is_writing(messages):
            return fence("SELECT COUNT(*) AS n FROM customers")
        return "3 [q1]." if messages[0].text.startswith("Answer the question") else '{"thought": "half'

    model = ScriptedModel(reply, tool_calling=True)
    analyst = await open_analyst(model)
    counts = []
    for question in ("Describe the customers.", "Describe them now."):
        before = len(model.calls)
        assert (await ask(analyst, question, shop, "auto"))[-1].data["answer"] == "3 [q1]."
        counts.append(len(model.calls) - before)
    assert counts == [4, 2]


async def test_the_schema_of_a_conversation_stays_the_same(open_analyst: OpenAnalyst, wide: str) -> None:
    names = ["big", *(f"table_number_{n}" for n in range(9))]
    model = ScriptedModel([each for name in names for each in (fence(f"SELECT * FROM {name}"), "Yes.")])
    analyst = await open_analyst(model, memory_context_window=6_000)
    for name in names:
        await ask(analyst, f"Describe {name}.", wide)
    prompts = {made.messages[0].text for made in model.calls if is_writing(made.messages)}
    assert len(prompts) == 1


@pytest.mark.parametrize(
    "wish", ["Amounts in thousands of euros, only Germany and France.", "金额以千欧元为单位，只看德国和法国。"]
)
async def test_what_was_asked_of_answers_holds_for_those_that_follow(
    open_analyst: OpenAnalyst, shop: str, wish: str
) -> None:
    turn = (fence("SELECT COUNT(*) AS n FROM customers"), "3 [q1].")
    model = ScriptedModel(["Understood.", *turn, fence("SELECT 2 AS n"), "2 [q2]."])
    analyst = await open_analyst(model)
    for question in (wish, "How many customers?", "And how many now?"):
        await ask(analyst, question, shop)
    answerings = [made.messages[-1].text for made in model.calls if made.messages[0].text.startswith("Answer the")]
    assert [text.count(wish) for text in answerings] == [1, 1]
    assert "How many customers?" not in answerings[1]
    async with analyst.store.reading() as tx:
        step = [each for each in await runs.steps_from(tx, "t", 0) if each.kind == "model"][-1]
        assert [each.text for each in (await sent(tx, step)).messages][-1] == answerings[1]


async def test_a_question_whose_run_failed_is_no_instruction(open_analyst: OpenAnalyst, shop: str) -> None:
    failure = ProviderError("bad request", status_code=400)
    model = ScriptedModel([failure, fence("SELECT COUNT(*) AS n FROM customers"), "3 [q1]."])
    analyst = await open_analyst(model)
    assert (await ask(analyst, "Which city is first?", shop))[-1].type == "failed"
    assert (await ask(analyst, "Describe the customers.", shop))[-1].data["answer"] == "3 [q1]."
    assert "Which city" not in model.calls[-1].messages[-1].text
