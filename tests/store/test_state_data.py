"""`conversations.state_data` is the fold of a thread's entries, computed by the database alone."""

from __future__ import annotations

import itertools
import json
import random
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.store.conftest import Plain

from longthread.model.entry import Draft, Entry, ToolCall
from longthread.model.fold import STEP, state_of
from longthread.model.ids import new_id
from longthread.store import log
from longthread.store.driver import Driver

TABLES = ["rockets", "sites", "发射场", 'we"ird\\', "a.b"]
ACTIONS = ["list_tables", "describe_table", "sample_rows", "run_sql", "json_parse_error", "other", "工具"]

# Text in a column holds no NUL and no half of a surrogate pair. JSON in it may hold both, escaped; a call's arguments,
# which are not escaped, only the first.
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=12)


def values(strings: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    leaf = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | strings
    special = st.sampled_from(["运载火箭", "'; --", "\x00", "\u2028", "\x1f\x7f", "Observation: {}"])
    return st.recursive(
        leaf | special,
        lambda item: st.lists(item, max_size=3) | st.dictionaries(TEXT, item, max_size=3),
        max_leaves=6,
    )


JSON = values(st.text(max_size=6) | st.just("\ud800"))
ARGUMENT = values(TEXT)
TRUTH = st.sampled_from([True, True, True, False, False, None, 0, 1, 0.0, -0.0, 2.5, "", "yes", [], [0], {}, {"a": 0}])


@st.composite
def asks(draw: st.DrawFn) -> Draft:
    text = draw(st.sampled_from(["继续", "go on", "", " ", "有哪些？"]) | TEXT)
    offered = {
        "kind": ["question"],
        "source": ["a.db", "a.db", "数据.db", None],
        "fingerprint": ["f1", "f1", "f2", None],
        "max_steps": [12, 3, None],
        "continues": [True, True, False, None, 1, "true"],
    }
    note = {key: draw(st.sampled_from(some)) for key, some in offered.items() if draw(st.integers(0, 5))}
    return Draft(id="", role="user", text=text, metadata=note)


@st.composite
def observations(draw: st.DrawFn) -> str:
    table = st.sampled_from(TABLES)
    data = st.fixed_dictionaries({}, optional={
        "tables": st.lists(table | st.sampled_from([{"name": "x"}, ["y"], 3, True, False, None]), max_size=4) | JSON,
        "table_name": table | st.sampled_from([None, 3, ["y"], {}]),
        "columns": st.dictionaries(TEXT, JSON, max_size=2) | JSON,
        "query": st.sampled_from(["q1", "q22", "last", None]),
    })  # fmt: skip
    good = st.fixed_dictionaries({"ok": st.just(True), "data": data})
    odd = st.fixed_dictionaries({"ok": TRUTH, "data": data | JSON}, optional={"error": JSON})
    bad = st.fixed_dictionaries({"ok": st.just(False)}, optional={"error": JSON, "data": data})
    whole = json.dumps(draw(good | good | odd | bad | JSON), indent=draw(st.sampled_from([None, 1])))
    text = draw(st.sampled_from([whole, whole, whole, whole[1:], "NaN", "[-Infinity]"]))
    return draw(st.sampled_from(["", "", "Observation: "])) + text


def arguments() -> st.SearchStrategy[dict[str, Any]]:
    table = st.sampled_from([*TABLES, *TABLES, None, 3])
    return st.fixed_dictionaries({}, optional={"table": table, "sql": TEXT | ARGUMENT, "more": ARGUMENT})


@st.composite
def exchanges(draw: st.DrawFn) -> list[Draft]:
    """Calls of one message and their results: most of them, in any order, some of them twice or of no call."""
    ids = draw(st.lists(st.sampled_from(["c1", "c2", "c3", ""]), min_size=1, max_size=3))
    calls = [ToolCall(one, draw(st.sampled_from(ACTIONS)), draw(arguments())) for one in ids]
    note = draw(st.sampled_from([{}, {}, {}, {"kind": "malformed"}, {"kind": "summary"}, {"kind": "answer"}]))
    answered = draw(st.permutations([*ids, *ids, "c1", None]))[: draw(st.integers(0, 4))]
    results = [
        Draft("", "tool", draw(observations() | TEXT), tool_call_id=one, metadata=draw(imported())) for one in answered
    ]
    return [Draft("", "assistant", draw(TEXT), calls, metadata=note), *results]


def remarks() -> st.SearchStrategy[Draft]:
    notes = st.sampled_from([{}, {"kind": "answer"}, {"kind": "answer"}, {"kind": "summary"}, {"kind": "malformed"}])
    roles = st.sampled_from(["assistant", "assistant", "assistant", "system", "tool"])
    return st.builds(
        lambda text, note, role, more: Draft("", role, text, metadata=note | more), TEXT, notes, roles, imported()
    )


def imported() -> st.SearchStrategy[dict[str, Any]]:
    """What an import notes of a step: mostly nothing."""
    step = st.dictionaries(TEXT, ARGUMENT, max_size=3) | st.sampled_from([False, False, True, None, 0, "no", []])
    none: st.SearchStrategy[dict[str, Any]] = st.just({})
    return none | none | st.fixed_dictionaries({STEP: step})


Told = list[tuple[list[Draft], int]]
"""What is added to a thread, one behind the other, each with how many entries of the branch are left behind first."""


def threads() -> st.SearchStrategy[Told]:
    several = exchanges() | exchanges() | asks().map(lambda draft: [draft]) | remarks().map(lambda draft: [draft])
    return st.lists(st.tuples(several, st.sampled_from([0] * 12 + [1, 2, 5])), max_size=14)


async def write(store: Driver, thread_id: str, told: Told) -> list[Entry]:
    """The entries of the thread's branch after all that was told."""
    branch: list[Entry] = []
    number = itertools.count()
    async with store.writing() as tx:
        await log.create_thread(tx, thread_id, user_id="u")
        for drafts, back in told:
            del branch[len(branch) - min(back, len(branch)) :]
            named = [replace(draft, id=str(next(number))) for draft in drafts]
            branch += await log.extend(tx, thread_id, named, parent=branch[-1].seq if branch else 0)
    return branch


def state_data(plain: Plain, thread_id: str) -> Any:
    [row] = plain("SELECT CAST(state_data AS TEXT) FROM conversations WHERE thread_id = ?", [thread_id])
    return json.loads(row[0], object_pairs_hook=once)


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object in which no key is twice."""
    assert len(dict(pairs)) == len(pairs)
    return dict(pairs)


def same(given: Any, wanted: Any) -> bool:
    """Equal, with the same order of keys and the same kinds of numbers."""
    return json.dumps(given) == json.dumps(wanted)


def shown(value: Any, backend: str) -> Any:
    """A value as the backend's view shows it: PostgreSQL holds no NUL and no half of a surrogate pair."""
    if backend == "sqlite":
        return value
    if isinstance(value, dict):
        return {shown(key, backend): shown(item, backend) for key, item in value.items()}
    if isinstance(value, list):
        return [shown(item, backend) for item in value]
    return re.sub("[\x00\ud800-\udfff]", "\ufffd", value) if isinstance(value, str) else value


@settings(max_examples=examples(50), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(told=threads(), gone=st.sampled_from([0, 0, 0, 1, 3, 9]), deleted=st.booleans())
async def test_state_data_is_the_fold_of_the_active_branch(
    store: Driver, plain: Plain, told: Told, gone: int, deleted: bool
) -> None:
    thread_id = new_id()
    branch = await write(store, thread_id, told)
    if gone:
        plain("UPDATE threads SET first_seq = ? WHERE id = ?", [gone + 1, thread_id])
    if deleted:
        plain("DELETE FROM entries WHERE thread_id = ? AND seq <= ?", [thread_id, gone])
    for end in sorted({0, len(branch) // 3, len(branch) // 2, len(branch)}):
        plain("UPDATE threads SET tip = ? WHERE id = ?", [branch[end - 1].seq if end else 0, thread_id])
        wanted = shown(state_of(entry for entry in branch[:end] if entry.seq > gone), store.dialect)
        found = state_data(plain, thread_id)
        for name, value in wanted.items():
            assert same(found[name], value), name
        assert same(found, wanted)


def analysis(rng: random.Random) -> Told:
    """An analysis: questions of one source or another, looks, queries, failures, answers, steps back."""
    told: Told = []
    for n in range(rng.randint(4, 14)):
        note = {
            "kind": "question",
            "source": rng.choice("a" * 12 + "b"),
            "fingerprint": rng.choice("1" * 12 + "2"),
            "max_steps": n,
        }
        text = rng.choice([f"question {n}", f"question {n}", "继续", "continue"])
        note |= {"continues": True} if text in {"继续", "continue"} else {}
        drafts = [Draft("", "user", text, metadata=note)]
        for m in range(rng.randint(0, 6)):
            action, table = rng.choice(ACTIONS[:5]), rng.choice(TABLES[:3])
            data: dict[str, Any] = {"table_name": table, "n": n}
            if action == "list_tables":
                data = {"tables": rng.sample([*TABLES, {"name": "x"}, 7, None], 3)}
            good = {"ok": rng.choice([*[True] * 12, 1, [0], [], "", {}, 0.0, None]), "data": data}
            bad = {"ok": False, "error": {"type": "sql_failed", "message": str(m)}, "data": data}
            call = ToolCall(f"c{m}", action, {"table": table, "sql": f"SELECT {n}"})
            result = json.dumps(rng.choice([good, good, good, bad]))
            note = rng.choice([{}, {}, {"kind": "malformed"}])
            drafts += [Draft("", "assistant", f"why {m}", [call], metadata=note)]
            drafts += [Draft("", "tool", result, tool_call_id=call.id)] * rng.choice([0, 1, 1, 1, 1, 2])
        if rng.random() < 0.7:
            drafts.append(Draft("", "assistant", f"answer {n}", metadata={"kind": rng.choice(["answer", "summary"])}))
        told.append((drafts, rng.choice([0, 0, 0, 0, 3])))
    return told


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(8))
async def test_state_data_is_the_fold_wherever_an_analysis_stands(store: Driver, plain: Plain, seed: int) -> None:
    branch = await write(store, "t", analysis(random.Random(seed)))
    for end in range(len(branch), 0, -3):
        plain("UPDATE threads SET tip = ?", [branch[end - 1].seq])
        wanted, found = state_of(branch[:end]), state_data(plain, "t")
        assert [name for name, value in wanted.items() if not same(found[name], value)] == []


BEYOND = "[1e400, -1e400, 1e-400]"
"""Numbers of JSON's that are an infinity, or nothing, to whatever reads them as doubles."""


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("action", "result"),
    [
        *[
            ("list_tables", f'{{"ok":true,"data":{{"tables":{tables}}}}}')
            for tables in (
                '["a",1e400,-1e400,["b"],{"c":1e400},null,true,7,"d","a"]',
                "null",
                "1e400",
                '"a"',
                '{"a":1}',
            )
        ],
        ("list_tables", '{"ok":true,"data":{"tables":["a",Infinity,NaN]}}'),
        ("list_tables", f'{{"ok":1e400,"data":{{"tables":["a"],"about":{BEYOND},"columns":1e400}}}}'),
        *[
            (action, f'{{"ok":true,"data":{{"table_name":{name},"rows":{BEYOND}}}}}')
            for action in ("describe_table", "sample_rows")
            for name in ('"a"', "1e400", "null", '["a"]', '{"a":1e400}')
        ],
        ("run_sql", f'{{"ok":true,"data":{{"query":1e400,"rows":{BEYOND}}}}}'),
        ("run_sql", f'{{"ok":false,"error":{BEYOND}}}'),
        ("run_sql", '{"ok":false,"error":1e400}'),
        ("run_sql", "1e400"),
    ],
)
async def test_numbers_beyond_doubles_and_names_that_are_no_text_break_no_state(
    store: Driver, plain: Plain, action: str, result: str
) -> None:
    call = ToolCall("c", action, {"table": "a", "sql": "SELECT 1"})
    told = [
        Draft("", "user", "How many?"),
        Draft("", "assistant", "", [call]),
        Draft("", "tool", result, tool_call_id="c"),
    ]
    branch = await write(store, "odd", [(told, 0)])
    await write(store, "plain", [([Draft("", "user", "Hello")], 0)])
    wanted, found = state_of(branch), state_data(plain, "odd")
    assert [name for name, value in wanted.items() if not same(found[name], value)] == []
    assert len(wanted["steps"]) == 1
    assert len(plain("SELECT CAST(state_data AS TEXT) FROM conversations")) == 2
