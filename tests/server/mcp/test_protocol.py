"""The protocol's own client over HTTP, in both of its eras: every tool, cancelled calls, and the server's end."""

from __future__ import annotations

import asyncio
from typing import Any

import mcp_types
import pytest
from mcp.shared.exceptions import MCPError
from tests.server.apps import CLERK
from tests.server.conftest import GatedModel
from tests.server.mcp.clients import ERAS, called, directly, listening, over_http, refused, said
from tests.server.mcp.conftest import Open

from longthread import Catalog
from longthread.model.entry import Draft, ToolCall
from longthread.model.run import Run
from longthread.runs.analyst import Analyst
from longthread.server.mcp.serve import ClientRights
from longthread.server.mcp.thread_tools import PAGE_CHARS
from longthread.store import log, runs
from longthread.store.queries import Sql

pytestmark = pytest.mark.one_backend

COUNT = {"thought": "Count.", "action": "run_sql", "args": {"sql": "SELECT COUNT(*) AS n FROM rockets"}}
ANSWER = {"finish": "There are 41 [q1]."}


async def last_run(analyst: Analyst, thread: str) -> Run:
    async with analyst.store.reading() as tx:
        run = await runs.last_run(tx, thread)
    assert run is not None
    return run


@pytest.mark.parametrize("era", ERAS)
async def test_a_conversation_is_held_found_and_shown(open_analyst: Open, era: str) -> None:
    async with listening(await open_analyst()) as (url, _), over_http(url, era) as client:
        assert client.protocol_version == ERAS[era]
        told: list[str] = []

        async def progress(number: float, total: float | None, message: str | None) -> None:
            told.append(message or "")

        first = await client.call_tool("ask", {"question": "运载火箭有哪些？"}, progress_callback=progress)
        answer: Any = first.structured_content
        assert (first.is_error, answer["status"]) == (False, "finished")
        assert "长征" in answer["answer"]
        assert answer["answer"] in said(first)
        assert answer["thread"] in said(first)
        [query] = answer["queries"]
        assert "rockets" in query["sql"]
        assert any(message.startswith("run_sql SELECT") for message in told), told
        again = await called(client, "ask", question="How many are there?", thread=answer["thread"])
        assert again["thread"] == answer["thread"]
        assert again["citations"], again
        other = await called(client, "ask", question="How many launches were there per year?")

        page = await called(client, "list_threads", limit=1)
        assert [each["thread"] for each in page["threads"]] == [other["thread"]]
        rest = await called(client, "list_threads", cursor=page["next_cursor"])
        assert [each["thread"] for each in rest["threads"]] == [answer["thread"]]
        assert "next_cursor" not in rest
        found = await called(client, "search_threads", query="运载火箭")
        assert [(each["thread"], "运载火箭" in each["match"]) for each in found["threads"]] == [
            (answer["thread"], True)
        ]

        end = await called(client, "read_thread", thread=answer["thread"], limit=2)
        assert [each["role"] for each in end["messages"]] == ["user", "assistant"]
        begin = await called(client, "read_thread", thread=answer["thread"], before=end["before"])
        assert [each["text"] for each in begin["messages"]] == ["运载火箭有哪些？", answer["answer"]]
        assert "before" not in begin
        steps = await called(client, "read_thread", thread=answer["thread"], steps=True, limit=100)
        assert {"tool", "user", "assistant"} == {each["role"] for each in steps["messages"]}

        recalled = await called(client, "recall", query="火箭 家族", thread=answer["thread"], top_k=3, around=1)
        assert recalled["found"][0]["thread"] == answer["thread"]
        shown = [each["seq"] for hit in recalled["found"] for each in (hit, *hit.get("around", ()))]
        assert len(shown) == len(set(shown)) >= 2
        seen = await called(client, "view", thread=answer["thread"], call=1)
        assert seen["messages"][0]["text"] == "运载火箭有哪些？"


async def test_damaged_conversations_are_named_and_the_others_listed(open_analyst: Open) -> None:
    analyst = await open_analyst()
    async with listening(analyst) as (url, _), over_http(url) as client:
        ids = [(await called(client, "ask", question=f"火箭 {number}?"))["thread"] for number in range(4)]
        async with analyst.store.writing() as tx:
            await tx.run(Sql("UPDATE threads SET tags = '[' WHERE id = :id"), id=ids[2])
        page = await called(client, "list_threads", limit=2)
        assert [each["thread"] for each in page["threads"]] == [ids[3], ids[1]]
        assert page["damaged"] == [ids[2]]
        rest = await called(client, "list_threads", limit=2, cursor=page["next_cursor"])
        assert [each["thread"] for each in rest["threads"]] == [ids[0]]
        assert "damaged" not in rest
        found = await called(client, "search_threads", query="火箭")
        assert [each["thread"] for each in found["threads"]] == [ids[3], ids[1], ids[0]]
        assert found["damaged"] == [ids[2]]
        told = said(await client.call_tool("list_threads", {}))
        assert f"{ids[2]}  is damaged and cannot be read: " in told
        assert ids[2] not in str(await client.list_resources())


@pytest.mark.parametrize("era", ERAS)
async def test_memories_are_kept_found_and_forgotten(open_analyst: Open, era: str) -> None:
    async with listening(await open_analyst()) as (url, _), over_http(url, era) as client:
        kept = await called(client, "remember", content="用户喜欢公制单位。", importance=0.9, expires_at="2099-01-01")
        assert kept["new"]
        assert not (await called(client, "remember", content="用户喜欢公制单位"))["new"]
        [memory] = (await called(client, "search_memories", query="公制单位"))["memories"]
        assert (memory["memory"], memory["importance"]) == (kept["memory"], 0.9)
        assert (await called(client, "search_memories"))["memories"] == [memory]
        await called(client, "forget", memory=kept["memory"])
        assert (await called(client, "search_memories"))["memories"] == []
        assert "no memory" in await refused(client, "forget", memory=kept["memory"])


@pytest.mark.parametrize("era", ERAS)
async def test_conversations_are_resources(open_analyst: Open, era: str) -> None:
    analyst = await open_analyst()
    handle = await analyst.ask(
        "How many rockets are there?", thread_id="我的/thread 1", source="demo", user_id=analyst.settings.user
    )
    await handle.wait()
    async with listening(analyst) as (url, _), over_http(url, era) as client:
        [resource] = (await client.list_resources()).resources
        assert resource.uri.isascii() and resource.uri.startswith("longthread://threads/")
        [template] = (await client.list_resource_templates()).resource_templates
        assert template.uri_template == "longthread://threads/{thread}"
        [content] = (await client.read_resource(resource.uri)).contents
        assert isinstance(content, mcp_types.TextResourceContents)
        assert content.text.startswith("# How many rockets are there?")
        assert "```sql" in content.text
        for uri in ("longthread://threads/none", "file:///etc/passwd", "longthread://threads/"):
            with pytest.raises(MCPError, match="no thread"):
                await client.read_resource(uri)


@pytest.mark.parametrize("era", ERAS)
async def test_a_cancelled_call_stops_its_run_which_can_be_resumed(open_analyst: Open, era: str) -> None:
    def counts_once(messages: list[Any]) -> Any:
        model.shut.set()  # here, as what a client is told may come after the next call
        return COUNT

    model = GatedModel([counts_once, ANSWER])
    analyst = await open_analyst(model)
    async with listening(analyst) as (url, _), over_http(url, era) as client:
        asked: asyncio.Queue[str] = asyncio.Queue()

        async def progress(number: float, total: float | None, message: str | None) -> None:
            if str(message).startswith("Thread "):
                asked.put_nowait(str(message).split()[1])
            if str(message).startswith("run_sql"):
                asked.put_nowait("")

        call = asyncio.create_task(client.call_tool("ask", {"question": "How many?"}, progress_callback=progress))
        thread = await asked.get()
        await asked.get()
        call.cancel()
        await asyncio.wait({call})
        async with asyncio.timeout(120):
            while (run := await last_run(analyst, thread)).status == "running":  # noqa: ASYNC110 - a database's row
                await asyncio.sleep(0.01)
        assert (run.status, run.outcome.get("reason")) == ("paused", "stopped")
        model.shut.clear()
        answer = await called(client, "resume", thread=thread)
        assert (answer["status"], answer["answer"]) == ("finished", "There are 41 [q1].")
        assert "to resume" in await refused(client, "resume", thread=thread)


@pytest.mark.parametrize("era", ERAS)
async def test_a_server_that_ends_answers_who_waits(open_analyst: Open, era: str) -> None:
    model = GatedModel([ANSWER])
    model.shut.set()
    analyst = await open_analyst(model)
    async with listening(analyst) as (url, server):
        client = over_http(url, era)
        opened = await client.__aenter__()
        await opened.list_tools()  # it judges answers by their schemas, and would ask for these later
        call = asyncio.create_task(opened.call_tool("ask", {"question": "How many?"}))
        while not analyst.runs._running:  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.01)
        server.should_exit = True
        answer: Any = (await call).structured_content
        assert (answer["status"], answer["reason"]) == ("paused", "stopped")
        await client.__aexit__(None, None, None)


async def test_a_run_that_fails_is_an_error_that_says_how_to_go_on(open_analyst: Open) -> None:
    analyst = await open_analyst(GatedModel([RuntimeError("no such luck"), ANSWER]), retry_attempts=0)
    async with directly(analyst) as client:
        failed = await client.call_tool("ask", {"question": "How many?"})
        answer: Any = failed.structured_content
        assert (failed.is_error, answer["status"]) == (True, "failed")
        assert answer["thread"] in said(failed) and "longthread resume" not in failed.model_dump_json()
        for told in (said(failed), answer["error"]["message"]):
            assert told.count("The conversation is kept; the tool `resume` tries again.") == 1
        assert (await called(client, "resume", thread=answer["thread"]))["status"] == "finished"


async def test_a_paused_run_says_how_to_go_on(open_analyst: Open) -> None:
    analyst = await open_analyst(GatedModel([COUNT, ANSWER]), max_steps=1)
    async with directly(analyst) as client:
        paused = await client.call_tool("ask", {"question": "How many?"})
        answer: Any = paused.structured_content
        assert (paused.is_error, answer["status"], answer["reason"]) == (False, "paused", "max_steps")
        assert said(paused).count("`resume`") == 1 and "continue" not in said(paused)


async def test_calls_that_wait_for_a_person_are_told_and_not_made(open_analyst: Open) -> None:
    mail = {"thought": "", "action": "send_mail", "args": {"to": "ada"}}
    analyst = await open_analyst(GatedModel([mail, ANSWER]))
    await Catalog(analyst.store).apply(CLERK)
    async with directly(analyst, agent="clerk") as client:
        waits = await client.call_tool("ask", {"question": "Write to Ada."})
        answer: Any = waits.structured_content
        calls = [{"tool": "send_mail", "args": {"to": "ada"}}]
        assert (waits.is_error, answer["status"], answer["calls"]) == (False, "waiting", calls)
        assert f"longthread approve {answer['thread']}" in said(waits)
        for tool, given in (("resume", {}), ("ask", {"question": "继续"})):
            still = await client.call_tool(tool, {"thread": answer["thread"], **given})
            again: Any = still.structured_content
            assert (still.is_error, again["status"], again["calls"]) == (False, "waiting", calls)
            assert again["run"] == answer["run"] and f"longthread approve {answer['thread']}" in said(still)
        read = await client.call_tool("read_thread", {"thread": answer["thread"]})
        page: Any = read.structured_content
        assert page["waiting"] == calls and f"longthread approve {answer['thread']}" in said(read)
    assert len(await analyst.approvals.pending(answer["thread"], user_id=analyst.settings.user)) == 1


async def test_no_other_user_is_seen(open_analyst: Open) -> None:
    theirs = await open_analyst(user="ada")
    handle = await theirs.ask("Which rockets are there?", user_id=theirs.settings.user)
    await handle.wait()
    async with directly(theirs) as client:
        kept = await called(client, "remember", content="Ada's secret is a zebra.")
        assert len((await called(client, "list_threads"))["threads"]) == 1
    thread = handle.thread_id
    async with directly(await open_analyst(user="eve")) as client:
        assert (await called(client, "list_threads"))["threads"] == []
        assert (await called(client, "search_threads", query="rockets"))["threads"] == []
        assert (await called(client, "recall", query="rockets"))["found"] == []
        assert (await called(client, "search_memories", query="zebra"))["memories"] == []
        assert (await client.list_resources()).resources == []
        with pytest.raises(MCPError, match="no thread"):
            await client.read_resource(f"longthread://threads/{thread}")
        for tool in ("read_thread", "view", "resume"):
            assert "no thread" in await refused(client, tool, thread=thread)
        assert "no thread" in await refused(client, "ask", question="And?", thread=thread)
        assert "no thread" in await refused(client, "recall", query="rockets", thread=thread)
        assert "no memory" in await refused(client, "forget", memory=kept["memory"])
    async with directly(theirs) as client:
        assert len((await called(client, "search_memories", query="zebra"))["memories"]) == 1


@pytest.mark.parametrize(
    ("tool", "arguments", "problem"),
    [
        ("ask", {}, "`question` is missing"),
        ("ask", {"question": " "}, "empty"),
        ("ask", {"question": "How many?", "temperature": 1}, "no argument `temperature`"),
        ("ask", {"question": "How many?", "thread": "none"}, "no thread none"),
        ("ask", {"question": "How many?", "agent": "none"}, "no agent none"),
        ("ask", {"question": "How many?", "source": "/etc/passwd"}, "may not be asked here.*demo"),
        ("ask", {"question": "How many?", "source": "postgresql://db/x"}, "--any-source"),
        ("list_threads", {"limit": 0}, "`limit`"),
        ("list_threads", {"cursor": "!"}, "cursor is not one that was given out"),
        ("search_threads", {"query": ""}, "`query`"),
        ("search_threads", {"query": " \u3000\n"}, "nothing to look for.*`list_threads`"),
        ("read_thread", {"thread": "none"}, "The tool `list_threads` shows those"),
        ("forget", {"memory": "none"}, "The tool `search_memories` shows those"),
        ("read_thread", {"thread": 7}, "`thread`"),
        ("read_thread", {"thread": "none"}, "no thread none"),
        ("recall", {}, "nothing to look for"),
        ("recall", {"query": "x", "since": "yesterday"}, "since is 'yesterday'"),
        ("recall", {"query": "x", "thread": "a", "agent": "analyst"}, "not both"),
        ("recall", {"query": "x", "top_k": "many"}, "`top_k`"),
        ("remember", {"content": "…"}, "nothing to remember"),
        ("remember", {"content": "It rains.", "type": "odd"}, "`type`"),
        ("remember", {"content": "It rains.", "expires_at": "2001-01-01"}, "is over"),
        ("remember", {"content": "It rains.", "expires_at": "9999-12-31T23:59:59-14:00"}, "outside of the calendar"),
        ("forget", {"memory": "none"}, "no memory none"),
        ("view", {"thread": "none"}, "no thread none"),
    ],
)
@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
async def test_a_bad_call_is_told_what_is_wrong(
    open_analyst: Open, tool: str, arguments: dict[str, Any], problem: str
) -> None:
    async with directly(await open_analyst()) as client:
        result = await client.call_tool(tool, arguments)
        assert result.is_error
        with pytest.raises(AssertionError, match=f"(?s){problem}"):
            raise AssertionError(said(result))


async def test_a_page_is_bounded_whatever_was_called(open_analyst: Open) -> None:
    """What calls were given counts as what was said does."""
    analyst = await open_analyst()
    drafts = [Draft(id="q", role="user", text="Write them.")]
    for number in range(60):
        args = {"path": f"{number}.txt", "lines": ["字" * 1_000] * 100, "more": "x" * 100_000}
        drafts.append(
            Draft(id=f"a{number}", role="assistant", text="", tool_calls=(ToolCall(f"c{number}", "w", args),))
        )
        drafts.append(Draft(id=f"t{number}", role="tool", text="Done.", tool_call_id=f"c{number}", name="w"))
    many = tuple(ToolCall(f"m{number}", "w", {"text": "x" * 9_000}) for number in range(100))
    drafts.append(Draft(id="m", role="assistant", text="", tool_calls=many))
    async with analyst.store.writing() as tx:
        await log.create_thread(tx, "big", user_id="default")
        await log.append(tx, "big", drafts, tip=0, size=0)
    seen, before = [], {}
    async with directly(analyst) as client:
        while True:
            result = await client.call_tool("read_thread", {"thread": "big", "steps": True, "limit": 100, **before})
            assert len(result.model_dump_json()) < 4 * PAGE_CHARS
            page: Any = result.structured_content
            seen = page["messages"] + seen
            if not page.get("before"):
                break
            before = {"before": page["before"]}
    assert [message["entry"] for message in seen] == [draft.id for draft in drafts]
    [call] = seen[1]["calls"]
    assert (call["args"]["path"], seen[1]["cut"]) == ("0.txt", True)
    assert call["args"]["lines"].startswith('["字字') and len(call["args"]["lines"]) < 2_000
    assert [len(seen[-1]["calls"]), seen[-1]["cut"]] == [100, True]


async def test_tools_say_what_they_do_and_unknown_ones_are_refused(open_analyst: Open) -> None:
    analyst = await open_analyst()
    async with directly(analyst) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        hints = {name: tool.annotations for name, tool in tools.items() if tool.annotations}
        assert {name for name, hint in hints.items() if hint.read_only_hint} == {
            "list_threads", "search_threads", "read_thread", "recall", "search_memories", "view",
        }  # fmt: skip
        assert [name for name, hint in hints.items() if hint.destructive_hint] == ["forget"]
        assert all(tool.output_schema and tool.title and tool.description for tool in tools.values())
        with pytest.raises(MCPError, match="no tool answer"):
            await client.call_tool("answer", {})
    async with directly(analyst, read_only=True) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert names == {"list_threads", "search_threads", "read_thread", "recall", "search_memories", "view"}
        with pytest.raises(MCPError, match="no tool ask"):
            await client.call_tool("ask", {"question": "How many?"})


async def test_sources_and_agents_of_the_catalog_may_be_named(open_analyst: Open) -> None:
    from longthread import Catalog

    analyst = await open_analyst(GatedModel([ANSWER], loop=True), source=None)
    clerk = {"kind": "agent", "name": "clerk", "system_prompt": "You count."}
    await Catalog(analyst.store).apply([{"kind": "source", "name": "main", "address": "demo"}, clerk])
    async with directly(analyst, agent="clerk") as client:
        answer = await called(client, "ask", question="How many?")
        again = await called(client, "ask", question="And now?", thread=answer["thread"])
        assert again["thread"] == answer["thread"]
        async with analyst.store.reading() as tx:
            run = await runs.last_run(tx, answer["thread"])
        assert run is not None and run.agent is not None
        answer = await called(client, "ask", question="How many?", agent="analyst", source="main")
        assert answer["status"] == "finished"


async def test_any_source_may_be_named_where_that_is_allowed(open_analyst: Open, tmp_path: Any) -> None:
    (tmp_path / "sums.csv").write_text("a,b\n1,2\n")
    analyst = await open_analyst(GatedModel([ANSWER]))
    async with listening(analyst, ClientRights(any_source=True)) as (url, _), over_http(url) as client:
        answer = await called(client, "ask", question="How many?", source=str(tmp_path / "sums.csv"))
        thread = await analyst.threads.find(answer["thread"], user_id=analyst.settings.user)
        assert "sums.csv" in str(thread.source)
