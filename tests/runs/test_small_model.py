"""Replies that a model of 1.5 billion parameters gave (Qwen2.5-Coder), played to the analyst.

The texts in capitals were recorded, letter by letter; what follows them in a script is what it would need to say.
"""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.analysts import OpenAnalyst
from tests.script import call, events_of, finish

from longthread.model.run import Event
from longthread.runs.analyst import Analyst
from longthread.testing import ScriptedModel
from longthread.view.tokens import estimate

FIRST = "59 [q3]"
"""Its first reply of all, copied from an example in the instructions."""
PLAN = """\
I will follow these steps.

### Step 1
```json
{"name": "list_tables", "arguments": {}}
```

### Step 2
```json
{"name": "run_sql", "arguments": {"sql": "SELECT COUNT(*) FROM businesses"}}
```
"""
ECHO = """\
<tools>
{"type": "function", "function": {"name": "run_sql", "description": "Runs", "parameters": {"type": "object", \
"properties": {"sql": {"type": "string"}}, "required": ["sql"]}}}
</tools>

```json
{"name": "run_sql", "arguments": {"sql": "SELECT COUNT(*) FROM business WHERE is_open = 1"}}
```"""
INVENTED = """\
{"thought": "t", "action": "list_tables", "args": {}}
Observation: There are 2 tables: papers and authors.

{"thought": "t", "action": "run_sql", "args": {"sql": "SELECT 1"}}
Observation: The result is 4 [q3]."""
FENCE = "```sql\nSELECT count(*) FROM business\n```"
REPEATED = "SELECT COUNT(*) FROM businesses"
REPORT = "There are 10 businesses open [q3]."
"""Its report at a pause, after four failed queries."""


@pytest.fixture
def yelp(tmp_path: Path) -> str:
    path = tmp_path / "yelp.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE business (bid INT, name TEXT, is_open INT)")
        connection.executemany("INSERT INTO business VALUES (?, ?, ?)", [(1, "A", 1), (2, "B", 0), (3, "C", 1)])
        connection.commit()
    return str(path)


async def ask(analyst: Analyst, question: str, source: str, **options: Any) -> list[Event]:
    handle = await analyst.ask(question, source=source, thread_id="t", user_id=analyst.settings.user, **options)
    return await events_of(handle)


def results(events: list[Event]) -> list[tuple[str, Any]]:
    """The calls of a run, each with its data or the type of its error."""
    steps = [event.data for event in events if event.type == "step_finished"]
    seen = [(step["action"], step["observation"]) for step in steps]
    return [(action, each["data"] if each["ok"] else each["error"]["type"]) for action, each in seen]


def sent(model: ScriptedModel, number: int = -1) -> str:
    return "\n".join(message.text for message in model.calls[number].messages)


@pytest.mark.parametrize("question", ["How many businesses are there?", "有多少家商户？"])
async def test_an_answer_that_cites_a_query_that_never_ran(open_analyst: OpenAnalyst, yelp: str, question: str) -> None:
    model = ScriptedModel([FIRST, call("run_sql", sql="SELECT count(*) FROM business"), "3 [q1]."], tool_calling=True)
    events = await ask(await open_analyst(model), question, yelp)
    assert events[-1].data["answer"] == "3 [q1]."
    assert "There is no query [q3]." in model.calls[1].messages[-1].text
    assert [event.data["text"] for event in events if event.type == "text_delta"] != [FIRST]


@pytest.mark.parametrize("protocol", ["native", "json", "sql"])
async def test_no_example_holds_a_value(open_analyst: OpenAnalyst, yelp: str, protocol: Any) -> None:
    """What a prompt shows as an example comes back as an answer."""
    model = ScriptedModel(["{half", finish("Hello.")], tool_calling=True)
    await ask(await open_analyst(model), "Hello", yelp, protocol=protocol)
    for made in model.calls:
        told = "\n".join(message.text for message in made.messages) + json.dumps(made.tools)
        assert not re.search(r"\[q\d|\bq\d|\b59\b|There are \d", told), told


async def test_what_stands_before_the_schema(open_analyst: OpenAnalyst, yelp: str) -> None:
    """2,211 tokens stood before the question, 942 of them of tools that no conversation had asked for."""
    models = {protocol: ScriptedModel([finish("Hello.")], tool_calling=True) for protocol in ("native", "sql")}
    sizes: dict[str, int] = {}
    for protocol, model in models.items():
        await ask(await open_analyst(model), "Hello", yelp, protocol=protocol)
        [made] = model.calls
        before = made.messages[0].text.partition("CREATE TABLE")[0]
        sizes[protocol] = estimate(before) + (estimate(json.dumps(made.tools)) if made.tools else 0)
    assert models["native"].calls[0].tool_names == ["sample_rows", "run_sql"]
    assert (sizes["native"] <= 600, sizes["sql"] <= 150) == (True, True), sizes


async def test_the_first_of_several_planned_calls_is_run(open_analyst: OpenAnalyst, yelp: str) -> None:
    model = ScriptedModel([PLAN, "ok"], tool_calling=True)
    events = await ask(await open_analyst(model), "Which tables?", yelp)
    assert [action for action, _ in results(events)] == ["list_tables"]
    assert "### Step 2" not in sent(model), "what was planned without the result is not shown as done"


async def test_a_call_behind_an_echo_of_the_tools_is_run(open_analyst: OpenAnalyst, yelp: str) -> None:
    model = ScriptedModel([ECHO, "2 [q1]."], tool_calling=True)
    [(action, data)] = results(await ask(await open_analyst(model), "How many are open?", yelp))
    assert (action, data["rows"]) == ("run_sql", [[2]])


@pytest.mark.parametrize("reply", [call("run_sql", sql=FENCE), FENCE, {"sql": FENCE}, {"query": FENCE}])
async def test_sql_in_a_fence_is_run_wherever_it_stands(open_analyst: OpenAnalyst, yelp: str, reply: Any) -> None:
    written = reply if isinstance(reply, str) or "action" in reply else json.dumps(reply)
    model = ScriptedModel([written, "3 [q1]."], tool_calling=True)
    events = await ask(await open_analyst(model), "How many?", yelp)
    [(action, data)] = results(events)
    assert (action, data["rows"], events[-1].data["answer"]) == ("run_sql", [[3]], "3 [q1].")


async def test_results_that_a_model_invents_are_not_read_and_it_is_stopped_before(
    open_analyst: OpenAnalyst, yelp: str
) -> None:
    model = ScriptedModel([INVENTED, finish("ok")])
    events = await ask(await open_analyst(model), "Which tables?", yelp, protocol="json")
    assert [action for action, _ in results(events)] == ["list_tables"]
    assert "papers and authors" not in sent(model)
    assert all(made.options["stop"] for made in model.calls)


@pytest.mark.parametrize(
    ("protocol", "expected", "other"),
    [("native", "A call of one tool", '"action"'), ("json", '"action"', "A call of one")],
)
async def test_a_reply_that_cannot_be_read_stands_once_and_its_protocol_is_named(
    open_analyst: OpenAnalyst, yelp: str, protocol: Any, expected: str, other: str
) -> None:
    broken = '{"name": "run_sql", "arguments": {"sql": "SELECT COUNT(*) FROM busi'
    model = ScriptedModel([broken, finish("Hello.")], tool_calling=protocol == "native")
    await ask(await open_analyst(model), "Hello", yelp, protocol=protocol)
    correction = model.calls[1].messages[1:]
    told = "\n".join(message.text for message in correction)
    assert told.count("FROM busi") == 1
    assert expected in told and other not in told


@pytest.mark.parametrize("protocol", ["native", "sql"])
async def test_the_same_failing_statement_is_told_more_and_ends_in_a_pause(
    open_analyst: OpenAnalyst, yelp: str, protocol: Any
) -> None:
    same: Any = call("run_sql", sql=REPEATED) if protocol == "native" else f"```sql\n{REPEATED}\n```"
    model = ScriptedModel([*[same] * 4, REPORT], tool_calling=protocol == "native")
    events = await ask(await open_analyst(model), "How many are open?", yelp, protocol=protocol, max_steps=12)
    errors = [data for _, data in results(events)]
    assert errors[:2] == ["unknown_table", "sql_repeated"] and len(errors) <= 4
    assert (events[-1].type, events[-1].data["reason"]) == ("paused", "repeated")
    assert "10" not in events[-1].data["summary"], "no query gave that number"


async def test_a_pattern_that_no_table_has_lists_the_others(open_analyst: OpenAnalyst, yelp: str) -> None:
    model = ScriptedModel([call("list_tables", pattern="Nature"), "ok"], tool_calling=True)
    await ask(await open_analyst(model), "papers in Nature", yelp)
    told = model.calls[1].messages[-1].text
    assert "business: 3" in told and "No table's name fits 'Nature'" in told


@pytest.mark.parametrize("protocol", ["native", "json", "sql"])
async def test_one_row_is_seen_in_4096_tokens_and_the_columns_in_twenty_turns(
    open_analyst: OpenAnalyst, tmp_path: Path, protocol: Any
) -> None:
    path = tmp_path / "wide.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        for n in range(12):
            connection.execute(
                f"CREATE TABLE table_number_{n} (id INTEGER PRIMARY KEY, customer_name TEXT, amount REAL)"
            )
        connection.execute("INSERT INTO table_number_3 VALUES (1, 'x', 12345.5)")
        connection.commit()
    sql = "SELECT amount FROM table_number_3 WHERE customer_name = 'x' AND {0} = {0}"
    replies: list[Any] = []
    for n in range(20):
        made: Any = call("run_sql", sql=sql.format(n)) if protocol != "sql" else f"```sql\n{sql.format(n)}\n```"
        replies += [made, finish(f"It is 12345.5 [q{n + 1}].") if protocol != "sql" else f"It is 12345.5 [q{n + 1}]."]
    model = ScriptedModel(replies, tool_calling=protocol == "native")
    analyst = await open_analyst(model, memory_context_window=4_096)
    for n in range(20):
        events = await ask(analyst, f"Tell me about the amount of x, in case {n}.", str(path), protocol=protocol)
        assert events[-1].type == "finished"
        writing, answering = model.calls[-2:]
        assert "customer_name" in "\n".join(message.text for message in writing.messages)
        assert "12345.5" in answering.messages[-1].text
