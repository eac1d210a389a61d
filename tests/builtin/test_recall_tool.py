"""The tool `recall_memory`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.messages.tool import invalid_tool_call
from tests.memory.talking import say

from longthread.builtin.memory_tools import MOST, NOTHING_YET, PageRoom, describe_tool, recall_tool
from longthread.errors import EmbedderUnavailable, InvalidInput
from longthread.langgraph.message_codec import draft_of
from longthread.llm.embedders import embedder_of
from longthread.memory.keywords import EntryPlace
from longthread.memory.recall import Question, Recaller
from longthread.model.entry import Draft
from longthread.model.thread import Scope
from longthread.settings import Settings
from longthread.store import log
from longthread.store.driver import Driver
from longthread.store.queries import Sql
from longthread.view.tokens import estimate
from longthread_testing.embedding import HashEmbedder

pytestmark = pytest.mark.one_backend

TEXTS = ["hello", "The staging server is 10.1.2.3.", "noted", "我们把预算定为三万元。", "好的", "thanks", "bye"]


async def asked(store: Driver, *, before: int | None = None, **arguments: Any) -> dict[str, Any]:
    end = None if before is None else EntryPlace("t", before)
    tool = recall_tool(Recaller(store), Scope("u", "t"), thread_id="t", agent_id=None, top_k=2, before=end)
    observation = await tool.call(arguments)
    json.dumps(observation)
    return observation


async def test_it_tells_what_was_said_with_what_stands_around_it(store: Driver) -> None:
    await say(store, TEXTS)
    observation = await asked(store, query="which staging server?")
    first = observation["data"]["found"][0]
    assert observation["ok"] is True
    assert len(observation["data"]["found"]) == 2
    assert (first["entry"], first["role"], first["text"]) == ("t-1", "assistant", TEXTS[1])
    # What stands before it is the second hit: each is shown once, and beside that one stands what comes next.
    second = observation["data"]["found"][1]
    assert (first["seq"], second["seq"], second["text"]) == (2, 1, "hello")
    around = [[(other["seq"], other["text"]) for other in hit["around"]] for hit in (first, second)]
    assert around == [[(3, "noted")], [(4, TEXTS[3])]]
    [only] = (await asked(store, query="which staging server?", k=1))["data"]["found"]
    assert [other["text"] for other in only["around"]] == ["hello", "noted"]


async def test_topics_ids_and_other_threads(store: Driver) -> None:
    await say(store, TEXTS)
    await say(store, ["预算 was raised"], thread_id="t2")
    await say(store, ["预算 of somebody else"], thread_id="theirs", user_id="v")
    assert (await asked(store, topic="预算"))["data"]["found"][0]["text"] == TEXTS[3]
    everywhere = await asked(store, query="预算", scope="user", k=9, neighbours=0)
    ids = {one["entry"] for one in everywhere["data"]["found"] if "预算" in one["text"]}
    assert ids == {"t-3", "t2/t2-0"}
    mine = await asked(store, entry_id="t-3")
    assert mine["data"]["found"][0]["text"] == TEXTS[3]
    other = await asked(store, entry_id="t2/t2-0", scope="user")
    assert other["data"]["found"][0]["text"] == "预算 was raised"


@pytest.mark.parametrize("entry_id", [None, "t-0"])
async def test_the_part_that_is_shown_is_about_what_the_question_is_about(store: Driver, entry_id: str | None) -> None:
    fill = "Here is what we did and who was there: what the plan is, and where it was. " * 20
    rows = "".join(f"row{n}|{n * 7}|ok\n" for n in range(2_000))
    await say(store, [f"{fill}\n{rows}\nRouter password: tiger-42-blue.\n{rows}"])
    given = {"entry_id": entry_id} if entry_id else {}
    found = await asked(store, query="What is the password that was on the router?", **given)
    assert "tiger" in found["data"]["found"][0]["text"]


async def test_ids_with_slashes(store: Driver) -> None:
    await say(store, ["hello"])
    async with store.writing() as tx:
        await log.extend(tx, "t", [Draft("run/7", "assistant", "said in a run")])
        await log.create_thread(tx, "team/42", user_id="u")
        await log.extend(tx, "team/42", [Draft("e/1", "user", "said elsewhere")])
    everything = await asked(store, query="said", scope="user", k=9)
    ids = {one["entry"] for one in everything["data"]["found"]}
    assert {"run/7", "team/42/e/1"} <= ids
    for entry_id, scope, text in (
        ("run/7", "thread", "said in a run"),
        ("run/7", "user", "said in a run"),
        ("team/42/e/1", "user", "said elsewhere"),
    ):
        observation = await asked(store, entry_id=entry_id, scope=scope)
        assert observation["data"]["found"][0]["text"] == text
    assert (await asked(store, entry_id="team/42/e/1"))["error"]["type"] == "thread_not_found"
    assert (await asked(store, entry_id="team/42/no", scope="user"))["error"]["type"] == "entry_not_found"


async def test_an_id_does_not_lead_out_of_the_agents_conversations(store: Driver) -> None:
    await say(store, ["hello"])
    await say(store, ["the walrus"], thread_id="t2")
    for agent, code in (("other", "thread_not_found"), ("mine", None)):
        async with store.writing() as tx:
            await tx.run(Sql(f"UPDATE threads SET agent_id = '{agent}' WHERE id = 't2'"))
        tool = recall_tool(Recaller(store), Scope("u", "t"), thread_id="t", agent_id="mine", top_k=2, before=None)
        observation = await tool.call({"entry_id": "t2/t2-0", "scope": "agent"})
        assert observation.get("error", {}).get("type") == code


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({}, "invalid_input"),
        ({"query": " "}, "invalid_input"),
        ({"query": 3}, "invalid_input"),
        ({"query": "x", "k": "many"}, "invalid_input"),
        ({"query": "x", "k": 0}, "invalid_input"),
        ({"query": "x", "k": 101}, "invalid_input"),
        ({"query": "x", "neighbours": 6}, "invalid_input"),
        ({"query": "x", "since": "yesterday"}, "invalid_input"),
        ({"query": "x", "since": "2027-01-01", "until": "2020-01-01"}, "invalid_input"),
        ({"query": "x", "scope": "world"}, "invalid_input"),
        ({"query": "x", "scope": "agent"}, "invalid_input"),
        ({"query": "x", "offset": 5}, "invalid_input"),
        ({"entry_id": "t-0", "offset": 5}, "invalid_input"),
        ({"entry_id": "t-0", "offset": -1}, "invalid_input"),
        ({"entry_id": "t-0", "offset": "1"}, "invalid_input"),
        ({"entry_id": "nowhere"}, "entry_not_found"),
        ({"entry_id": "theirs/theirs-0", "scope": "user"}, "thread_not_found"),
        ({"entry_id": "t2/t2-0"}, "thread_not_found"),
    ],
)
async def test_what_cannot_be_answered_says_why(store: Driver, arguments: dict[str, Any], code: str) -> None:
    await say(store, TEXTS)
    await say(store, ["mine"], thread_id="t2")
    await say(store, ["secret"], thread_id="theirs", user_id="v")
    observation = await asked(store, **arguments)
    assert observation["ok"] is False
    assert observation["error"]["type"] == code


async def test_the_runs_own_messages_are_not_recalled(store: Driver) -> None:
    await say(store, [*TEXTS, "which staging server?"])
    found = (await asked(store, query="which staging server?", before=len(TEXTS) + 1, k=50))["data"]["found"]
    assert "which staging server?" not in [one["text"] for one in found]
    assert found[0]["text"] == TEXTS[1]
    everywhere = (await asked(store, query="staging server", before=len(TEXTS) + 1, scope="user"))["data"]["found"]
    assert everywhere[0]["text"] == TEXTS[1]


async def test_the_limits_of_k_are_those_of_its_setting_and_of_the_schema(store: Driver) -> None:
    await say(store, [f"note {n}" for n in range(120)])
    assert len((await asked(store, query="note", k=100))["data"]["found"]) == 100
    assert len((await asked(store, query="note", k=1))["data"]["found"]) == 1
    k = describe_tool().parameters["properties"]["k"]
    assert (k["minimum"], k["maximum"]) == (1, settings(memory_recall_top_k=MOST).memory_recall_top_k) == (1, 100)
    with pytest.raises(InvalidInput):
        settings(memory_recall_top_k=MOST + 1)
    for wrong in ({"k": 0}, {"k": -3}, {"neighbours": -1}):
        with pytest.raises(InvalidInput, match="from 1 and 0 on"):
            Question("note", Scope("u", "t"), **wrong)


async def test_a_conversation_that_is_not_in_the_log_yet_has_nothing_earlier(store: Driver) -> None:
    tool = recall_tool(Recaller(store), Scope("u", "new"), thread_id="new", agent_id=None, top_k=2, before=None)
    assert await tool.call({"query": "staging"}) == {"ok": True, "data": {"found": [], "note": NOTHING_YET}}
    await say(store, TEXTS)
    everywhere = await tool.call({"query": "staging", "scope": "user"})
    assert everywhere["data"]["found"][0]["text"] == TEXTS[1]
    assert "note" not in everywhere["data"]
    await say(store, ["theirs"], thread_id="new", user_id="v")
    assert (await tool.call({"query": "theirs"}))["data"]["found"] == []


async def test_a_long_text_is_shown_where_it_matters(store: Driver) -> None:
    long = "filler " * 3000 + "the code is 4711 " + "filler " * 3000
    await say(store, [long])
    [found] = (await asked(store, query="code 4711"))["data"]["found"]
    assert "the code is 4711" in found["text"]
    assert len(found["text"]) < 1300
    [whole] = (await asked(store, entry_id="t-0", query="code"))["data"]["found"]
    assert len(whole["text"]) > 19_000


async def test_a_long_text_is_read_whole_page_by_page(store: Driver) -> None:
    long = "\n  " + "nothing of note 港口\n" * 2400 + "the vault code is 774411\n" + "nothing more\n" * 300
    await say(store, ["hello", long, "short"])
    offset: int | None = None
    read, pages = "", 0
    while True:
        [page] = (await asked(store, entry_id="t-1", offset=offset))["data"]["found"]
        assert len(page["text"]) <= 20_000
        assert ("around" in page) == (not read)
        read, pages = read + page["text"], pages + 1
        if "this is its end" in page["more"]:
            break
        offset = int(re.search(r"offset (\d+) gives", page["more"])[1])  # type: ignore[index]
    assert (read, pages) == (long, 3)
    assert page["more"] == f"Characters 40000 to {len(long)} of {len(long)}; this is its end."
    [there] = (await asked(store, entry_id="t-1", query="vault code"))["data"]["found"]
    assert "774411" in there["text"]
    begins = int(there["more"].split()[1])
    [again] = (await asked(store, entry_id="t-1", query="vault code", offset=begins))["data"]["found"]
    assert again["text"] == there["text"] == long[begins : begins + 20_000]
    [short] = (await asked(store, entry_id="t-2"))["data"]["found"]
    assert (short["text"], "more" in short) == ("short", False)
    assert "`more`" in describe_tool().parameters["properties"]["offset"]["description"]


async def test_warnings_are_told(store: Driver) -> None:
    class Broken(HashEmbedder):
        async def query(self, text: str) -> Any:
            raise ConnectionError("gone")

    await say(store, TEXTS)
    tool = recall_tool(Recaller(store, Broken()), Scope("u", "t"), thread_id="t", agent_id=None, top_k=5, before=None)
    observation = await tool.call({"query": "staging"})
    assert observation["data"]["found"][0]["text"] == TEXTS[1]
    assert "keywords alone" in observation["data"]["warnings"][0]


def settings(**given: Any) -> Settings:
    return Settings.load(env_file=None, **given)


def test_without_a_setting_there_is_no_embedder(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MEMORY_EMBEDDING_MODEL", "MEMORY_EMBEDDING_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    assert embedder_of(settings()) is None


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"memory_embedding_model": "text-embedding-3-small"}, "openai:text-embedding-3-small"),
        ({"memory_embedding_model": "ollama:nomic-embed-text"}, "ollama:nomic-embed-text"),
        ({"memory_embedding_model": "local:/models/minilm"}, "local:/models/minilm"),
        ({"memory_embedding_base_url": "http://localhost:1/v1"}, "openai:embedding-3"),
    ],
)
def test_the_configured_embedder(given: dict[str, Any], name: str) -> None:
    embedder = embedder_of(settings(**given))
    assert embedder is not None
    assert embedder.name == name


async def test_a_folder_without_a_model_says_so(tmp_path: Path) -> None:
    embedder = embedder_of(settings(), f"local:{tmp_path}")
    assert embedder is not None
    with pytest.raises(EmbedderUnavailable, match=r"config\.json"):
        await embedder.query("x")


async def test_an_unknown_provider_says_so() -> None:
    embedder = embedder_of(settings(), "nobody:model")
    assert embedder is not None
    with pytest.raises(EmbedderUnavailable, match="nobody"):
        await embedder.query("x")


SEARCHED = {"type": "web_search_call", "id": "w", "action": {"type": "search", "query": "walrus of Svalbard"}}
BESIDE: dict[str, BaseMessage] = {
    "a text": HumanMessage(["see", {"type": "text-plain", "text": "the walrus sleeps"}]),
    "a text alone": HumanMessage([{"type": "text-plain", "text": "the walrus sleeps"}]),
    "Anthropic's text": HumanMessage(
        [{"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "the walrus sleeps"}}]
    ),
    "a text beside a large image": HumanMessage(
        [{"type": "image", "base64": "A" * 90_000}, {"type": "text-plain", "text": "the walrus sleeps"}]
    ),
    "an unread call": AIMessage("", invalid_tool_calls=[invalid_tool_call(name="w", args='{"p": "walrus', id="x")]),
    "Anthropic's search": AIMessage(
        [
            {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "walrus"}},
            {"type": "web_search_tool_result", "tool_use_id": "s", "content": [{"title": "The walrus"}]},
            {"type": "text", "text": "found"},
        ]
    ),
    "OpenAI's search": AIMessage([SEARCHED, {"type": "text", "text": "found"}]),
    "OpenAI's search beside it": AIMessage("found", additional_kwargs={"tool_outputs": [SEARCHED]}),
}


@pytest.mark.parametrize("kind", BESIDE)
async def test_what_a_message_says_beside_its_text_is_found_and_read(store: Driver, kind: str) -> None:
    await say(store, TEXTS)
    async with store.writing() as tx:
        await log.extend(tx, "t", [draft_of(BESIDE[kind].model_copy(update={"id": "it"}))])
    [first, *_] = (await asked(store, query="walrus", k=1))["data"]["found"]
    assert first["entry"] == "it"
    assert "walrus" in first["text"]
    [whole] = (await asked(store, entry_id="it"))["data"]["found"]
    assert "walrus" in whole["text"]
    assert "AAAA" not in whole["text"]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "line", ['0123 4567 89\t"x"\\n\n', "港口的预算是三万元。", "The budget of the harbour is high. "]
)
@pytest.mark.parametrize("budget", [600, 2_000, 16_000])
async def test_pages_fit_a_small_window_and_are_the_text_to_the_letter(store: Driver, line: str, budget: int) -> None:
    long = "".join(f"{n} {line}" for n in range(900)) + "needle"
    await say(store, [*TEXTS, long, *TEXTS])
    room = PageRoom(budget)
    tool = recall_tool(
        Recaller(store), Scope("u", "t"), thread_id="t", agent_id=None, top_k=2, before=None, room=lambda: room
    )
    read, arguments = "", {"entry_id": f"t-{len(TEXTS)}"}
    while True:
        observation = await tool.call(arguments)
        [page] = observation["data"]["found"]
        assert estimate(json.dumps(observation, ensure_ascii=False)) <= budget * 0.65
        read += page["text"]
        if "gives what follows" not in page.get("more", ""):
            break
        arguments |= {"offset": int(re.findall(r"offset (\d+)", page["more"])[0])}
    assert read == long
    [about] = (await tool.call({"entry_id": f"t-{len(TEXTS)}", "query": "needle"}))["data"]["found"]
    assert about["text"].endswith("needle")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("budget", [0, 150, 500, 1_500, 16_000])
async def test_a_small_window_has_the_best_hit_whole_and_fewer_others(store: Driver, budget: int) -> None:
    fact = "The locker code is 4711-blue, and the locker stands in the north hall next to the boiler."
    await say(store, [fact, *(f"The {n} locker is in the plan of the halls. " * 20 for n in range(12))])
    room = PageRoom(budget)
    tool = recall_tool(
        Recaller(store), Scope("u", "t"), thread_id="t", agent_id=None, top_k=5, before=None, room=lambda: room
    )
    observation = await tool.call({"query": "locker code 4711-blue"})
    [best, *others] = observation["data"]["found"]
    assert best["text"] == fact
    assert len(others) == {0: 4, 150: 0, 500: 1, 1_500: 4, 16_000: 4}[budget]
    assert any("around" in hit for hit in [best, *others]) == (budget in {0, 16_000})
    cost = estimate(json.dumps(observation, ensure_ascii=False))
    assert not budget or cost <= budget * 0.9


@pytest.mark.parametrize(
    ("query", "note"),
    [
        ("where was the walrus", "another: this was edited or said anew"),
        ("海象在哪里", "另一分支：这条内容后来被编辑或重新说过"),
    ],
)
async def test_other_branches_are_searched_on_request_and_a_hit_says_so(store: Driver, query: str, note: str) -> None:
    await say(store, ["hello", "the walrus 海象 was here", "thanks"])
    await say(store, ["a walrus 海象 on the new branch"], parent=1)
    [hit] = [each for each in (await asked(store, query=query))["data"]["found"] if "walrus" in each["text"]]
    assert (hit["text"], "branch" in hit) == ("a walrus 海象 on the new branch", False)
    found = (await asked(store, query=query, other_branches=True))["data"]["found"]
    assert {each["text"]: each.get("branch") for each in found} == {
        "a walrus 海象 on the new branch": None,
        "the walrus 海象 was here": note,
    }
    [whole] = (await asked(store, entry_id=found[1]["entry"]))["data"]["found"]
    assert whole.get("branch") == (
        None if found[1]["text"].startswith("a ") else "another: this was edited or said anew"
    )
    wrong = await asked(store, query=query, other_branches="yes")
    assert wrong["error"]["type"] == "invalid_input"
