"""The commands, in process, with the demo model."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import sqlite3
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.contract.base import registered
from tests.llm.servers import completion, serving

from longthread.errors import LongthreadError, StoreReadOnly
from longthread.model.entry import Draft
from longthread.runs.worker import here, new_worker
from longthread.settings import Settings
from longthread.store import log, runs
from longthread.store.driver import Transaction
from longthread.store.open import open_store
from longthread.store.runs import NewRun

pytestmark = pytest.mark.one_backend

Run = Callable[..., Any]


@pytest.fixture
def shop(tmp_path: Path) -> str:
    """A shop with five customers."""
    path = tmp_path / "shop.sqlite"
    connection = sqlite3.connect(path)
    connection.executescript(
        """
        CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, country TEXT);
        INSERT INTO customers (name, country) VALUES
            ('Ada', 'UK'), ('Bob', 'UK'), ('李雷', 'China'), ('Ana', 'Brazil'), ('Eve', 'UK');
        """
    )
    connection.close()
    return str(path)


def events(result: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_ask_prints_the_answer_on_stdout_and_the_steps_on_stderr(run: Run, shop: str) -> None:
    result = run("ask", "How many customers are there?", "--source", shop)
    assert "5" in result.stdout
    assert "[q1]" in result.stdout
    assert "SELECT" in result.stdout
    assert "Demo model" in result.stdout
    assert "list_tables" in result.stderr
    assert "list_tables" not in result.stdout


def test_json_prints_one_event_a_line_and_ends_with_how_the_run_ended(run: Run, shop: str) -> None:
    told = events(run("ask", "How many customers are there?", "--source", shop, "--json"))
    assert [event["seq"] for event in told] == list(range(1, len(told) + 1))
    assert told[0]["type"] == "started"
    assert told[-1]["type"] == "finished"
    assert {"number": "5", "query": "q1"} in told[-1]["citations"]
    assert len({event["thread_id"] for event in told}) == 1


@pytest.mark.sampled(2)
@pytest.mark.parametrize("protocol", ["auto", "native", "json"])
def test_a_follow_up_explores_nothing_again(run: Run, shop: str, protocol: str) -> None:
    run("ask", "How many customers are there per country?", "--source", shop, "--protocol", protocol)
    told = events(run("ask", "only in the UK", "--thread", "last", "--protocol", protocol, "--json"))
    actions = {event["action"] for event in told if event["type"] == "step_started"}
    assert actions == {"run_sql"}
    assert "3" in told[-1]["answer"]


def test_steps_used_up_pause_and_continue_finishes(run: Run, shop: str) -> None:
    paused = events(run("ask", "有多少客户？", "--source", shop, "--max-steps", "2", "--json", code=10))[-1]
    assert paused["type"] == "paused"
    assert "有多少客户？" in paused["summary"]
    finished = events(run("ask", "--thread", paused["thread_id"], "继续", "--json"))[-1]
    assert finished["type"] == "finished"
    assert "5" in finished["answer"]
    assert "演示模型" in finished["answer"]
    run("resume", "last", code=2)


def test_resume_goes_on_with_a_paused_run(run: Run, shop: str) -> None:
    run("ask", "How many customers are there?", "--source", shop, "--max-steps", "1", code=10)
    assert "5" in run("resume", "last").stdout


def test_a_question_may_come_from_standard_input(run: Run, shop: str) -> None:
    result = run("ask", "-", "--source", shop, text="How many customers are there?\n")
    assert "5" in result.stdout


def test_threads_are_listed_shown_searched_renamed_exported_and_deleted(run: Run, shop: str, tmp_path: Path) -> None:
    run("ask", "How many customers are there?", "--source", shop)
    run("ask", "有哪些客户？", "--source", shop)
    listed = events(run("threads", "list", "--json"))
    assert [thread["title"] for thread in listed] == ["有哪些客户？", "How many customers are there?"]
    assert "How many customers" in run("threads", "list").stdout
    newest, oldest = listed[0]["id"], listed[1]["id"]
    assert "李雷" in run("threads", "show", newest).stdout
    assert events(run("threads", "show", newest, "--json"))[0]["role"] == "user"
    assert [t["id"] for t in events(run("threads", "search", "客户", "--json"))] == [newest]
    run("threads", "rename", oldest, "Customers, counted")
    assert "Customers, counted" in run("threads", "list").stdout
    run("threads", "export", newest, "--to", "out.md")
    exported = (tmp_path / "out.md").read_text("utf-8")
    assert "## 有哪些客户？" in exported
    assert "```sql" in exported
    lines = events(run("threads", "show", newest, "--json"))
    assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1))
    run("threads", "delete", newest, code=1, text="n\n")
    run("threads", "delete", newest, "--yes")
    assert [thread["id"] for thread in events(run("threads", "list", "--json"))] == [oldest]
    run("threads", "show", newest, code=2)


def test_state_has_the_documented_fields(run: Run, shop: str) -> None:
    run("ask", "How many customers are there?", "--source", shop)
    state = json.loads(run("state", "last").stdout)
    assert state["question"] == "How many customers are there?"
    assert state["done"] is True
    assert state["known_tables"] == ["customers"]
    assert state["sql_history"][0]["result"]["data"]["rows"] == [[5]]


def test_a_thread_is_found_by_the_beginning_of_its_id(run: Run, shop: str) -> None:
    for name in ("shop-one", "shop-two"):
        run("ask", "How many customers are there?", "--source", shop, "--thread", name)
    assert json.loads(run("state", "shop-o").stdout)["done"]
    for given, reason in (("shop", "Several threads"), ("nope", "no thread nope")):
        assert reason in str(run("state", given, code=2).exception)


def test_what_lists_the_threads_is_asked_of_the_same_store(run: Run, shop: str, tmp_path: Path) -> None:
    store = str(tmp_path / "my store.db")
    run("ask", "How many customers are there?", "--source", shop, "--thread", "one", "--database", store)
    missing = run("state", "nope", "--database", store, code=2).exception
    assert f"`longthread threads list --database '{store}'` shows those there are" in str(missing)
    assert missing.described()["type"] == "thread_not_found"
    run("ask", "How many customers are there?", "--source", shop)
    assert "`longthread threads list` shows" in str(run("state", "nope", code=2).exception)


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (("ask", "How many?"), 2, "--source demo"),
        (("ask", "  ", "--source", "SHOP"), 2, "empty"),
        (("ask", "How many?", "--source", "nowhere.sqlite"), 3, "There is no source at"),
        (("ask", "How many?", "--thread", "nope"), 2, "no thread nope"),
        (("ask", "How many?", "--source", "SHOP", "--protocol", "xml"), 2, "auto, native, json"),
        (("ask", "How many?", "--source", "SHOP", "--model", "openai:gpt-5"), 6, "OPENAI_API_KEY"),
        (("ask", "How many?", "--source", "SHOP", "--database", "SHOP"), 5, "another program's database"),
    ],
)
def test_bad_input_names_the_fix(
    run: Run, shop: str, args: tuple[str, ...], code: int, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    result = run(*(shop if arg == "SHOP" else arg for arg in args), code=code)
    assert says in str(result.exception)


def test_doctor_says_what_works_and_what_does_not(run: Run, shop: str) -> None:
    good = run("doctor", "--source", shop).stdout
    assert ", 1 table\n" in good
    assert ": 0 conversations of default" in good
    assert "✗" not in good
    bad = run("doctor", "--source", "nowhere.sqlite", code=1).stdout
    assert "There is no source at" in bad


def test_a_name_that_may_be_new_is_not_the_beginning_of_another(run: Run, shop: str) -> None:
    question = "How many customers are there?"
    for name in ("abc", "a", "a"):
        run("ask", question, "--source", shop, "--thread", name)
    sizes = {thread["id"]: thread["entry_count"] for thread in events(run("threads", "list", "--json"))}
    assert sizes.keys() == {"a", "abc"}
    assert sizes["a"] > sizes["abc"], "the whole id is that thread, though another begins with it"
    run("chat", "--source", shop, "--thread", "ab", text=f"{question}\n/quit\n")
    assert {thread["id"] for thread in events(run("threads", "list", "--json"))} == {"a", "ab", "abc"}
    assert "empty" in str(run("ask", question, "--source", shop, "--thread", " ", code=2).exception)
    run("ask", question, "--source", shop, "--thread", "last")
    assert len(events(run("threads", "list", "--json"))) == 3


@pytest.mark.parametrize("data", ["How many\0?".encode("utf-16"), b"How many\0 customers?", bytes(range(128, 256))])
def test_standard_input_that_is_no_text_is_refused(run: Run, shop: str, data: bytes) -> None:
    result = run("ask", "-", "--source", shop, code=2, text=data)
    assert "not text in UTF-8" in str(result.exception)
    assert run("threads", "list", "--json").stdout == ""


def test_a_few_wrong_bytes_in_standard_input_are_replaced(run: Run, shop: str) -> None:
    asked = b"\xef\xbf\xbd\xef\xbf\xbd How many customers are there?\xff\n"
    told = events(run("ask", "-", "--source", shop, "--json", text=asked))
    assert told[0]["question"].strip() == "\ufffd\ufffd How many customers are there?\ufffd"


def in_store(work: Callable[[Transaction], Awaitable[Any]]) -> None:
    """Writes into the store that the commands use."""

    async def write() -> None:
        async with open_store(Settings.load().database) as store, store.writing() as tx:
            await work(tx)

    asyncio.run(write())


def begun(thread_id: str, owner: str) -> Callable[[Transaction], Awaitable[Any]]:
    plan = NewRun(run_id=f"{thread_id}-2", question="?", source=None, model="demo", protocol="auto", max_steps=3)

    async def begin(tx: Transaction) -> None:
        await registered(tx, owner)
        await runs.begin(tx, thread_id, plan, owner=owner, alive=lambda owner: True)

    return begin


def test_an_unfinished_run_is_seen_in_the_list(run: Run, shop: str) -> None:
    dead = subprocess.Popen(["true"])
    dead.wait()
    owners = {"killed": f"{here()}/{dead.pid}/x", "live": new_worker()}
    for name in ("done", "killed", "live"):
        run("ask", "How many customers are there?", "--source", shop, "--thread", name)
    run("ask", "How many customers are there?", "--source", shop, "--thread", "cut", "--max-steps", "1", code=10)
    for name, owner in owners.items():
        in_store(begun(name, owner))
    expected = {"done": "finished", "killed": "interrupted", "live": "running", "cut": "paused"}
    for command in (("list",), ("search", "customers")):
        assert {each["id"]: each["status"] for each in events(run("threads", *command, "--json"))} == expected
        rows = [line.split("\t") for line in run("threads", *command).stdout.splitlines()]
        assert {row[0]: row[5] for row in rows} == expected | {"done": ""}


def test_a_thread_is_deleted_under_a_run(run: Run, shop: str) -> None:
    run("ask", "How many customers are there?", "--source", shop, "--thread", "live")
    in_store(begun("live", new_worker()))
    run("threads", "delete", "live", "--yes")
    assert events(run("threads", "list", "--json")) == []


def test_a_payload_that_is_shown_can_be_had_back(run: Run, shop: str) -> None:
    run("ask", "How many customers are there?", "--source", shop, "--thread", "t")
    kept = [b"\0msgpack\0\x81\xa1\xff", b'{"said": "\\\\xff \xe7\x81\xab"}', b"\xff{}", None]
    drafts = [Draft(id=f"d{n}", role="user", text="x", payload=payload) for n, payload in enumerate(kept)]
    in_store(lambda tx: log.extend(tx, "t", drafts))
    lines = [json.loads(line) for line in run("threads", "show", "t", "--json").stdout.splitlines()]
    payloads = {line["id"]: line["payload"] for line in lines}
    assert [isinstance(payloads[f"d{n}"], str) for n in range(3)] == [False, True, False]
    assert [back(payloads[f"d{n}"]) for n in range(4)] == kept
    question = next(line for line in lines if line["role"] == "user")
    assert json.loads(question["payload"])["additional_kwargs"]["longthread"] == question["metadata"], "told in full"


def back(payload: str | dict[str, str] | None) -> bytes | None:
    """The bytes of a payload that was shown."""
    if payload is None:
        return None
    return payload.encode() if isinstance(payload, str) else base64.b64decode(payload["base64"])


def test_help_and_guide_name_every_exit_code(run: Run) -> None:
    def codes(kind: type[LongthreadError]) -> set[int]:
        return {kind.exit_code}.union(*map(codes, kind.__subclasses__()))

    epilog = run("--help").stdout.rpartition("Exit codes:")[2]
    guide = (Path(__file__).parents[2] / "docs/reference/cli.md").read_text("utf-8").rpartition("## Exit codes")[2]
    for code in codes(LongthreadError) | {0, 10, 130}:
        assert re.search(rf"\b{code}\s+[a-z]", epilog), code
        assert f"\n| {code} |" in guide


def test_chat_holds_a_conversation(run: Run, shop: str) -> None:
    result = run("chat", "--source", shop, text="How many customers are there?\n\nonly in the UK\n/quit\n")
    assert "5" in result.stdout
    assert "3" in result.stdout
    assert len(json.loads(run("state", "last").stdout)["messages"]) == 4


def test_a_chat_ends_if_its_store_may_not_be_written_to(run: Run, shop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run("chat", "--source", shop, text="How many customers are there?\n")
    monkeypatch.setenv("LONGTHREAD_READ_ONLY", "1")
    for more in (("--source", shop), ("--thread", "last")):
        result = run("chat", *more, text="only in the UK\nHow many customers are there?\n", code=5)
        assert isinstance(result.exception, StoreReadOnly)
    assert len(json.loads(run("state", "last").stdout)["messages"]) == 2


def test_a_source_given_by_a_relative_path_is_found_from_elsewhere(
    run: Run, shop: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("ask", "How many customers are there?", "--source", Path(shop).name)
    monkeypatch.setenv("LONGTHREAD_SOURCE", Path(shop).name)
    run("ask", "How many customers are there?", "--thread", "by-setting", "--source", Path(shop).name)
    (tmp_path / "else").mkdir()
    monkeypatch.chdir(tmp_path / "else")
    run("ask", "only in the UK", "--thread", "last")


def test_a_foreign_sqlite_file_is_not_taken_for_the_store(run: Run, shop: str) -> None:
    before = Path(shop).read_bytes()
    run("threads", "list", "--database", shop, code=5)
    assert Path(shop).read_bytes() == before


def test_an_answer_that_no_query_gave_is_marked(run: Run, shop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving({"POST /v1/chat/completions": lambda request: completion("59 [q3]", 900)}) as server:
        monkeypatch.setenv("LLM_BASE_URL", f"{server.url}/v1")
        arguments = ["ask", "How many customers are there?", "--source", shop, "--model", "qwen2.5:7b"]
        told = run(*arguments, "--protocol", "native")
        assert "No query was run for this answer" in told.stderr and "59" in told.stdout
        found = events(run(*arguments, "--protocol", "native", "--json"))
    assert [each for each in found if each["type"] == "warning" and each["message"].startswith("No query was run")]
