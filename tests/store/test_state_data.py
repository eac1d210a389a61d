"""`conversations.state_data` is the fold of a thread's entries, computed by the database alone."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.store.conftest import Plain

from longthread.model.entry import Draft, Entry, ToolCall
from longthread.model.fold import state_of
from longthread.model.ids import new_id
from longthread.model.run import CONTINUE_WORDS
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
    words = sorted(CONTINUE_WORDS)
    around = draw(st.sampled_from(["", " ", "\u3000\t", "。", " ! ~", "\x85", "\n!"]))
    text = draw(
        st.sampled_from([f"{around}{draw(st.sampled_from(words)).upper()}{around}", "", " ", "有哪些？"]) | TEXT
    )
    note: dict[str, Any] = {}
    for key, values in {
        "kind": ["question"],
        "source": ["a.db", "b.db", "数据.db", None],
        "fingerprint": ["f1", "f2", None],
        "max_steps": [12, 3, None],
    }.items():
        if draw(st.integers(0, 3)):
            note[key] = draw(st.sampled_from(values))
    return Draft(id="", role="user", text=text, metadata=note)


@st.composite
def calls(draw: st.DrawFn) -> Draft:
    args = st.fixed_dictionaries(
        {},
        optional={"table": st.sampled_from([*TABLES, None, 3]), "sql": TEXT | ARGUMENT, "more": ARGUMENT},
    )
    one = st.builds(ToolCall, st.sampled_from(["c1", "c2", "c3", ""]), st.sampled_from(ACTIONS), args)
    kind = draw(st.sampled_from([{}, {}, {"kind": "malformed"}, {"kind": "summary"}, {"kind": "answer"}]))
    made = draw(st.lists(one, min_size=1, max_size=3))
    return Draft(id="", role="assistant", text=draw(TEXT), tool_calls=made, metadata=kind)


@st.composite
def observations(draw: st.DrawFn) -> str:
    table = st.sampled_from(TABLES)
    data = st.fixed_dictionaries({}, optional={
        "tables": st.lists(table, max_size=4),
        "table_name": table,
        "columns": st.dictionaries(TEXT, JSON, max_size=2),
        "more": JSON,
        "query": st.sampled_from(["q1", "q22"]),
    })  # fmt: skip
    ok = st.fixed_dictionaries({"ok": TRUTH, "data": data | JSON}, optional={"error": JSON})
    failed = st.fixed_dictionaries({"ok": st.just(False)}, optional={"error": JSON, "data": data})
    value = draw(ok | ok | failed | JSON)
    dumped = json.dumps(value, indent=draw(st.sampled_from([None, 1])))
    return draw(st.sampled_from(["", "", "Observation: "])) + draw(
        st.sampled_from([dumped, dumped, dumped, dumped[1:]])
    )


@st.composite
def results(draw: st.DrawFn) -> Draft:
    wanted = draw(st.sampled_from(["c1", "c2", "c3", None]))
    text = draw(observations() | observations() | TEXT)
    return Draft(id="", role="tool", text=text, tool_call_id=wanted, name="t")


def said() -> st.SearchStrategy[Draft]:
    notes = st.sampled_from([{}, {"kind": "answer"}, {"kind": "answer"}, {"kind": "summary"}, {"kind": "malformed"}])
    roles = st.sampled_from(["assistant", "assistant", "assistant", "system"])
    return st.builds(lambda text, note, role: Draft("", role, text, metadata=note), TEXT, notes, roles)


Told = list[tuple[Draft, int]]
"""What is added to a thread, one behind the other, each with how many entries of the branch are left behind first."""


def threads() -> st.SearchStrategy[Told]:
    draft = asks() | calls() | results() | results() | said()
    return st.lists(st.tuples(draft, st.sampled_from([0] * 12 + [1, 2, 5])), max_size=24)


async def write(store: Driver, thread_id: str, told: Told) -> list[Entry]:
    """The entries of the thread's branch after all that was told."""
    branch: list[Entry] = []
    async with store.writing() as tx:
        await log.create_thread(tx, thread_id, user_id="u")
        for number, (draft, back) in enumerate(told):
            del branch[len(branch) - min(back, len(branch)) :]
            branch += await log.extend(
                tx, thread_id, [replace(draft, id=str(number))], parent=branch[-1].seq if branch else 0
            )
        await log.set_tip(tx, thread_id, branch[-1].seq if branch else 0)
    return branch


def state_data(plain: Plain, thread_id: str) -> Any:
    [row] = plain("SELECT CAST(state_data AS TEXT) FROM conversations WHERE thread_id = ?", [thread_id])
    return json.loads(row[0])


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


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(told=threads(), gone=st.sampled_from([0, 0, 0, 1, 3, 9]))
async def test_state_data_is_the_fold_of_the_active_branch(store: Driver, plain: Plain, told: Told, gone: int) -> None:
    thread_id = new_id()
    branch = await write(store, thread_id, told)
    if gone:
        plain("DELETE FROM entries WHERE thread_id = ? AND seq <= ?", [thread_id, gone])
        plain("UPDATE threads SET first_seq = ? WHERE id = ?", [gone + 1, thread_id])
    wanted = shown(state_of(entry for entry in branch if entry.seq > gone), store.dialect)
    given_ = state_data(plain, thread_id)
    for name, value in wanted.items():
        assert same(given_[name], value), name
    assert same(given_, wanted)
