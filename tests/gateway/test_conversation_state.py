"""Conversation states: what is stored comes back, over the log, from any thread."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.gateway.states import Clock, relation, rows

from longthread.conversation_state import CacheConfig, SignatureDatabase
from longthread.errors import InvalidInput, StoreUnavailable

pytestmark = pytest.mark.one_backend

THINKING = {"type": "thinking", "thinking": "Let me see… 让我想想", "signature": "EqQBCkYIBxgCKkD/+=="}
ASKED: list[Any] = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "读 a.py"}]
MESSAGES: list[Any] = [
    *ASKED,
    {"role": "assistant", "content": [THINKING, {"type": "tool_use", "id": "t1", "name": "read", "input": {"n": 1.0}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "x"}, {"type": "text"}]},
    {"role": "assistant", "content": None, "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at":  "天气"}'}},
        {"id": "c2", "type": "function", "function": {"name": "look", "arguments": '{"at": '}},
    ]},
    {"role": "tool", "tool_call_id": "c1", "content": "sunny"},
    {"role": "tool", "tool_call_id": "c1", "content": "sunny", "name": "look"},
    {"role": "user", "parts": [{"text": "Gemini's form"}]},
    {"type": "reasoning", "id": "rs_1", "encrypted_content": "gAAAA", "summary": []},
    {"type": "function_call_output", "call_id": "c1", "output": "ok"},
    {"role": "assistant", "content": "", "reasoning_content": "hm", "phase": "final_answer", "id": "msg_1"},
    {"role": "developer", "content": "x"}, {"role": "narrator", "content": "x"}, {"role": None}, {"content": 1}, {},
    {"role": "user"}, {"role": "user", "content": None}, {"role": "user", "content": {"type": "text", "text": "x"}},
    {"role": "user", "content": [], "name": 3}, {"role": "assistant", "tool_calls": [3]},
    {"role": "assistant", "content": "x", "tool_calls": []}, {"role": "assistant", "tool_calls": {"id": 1}},
    {"role": "tool", "content": "x"}, {"role": "tool", "tool_call_id": None, "content": "x"},
    {"role": "user", "content": "x", "client_messages": [1]}, {"role": "USER", "content": "x"},
    {"n": 10**40, "f": 1e300, "z": -0.0, "t": True, "one": 1, "float": 1.0},
    "text", 3, 3.5, None, True, [], ["x"], [[{"role": "user"}]],
]  # fmt: skip
"""Messages of each kind, and what is none."""


@pytest.fixture
def db(store_address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SignatureDatabase]:
    monkeypatch.setenv("LONGTHREAD_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("LONGTHREAD_DATABASE_URL", store_address)
    with SignatureDatabase() as opened:
        yield opened


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def stored(db: SignatureDatabase, history: Any, scid: str = "conv", **more: Any) -> bool:
    return db.store_conversation_state(scid, "claude_code", json.dumps(history), **more)


def history_of(db: SignatureDatabase, scid: str = "conv") -> Any:
    found = db.get_conversation_state(scid)
    return None if found is None else found["authoritative_history"]


def exactly(value: Any) -> str:
    """JSON that distinguishes 1, 1.0 and true."""
    return json.dumps(value, sort_keys=True)


def test_any_message_comes_back_value_for_value(db: SignatureDatabase, store_address: str) -> None:
    assert stored(db, MESSAGES)
    assert exactly(history_of(db)) == exactly(MESSAGES)
    state = db.get_conversation_state("conv")
    assert state == relation(store_address, "conv")
    for number, message in enumerate(MESSAGES):
        assert stored(db, [message], f"conv {number}")
        assert exactly(history_of(db, f"conv {number}")) == exactly([message]), message


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=8)


def json_of(text: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    leaf = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | text
    return st.recursive(
        leaf, lambda item: st.lists(item, max_size=3) | st.dictionaries(text, item, max_size=3), max_leaves=5
    )


def messages_of(text: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    """Histories of messages, near messages and other JSON."""
    any_json = json_of(text)
    blocks = st.sampled_from(["text", "thinking", "tool_use", "tool_result", "image"]).flatmap(
        lambda kind: st.fixed_dictionaries(
            {"type": st.just(kind)},
            optional={"text": text, "tool_use_id": text, "id": text, "name": text, "signature": text,
                      "input": any_json, "content": any_json, "is_error": st.booleans()},
        )
    )  # fmt: skip
    call = st.fixed_dictionaries(
        {"function": st.fixed_dictionaries({"name": text, "arguments": any_json.map(json.dumps) | text | any_json})},
        optional={"id": text, "type": st.just("function")},
    )
    message = st.fixed_dictionaries(
        {},
        optional={
            "role": st.sampled_from(["user", "assistant", "tool", "system", "developer", "other"]) | any_json,
            "content": text | st.lists(blocks | any_json, max_size=3) | any_json,
            "tool_calls": st.lists(call | any_json, max_size=2) | any_json,
            "tool_call_id": text | any_json,
            "name": text | any_json,
            "parts": any_json,
            "id": text,
        },
    )
    return st.lists(message | any_json, max_size=4)


ODD = st.text(max_size=4) | st.sampled_from(["\x00", "\ud800", "\udc00\ud800", "a\\\ud83d", "\u2028"])
quietly = settings(
    max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@quietly
@given(histories=st.lists(messages_of(TEXT), min_size=1, max_size=3))
def test_what_is_stored_is_given_back_and_is_in_the_relation(
    db: SignatureDatabase, store_address: str, histories: list[list[Any]]
) -> None:
    for history in histories:
        assert stored(db, history)
        state = db.get_conversation_state("conv")
        assert state is not None and exactly(state["authoritative_history"]) == exactly(history)
        shown = relation(store_address, "conv")
        assert shown == state and exactly(shown["authoritative_history"]) == exactly(history)


@quietly
@given(history=messages_of(ODD))
def test_so_is_text_that_no_database_takes(db: SignatureDatabase, history: list[Any]) -> None:
    assert stored(db, history)
    assert exactly(history_of(db)) == exactly(history)


@quietly
@given(
    steps=st.lists(
        st.tuples(st.integers(0, 6), st.lists(messages_of(TEXT).map(lambda m: m[0] if m else 0), max_size=3)),
        max_size=6,
    )
)
def test_a_history_may_grow_shrink_and_change(db: SignatureDatabase, steps: list[tuple[int, list[Any]]]) -> None:
    history: list[Any] = []
    assert stored(db, history)
    for kept, added in steps:
        history = history[:kept] + added
        assert db.update_conversation_state("conv", json.dumps(history))
        assert exactly(history_of(db)) == exactly(history)


def test_nothing_is_overwritten(db: SignatureDatabase, store_address: str) -> None:
    def entries() -> list[tuple[int, int, str]]:
        return rows(store_address, "SELECT seq, parent_seq, text FROM entries ORDER BY seq")

    a, b, c, d = ({"role": "user", "content": text} for text in "abcd")
    assert stored(db, [a, b])
    assert db.update_conversation_state("conv", json.dumps([a, b, c]))
    grown = [(1, 0, "a"), (2, 1, "b"), (3, 2, "c")]
    assert entries() == grown
    assert stored(db, [a, d])
    assert entries() == [*grown, (4, 1, "d")]
    assert history_of(db) == [a, d]
    # It returns to what it was: all of that is there.
    assert stored(db, [a, b, c]) and stored(db, [a]) and stored(db, []) and stored(db, [a, b])
    assert len(entries()) == 4
    assert history_of(db) == [a, b]
    # Its keys in another order are no change, 1 and true are.
    assert stored(db, [a, {"content": "b", "role": "user"}])
    assert len(entries()) == 4
    assert stored(db, [{"n": 1}]) and stored(db, [{"n": True}])
    assert history_of(db) == [{"n": True}] and len(entries()) == 6


def test_store_again_is_an_update(db: SignatureDatabase, clock: Clock) -> None:
    assert stored(db, ASKED, signature="one", ttl_seconds=60)
    first = db.get_conversation_state("conv")
    clock.sleep(1)
    assert db.store_conversation_state("conv", "cursor", "[]")
    again = db.get_conversation_state("conv")
    assert first is not None and again is not None
    assert again == {
        "scid": "conv", "client_type": "cursor", "authoritative_history": [], "last_signature": None,
        "created_at": first["created_at"], "updated_at": again["updated_at"], "expires_at": None, "access_count": 2,
    }  # fmt: skip
    assert first["created_at"] <= first["updated_at"] < again["updated_at"]


def test_an_update_leaves_what_it_does_not_name(db: SignatureDatabase, clock: Clock) -> None:
    assert stored(db, ASKED, signature="one", ttl_seconds=60)
    first = db.get_conversation_state("conv")
    clock.sleep(1)
    assert db.update_conversation_state("conv", json.dumps(MESSAGES))
    second = db.get_conversation_state("conv")
    assert first is not None and second is not None
    assert {**second, "authoritative_history": ASKED, "updated_at": "", "access_count": 1} == {
        **first,
        "updated_at": "",
    }
    assert second["updated_at"] > first["updated_at"]
    assert db.update_conversation_state("conv", json.dumps(MESSAGES), "two")
    assert (db.get_conversation_state("conv") or {})["last_signature"] == "two"


def test_what_has_expired_is_absent_until_it_is_stored_anew(
    db: SignatureDatabase, store_address: str, clock: Clock
) -> None:
    assert stored(db, ASKED, signature="old", ttl_seconds=60)
    assert db.get_conversation_state("conv")
    clock.sleep(60)
    assert db.get_conversation_state("conv") is None
    assert db.update_conversation_state("conv", "[]") is False
    assert db.delete_conversation_state("conv") is False
    assert stored(db, MESSAGES[:1])
    state = db.get_conversation_state("conv")
    assert state is not None and state["authoritative_history"] == MESSAGES[:1]
    assert (state["last_signature"], state["expires_at"], state["access_count"]) == (None, None, 1)
    assert rows(store_address, "SELECT count(*) FROM entries") == [(1,)]
    assert db.cleanup_expired_states() == 0


def test_a_cleanup_counts_what_it_deletes(db: SignatureDatabase, store_address: str) -> None:
    assert all(stored(db, ASKED, f"gone {n}", ttl_seconds=seconds) for n, seconds in enumerate((-1, 0, -3600.5)))
    assert stored(db, ASKED, "stays", ttl_seconds=3600) and stored(db, ASKED, "for ever")
    assert db.cleanup_expired_states() == 3
    assert rows(store_address, "SELECT id FROM threads ORDER BY id") == [("for ever",), ("stays",)]
    assert rows(store_address, "SELECT count(*) FROM entries") == [(4,)]
    assert db.cleanup_expired_states() == 0


def test_the_configuration_says_how_long_states_stay(db: SignatureDatabase, store_address: str, clock: Clock) -> None:
    with SignatureDatabase(CacheConfig(store_address, ttl_seconds=60)) as brief:
        assert stored(brief, ASKED) and stored(brief, ASKED, "longer", ttl_seconds=3600)
        clock.sleep(61)
        assert (history_of(brief), history_of(brief, "longer")) == (None, ASKED)
        assert history_of(db, "longer") == ASKED
        assert db.cleanup_expired_states() == 1


def test_a_user_sees_no_other_s(db: SignatureDatabase, store_address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert stored(db, ASKED)
    monkeypatch.setenv("LONGTHREAD_USER", "other")
    with SignatureDatabase(CacheConfig(db_path=store_address)) as others:
        assert history_of(others) is None
        assert not stored(others, []) and not others.update_conversation_state("conv", "[]")
        assert others.delete_conversation_state("conv") is False
    found = relation(store_address, "conv")
    assert found is not None and (found["authoritative_history"], found["access_count"]) == (ASKED, 0)


def test_a_store_that_is_only_read_counts_nothing(
    db: SignatureDatabase, store_address: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert stored(db, ASKED)
    monkeypatch.setenv("LONGTHREAD_READ_ONLY", "1")
    with SignatureDatabase(CacheConfig(db_path=store_address)) as reader:
        assert reader.get_conversation_state("conv") == relation(store_address, "conv")
        assert history_of(reader) == ASKED
        assert not stored(reader, []) and not reader.delete_conversation_state("conv")
    assert "read only" in caplog.text


Failing = Callable[[SignatureDatabase], Any]
deep = "[" * 201 + "]" * 201
FAILURES: list[tuple[Failing, str]] = [
    (lambda db: db.store_conversation_state("s", "cursor", "not json"), "history is no JSON: Expecting value"),
    (lambda db: db.store_conversation_state("s", "cursor", ""), "history is no JSON: Expecting value"),
    (lambda db: db.store_conversation_state("s", "cursor", '{"role": "user"}'), "but no list"),
    (lambda db: db.store_conversation_state("s", "cursor", "null"), "but no list"),
    (lambda db: db.store_conversation_state("s", "cursor", "[NaN]"), "history is no JSON"),
    (lambda db: db.store_conversation_state("s", "cursor", "[1e999]"), "history is no JSON"),
    (lambda db: db.store_conversation_state("s", "cursor", deep), "nested deeper than 200 levels"),
    (lambda db: db.store_conversation_state("s", "cursor", deep * 500), "history is no JSON"),
    (lambda db: db.store_conversation_state("s", "cursor", "[" * 99999), "nested too deeply"),
    (lambda db: db.store_conversation_state("s", "cursor", []), "json.dumps(messages)"),  # type: ignore[arg-type]
    (lambda db: db.store_conversation_state("s", "windsurf", "[]"), "allowed is cursor, augment, claude_code, unknown"),
    (lambda db: db.store_conversation_state("s", "cursor", "[]", 3), "signature is of type int"),  # type: ignore[arg-type]
    (lambda db: db.store_conversation_state("s", "cursor", "[]", "a\x00"), "NUL"),
    (lambda db: db.store_conversation_state("s", "cursor", "[]", ttl_seconds="1"), "ttl_seconds is '1'"),  # type: ignore[arg-type]
    (lambda db: db.store_conversation_state("s", "cursor", "[]", ttl_seconds=10**15), "leads to no date"),
    (lambda db: db.store_conversation_state("s", "cursor", "[]", ttl_seconds=float("nan")), "leads to no date"),
    (lambda db: db.store_conversation_state("", "cursor", "[]"), "scid is ''"),
    (lambda db: db.store_conversation_state("\ud800", "cursor", "[]"), "surrogate"),
    (lambda db: db.update_conversation_state("conv", "{"), "history is no JSON"),
    (lambda db: db.get_conversation_state(3), "scid is 3"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("number", range(len(FAILURES)))
@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_what_fails_says_why_in_the_log(
    db: SignatureDatabase, store_address: str, caplog: pytest.LogCaptureFixture, number: int
) -> None:
    work, why = FAILURES[number]
    assert stored(db, ASKED)
    with caplog.at_level(logging.WARNING, "longthread.conversation_state"):
        assert not work(db)
    assert why in caplog.text
    assert rows(store_address, "SELECT id, tip FROM threads") == [("conv", 2)]


def test_what_is_not_there(db: SignatureDatabase) -> None:
    assert db.get_conversation_state("none") is None
    assert db.update_conversation_state("none", "[]") is False
    assert db.delete_conversation_state("none") is False


def test_wal_mode_cannot_be_turned_off() -> None:
    with pytest.raises(InvalidInput, match="always in WAL mode"):
        CacheConfig(wal_mode=False)
    with pytest.raises(InvalidInput, match="ttl_seconds is 'soon'"):
        CacheConfig(ttl_seconds="soon")  # type: ignore[arg-type]


def test_a_store_that_cannot_be_opened_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "old.db").write_bytes(b"no database, but long enough to be looked at" * 100)
    with pytest.raises(StoreUnavailable):
        SignatureDatabase(CacheConfig(db_path=tmp_path / "old.db"))
    with pytest.raises(InvalidInput, match="A store is the path"):
        SignatureDatabase(CacheConfig(db_path=":memory:"))


def test_a_closed_one_says_so(db: SignatureDatabase, caplog: pytest.LogCaptureFixture) -> None:
    db.close()
    db.close()
    assert db.get_conversation_state("conv") is None and not stored(db, [])
    assert "this SignatureDatabase cannot be used" in caplog.text


@pytest.mark.parametrize("objects", [1, 2])
def test_threads_share_it(db: SignatureDatabase, store_address: str, objects: int) -> None:
    """Eight threads with 50 operations each, on one object and on two of one store."""
    others = [SignatureDatabase(CacheConfig(db_path=store_address)) for _ in range(objects - 1)]
    databases = [db, *others]
    assert stored(db, [], "shared")

    def work(number: int) -> int:
        mine, read = databases[number % objects], 0
        own: list[Any] = []
        for step in range(10):
            own.append({"role": "user", "content": f"{number} {step}"})
            assert (stored if step % 2 else _update_or_store)(mine, own, f"own {number}")
            assert history_of(mine, f"own {number}") == own
            assert stored(mine, own, "shared")
            assert len({each["content"][0] for each in history_of(mine, "shared")}) == 1  # one writer's, no mixture
            read += 1
            assert stored(mine, [], f"brief {number} {step}", ttl_seconds=-1)
        return read

    with ThreadPoolExecutor(8) as pool:
        reads = sum(pool.map(work, range(8)))
    found = db.get_conversation_state("shared")
    assert found is not None and found["access_count"] == reads + 1
    assert db.cleanup_expired_states() == 80
    for other in others:
        other.close()


def _update_or_store(db: SignatureDatabase, history: list[Any], scid: str) -> bool:
    return db.update_conversation_state(scid, json.dumps(history)) or stored(db, history, scid)


UNCLOSED = """
import json, os, sys
from longthread.conversation_state import CacheConfig, SignatureDatabase

db = SignatureDatabase(CacheConfig(db_path=sys.argv[1]))
assert db.store_conversation_state("conv", "cursor", "[1]")
child = os.fork()
if not child:
    os._exit(0 if db.get_conversation_state("conv") is None else 1)
assert os.waitpid(child, 0)[1] == 0
assert db.get_conversation_state("conv")["authoritative_history"] == [1]
"""


def test_no_process_waits_for_one_that_was_not_closed(store_address: str, tmp_path: Path) -> None:
    """Nor does a forked one, which has no thread that would answer."""
    done = subprocess.run(
        [sys.executable, "-c", UNCLOSED, store_address],
        cwd=tmp_path,
        env=os.environ | {"LONGTHREAD_DATA_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert "was forked off" in done.stderr and "Traceback" not in done.stderr


def test_one_that_nobody_refers_to_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGTHREAD_DATA_DIR", str(tmp_path))
    opened = SignatureDatabase(CacheConfig(db_path=tmp_path / "states.db"))
    thread = opened._thread._thread
    assert stored(opened, ASKED)
    del opened
    thread.join(60)
    assert not thread.is_alive()
