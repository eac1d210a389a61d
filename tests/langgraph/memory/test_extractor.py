"""Facts taken from conversations into memories, by a scripted model, on both backends."""

from __future__ import annotations

import json
import logging
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.graph import START, MessagesState, StateGraph

from longthread.errors import InvalidInput
from longthread.langgraph import LongthreadSaver, MemoryExtractor, MemoryMessagesState, memory_node
from longthread.langgraph.memory.extracted import ReplyUnreadable
from longthread.memory.user_memories import Memories
from longthread.model.memory import ANALYST, Statement
from longthread.store import memories
from longthread.store.memories import Owner
from longthread.testing import ScriptedChatModel

pytestmark = pytest.mark.one_backend

AT: Any = {"configurable": {"thread_id": "t"}}
OWNER = Owner("ada", ANALYST)
_ITEM = re.compile(r"^- \[(\S+)\] \(\w+\) (.*)$", re.MULTILINE)
_MESSAGE = re.compile(r"^\[(\d+)\] user: (.*)$", re.MULTILINE)


class Keeper:
    """A model that keeps each message with "I" or "我" in it, and knows that some say the same or correct others."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.same: dict[str, str] = {}
        self.model = ScriptedChatModel(self._reply)

    def _reply(self, messages: Any) -> Any:
        text = messages[-1].text
        self.asked.append(text)
        known = {content: memory_id for memory_id, content in _ITEM.findall(text)}
        found, forget = [], []
        for number, said in _MESSAGE.findall(text):
            if said.startswith("Forget "):
                forget += [memory_id for content, memory_id in known.items() if said[7:] in content]
            elif said.startswith(("I ", "我")):
                old = self.same.get(said)
                found.append(
                    {"content": said, "type": "semantic", "messages": [int(number)], "replaces": known.get(old or "")}
                )
        return json.dumps({"memories": found, "forget": forget}, ensure_ascii=False)


def _say(saver: Any, *texts: str, at: Any = AT, ids: tuple[str, ...] = ()) -> None:
    builder = StateGraph(MessagesState)
    builder.add_node("answer", lambda state: {"messages": [("ai", "I see.")]})
    builder.add_edge(START, "answer")
    graph: Any = builder.compile(checkpointer=saver)
    for n, text in enumerate(texts):
        graph.invoke({"messages": [HumanMessage(text, id=ids[n] if ids else None)]}, at)


def _quiet_graph(saver: Any) -> Any:
    builder = StateGraph(MessagesState)
    builder.add_node("nothing", lambda state: {"messages": []})
    builder.add_edge(START, "nothing")
    return builder.compile(checkpointer=saver)


def _known(saver: Any) -> dict[str, Any]:
    async def find() -> list[Any]:
        return await Memories(saver.backing.store).list_(Owner(saver.backing.user_id, ANALYST))

    return {each.content: each for each in saver.backing.home.call("find", find)}


def _sources(saver: Any, memory: Any) -> dict[str, Any]:
    async def find() -> Any:
        async with saver.backing.store.reading() as tx:
            return await memories.sources(tx, memory.id, user_id=memory.user_id)

    return {each.thread_id: tuple(each.seqs) for each in saver.backing.home.call("find", find)}


def test_facts_are_typed_and_name_their_messages(store_address: str) -> None:
    keeper = Keeper()
    with LongthreadSaver.from_conn_string(store_address, user_id="ada") as saver:
        _say(saver, "Hello", "I like noodles", "我住在上海")
        extractor = MemoryExtractor(keeper.model, saver)
        stored = extractor.extract("t")
        assert [(each.content, each.type) for each in stored] == [
            ("I like noodles", "semantic"),
            ("我住在上海", "semantic"),
        ]
        assert _sources(saver, stored[0]) == {"t": (3,)}
        assert extractor.usage.calls == 1 and extractor.usage.input_tokens > 0 < extractor.usage.output_tokens
        # What was read is not read again, by another extractor either.
        assert extractor.extract("t") == MemoryExtractor(keeper.model, saver).extract("t") == []
        assert len(keeper.asked) == 1
        _say(saver, "I have a cat")
        assert [each.content for each in extractor.extract("t")] == ["I have a cat"]
        assert "noodles" not in keeper.asked[-1].partition("New messages:")[2]
        assert [each.content for each in extractor.search("上海")] == ["我住在上海"]
        assert _known(saver.for_user("bob")) == {}


def test_they_are_merged_and_forgotten(store_address: str) -> None:
    keeper = Keeper()
    keeper.same = {"我现在住在北京": "I live in Shanghai", "I adore noodles": "I like noodles"}
    with LongthreadSaver.from_conn_string(store_address, user_id="ada") as saver:
        extractor = MemoryExtractor(keeper.model, saver)
        _say(saver, "I live in Shanghai", "I like noodles")
        first = {each.content: each.id for each in extractor.extract("t")}
        other: Any = {"configurable": {"thread_id": "u"}}
        _say(saver, "我现在住在北京", "I like noodles.", "Forget nothing", at=other)
        extractor.extract("u")
        known = _known(saver)
        assert {content: each.id for content, each in known.items()} == {
            "我现在住在北京": first["I live in Shanghai"],
            "I like noodles.": first["I like noodles"],
        }
        assert _sources(saver, known["我现在住在北京"]).keys() == {"t", "u"}
        _say(saver, "Forget noodles", at=other)
        extractor.extract("u")
        assert list(_known(saver)) == ["我现在住在北京"]
        # With their memories: what two threads have said goes with the last of them, what was made of both with the
        # first.
        both: Any = {"configurable": {"thread_id": "v"}}
        for at in (other, both):
            _say(saver, "I like tea", at=at)
            extractor.extract(at["configurable"]["thread_id"])
        assert set(_known(saver)) == {"我现在住在北京", "I like tea"}
        saver.delete_thread("t", with_memories=True)
        assert list(_known(saver)) == ["I like tea"]
        saver.threads.delete("u", with_memories=True)
        assert list(_known(saver)) == ["I like tea"]
        saver.delete_thread("v", with_memories=True)
        assert _known(saver) == {}


def test_what_was_found_outlives_its_thread_and_is_corrected_afterwards(store_address: str) -> None:
    keeper = Keeper()
    keeper.same = {"我现在住在北京": "I live in Shanghai"}
    with LongthreadSaver.from_conn_string(store_address, user_id="ada") as saver:
        extractor = MemoryExtractor(keeper.model, saver)
        _say(saver, "I live in Shanghai", "I like noodles")
        [place, food] = extractor.extract("t")
        saver.threads.delete("t")
        assert {each.id for each in _known(saver).values()} == {place.id, food.id}
        assert all(each.thread_id is None and each.source_deleted_at for each in _known(saver).values())
        other: Any = {"configurable": {"thread_id": "u"}}
        _say(saver, "我现在住在北京", "Forget noodles", at=other)
        extractor.extract("u")
        assert {content: each.id for content, each in _known(saver).items()} == {"我现在住在北京": place.id}
        saver.threads.set_ttl("u", 0)
        assert saver.threads.sweep_ttl() == 1
        assert list(_known(saver)) == ["我现在住在北京"]


def test_what_a_person_entered_is_neither_replaced_nor_forgotten(store_address: str) -> None:
    keeper = Keeper()
    keeper.same = {"I live in Paris": "I live in Berlin"}
    with LongthreadSaver.from_conn_string(store_address, user_id="ada") as saver:
        entered = Statement("I live in Berlin")
        saver.backing.home.call("remember", Memories(saver.backing.store).remember, OWNER, entered)
        _say(saver, "I live in Paris", "Forget Berlin")
        MemoryExtractor(keeper.model, saver).extract("t")
        assert set(_known(saver)) == {"I live in Berlin", "I live in Paris"}


def test_what_was_replaced_in_the_thread_is_never_read(store_address: str) -> None:
    """Before a reading, and while the model reads."""
    keeper = Keeper()
    with LongthreadSaver.from_conn_string(store_address, user_id="ada") as saver:
        _say(saver, "I have the number 4111", ids=("m",))
        _say(saver, "I have the number [removed]", ids=("m",))
        extractor = MemoryExtractor(keeper.model, saver)
        assert [each.content for each in extractor.extract("t")] == ["I have the number [removed]"]
        assert "4111" not in "".join(keeper.asked)

        def replacing(messages: Any) -> Any:
            if "5222" in messages[-1].text:
                _say(saver.for_user("ada"), "I have the code [gone]", ids=("n",))
            return keeper._reply(messages)

        _say(saver, "I have the code 5222", ids=("n",))
        MemoryExtractor(ScriptedChatModel(replacing), saver).extract("t")
        assert "5222" not in "".join(_known(saver))
        assert "I have the code [gone]" in _known(saver)
        # What was changed after it was read is read again.
        keeper.same = {"I have the number 7": "I have the number [removed]"}
        _say(saver, "I have the number 7", ids=("m",))
        extractor.extract("t")
        assert set(_known(saver)) == {"I have the number 7", "I have the code [gone]"}


def test_a_reply_that_cannot_be_read_stores_nothing_and_loses_nothing(store_address: str) -> None:
    keeper = Keeper()
    with LongthreadSaver.from_conn_string(store_address, user_id="ada") as saver:
        _say(saver, "I like tea")
        for bad in ("No.", '{"memories": 5}', "{"):
            with pytest.raises(ReplyUnreadable):
                MemoryExtractor(ScriptedChatModel([bad]), saver).extract("t")
        assert [each.content for each in MemoryExtractor(keeper.model, saver).extract("t")] == ["I like tea"]


def test_claims_without_a_message_of_the_user_s_are_left_out(store_address: str) -> None:
    reply = {
        "memories": [
            {"content": "Not cited", "type": "semantic"},
            {"content": "Said by the model", "messages": [2]},
            {"content": "Of no message", "messages": [99, "1", True]},
            {"content": "   ", "messages": [1]},
            {"content": "Good", "type": "nonsense", "importance": 7, "messages": [1, 99], "replaces": "another's"},
            {"content": "Too long " * 300, "messages": [1]},
            {"content": "!", "messages": [1]},
            {"content": "Great", "messages": [1], "importance": 10**400, "replaces": ["another's"]},
            "no object",
        ],
        "forget": ["another's", 5, {"id": "another's"}],
    }
    with LongthreadSaver.from_conn_string(store_address, user_id="ada") as saver:
        _say(saver, "Hello")
        stored = MemoryExtractor(ScriptedChatModel([f"```json\n{json.dumps(reply)}\n```"]), saver).extract("t")
        assert [(each.content, each.type, each.importance) for each in stored] == [
            ("Good", "semantic", 1.0),
            ("Great", "semantic", 1.0),
        ]


def _graph(saver: Any, extractor: Any, model: Any) -> Any:
    memory = memory_node(saver, model=model, extractor=extractor)
    builder = StateGraph(MemoryMessagesState)
    builder.add_node("memory", memory)
    builder.add_node("model", lambda state: {"messages": [AIMessage("Yes.")]})
    builder.add_edge(START, "memory")
    builder.add_edge("memory", "model")
    return builder.compile(checkpointer=saver)


def test_a_thread_that_goes_on_is_read_later_and_once(store_address: str) -> None:
    keeper = Keeper()
    with LongthreadSaver.from_conn_string(store_address, user_id="ada") as saver:
        waiting = MemoryExtractor(keeper.model, saver, after_seconds=3600)
        graph = _graph(saver, waiting, ScriptedChatModel(["x"]))
        for n in range(5):
            graph.invoke({"messages": [HumanMessage(f"I have {n} cats")]}, AT)
        assert keeper.asked == []
        waiting.cancel("t")
        saver.backing.home.call("settle", saver.backing.home.settle)
        waiting.settle()
        assert keeper.asked == []
        soon = MemoryExtractor(keeper.model, after_seconds=0)
        _graph(saver, soon, ScriptedChatModel(["x"])).invoke({"messages": [HumanMessage("I have no cats")]}, AT)
        saver.backing.home.call("settle", saver.backing.home.settle)
        soon.settle()
        assert len(_known(saver)) >= 5


def test_an_error_of_the_model_is_told_and_the_next_turn_makes_up_for_it(
    store_address: str, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(messages: Any) -> str:
        raise RuntimeError("the provider is down")

    keeper = Keeper()
    with LongthreadSaver.from_conn_string(store_address, user_id="ada") as saver:
        _say(saver, "I like tea")
        failing = MemoryExtractor(ScriptedChatModel(fail), saver, after_seconds=0)
        with caplog.at_level(logging.WARNING):
            failing.submit("t")
            saver.backing.home.call("settle", saver.backing.home.settle)
            failing.settle()
        assert "the provider is down" in caplog.text and "thread t" in caplog.text
        good = MemoryExtractor(keeper.model, saver, after_seconds=0)
        good.submit("t")
        saver.backing.home.call("settle", saver.backing.home.settle)
        good.settle()
        assert list(_known(saver)) == ["I like tea"]


async def test_it_is_awaited_as_well(store_address: str) -> None:
    keeper = Keeper()
    async with LongthreadSaver.from_conn_string(store_address, user_id="ada") as saver:
        builder = StateGraph(MessagesState)
        builder.add_node("answer", lambda state: {"messages": [("ai", "I see.")]})
        builder.add_edge(START, "answer")
        graph: Any = builder.compile(checkpointer=saver)
        await graph.ainvoke({"messages": [HumanMessage("我喜欢面条")]}, AT)
        extractor = MemoryExtractor(keeper.model, saver)
        assert [each.content for each in await extractor.aextract("t")] == ["我喜欢面条"]
        assert [each.content for each in await extractor.asearch("面条")] == ["我喜欢面条"]
        await extractor.asettle()


@pytest.mark.one_backend
def test_other_arguments_are_refused(store_address: str) -> None:
    model = ScriptedChatModel(["x"])
    for given in ({"model": "gpt"}, {"model": model, "after_seconds": -1}, {"model": model, "after_seconds": "1"}):
        with pytest.raises(InvalidInput):
            MemoryExtractor(**given)
    with pytest.raises(InvalidInput, match="without a saver"):
        MemoryExtractor(model).extract("t")


def _held(keeper: Keeper) -> tuple[ScriptedChatModel, threading.Event, threading.Event]:
    """Return a model that waits in each call, an event that it is asked, and one that lets it answer."""
    asked, may_answer = threading.Event(), threading.Event()

    def hold(messages: Any) -> Any:
        asked.set()
        assert may_answer.wait(60)
        return keeper._reply(messages)

    return ScriptedChatModel(hold), asked, may_answer


def test_more_changed_messages_than_one_call_reads_are_each_read_once(store_address: str) -> None:
    keeper = Keeper()
    with LongthreadSaver.from_conn_string(store_address, user_id="ada") as saver:
        graph = _quiet_graph(saver)
        graph.invoke({"messages": [HumanMessage(f"note {n} secret", id=f"m{n}") for n in range(150)]}, AT)
        extractor = MemoryExtractor(keeper.model, saver)
        assert extractor.extract("t") == []
        assert len(keeper.asked) == 3
        graph.invoke({"messages": [HumanMessage(f"note {n} [removed]", id=f"m{n}") for n in range(130)]}, AT)
        extractor.extract("t")
        shown = [said for each in keeper.asked[3:] for _, said in _MESSAGE.findall(each)]
        assert shown == [f"note {n} [removed]" for n in range(130)]
        assert len(keeper.asked) == 6
        # A failure on the way keeps the place.
        graph.invoke({"messages": [HumanMessage(f"note {n} again", id=f"m{n}") for n in range(130)]}, AT)
        replies = iter(['{"memories": []}', "no JSON"])
        with pytest.raises(ReplyUnreadable):
            MemoryExtractor(ScriptedChatModel(lambda messages: next(replies)), saver).extract("t")
        keeper.asked.clear()
        extractor.extract("t")
        assert [len(_MESSAGE.findall(each)) for each in keeper.asked] == [60, 10]


def test_changed_and_new_messages_are_shown_in_the_order_of_the_conversation(store_address: str) -> None:
    keeper = Keeper()
    with LongthreadSaver.from_conn_string(store_address, user_id="ada") as saver:
        graph, extractor = _quiet_graph(saver), MemoryExtractor(keeper.model, saver)
        graph.invoke({"messages": [SystemMessage("It is Monday", id="s"), HumanMessage("one", id="1")]}, AT)
        graph.invoke({"messages": [HumanMessage("two", id="2")]}, AT)
        extractor.extract("t")
        graph.invoke({"messages": [HumanMessage("three", id="3"), HumanMessage("I am one", id="1")]}, AT)
        graph.invoke({"messages": [HumanMessage("III", id="3"), SystemMessage("It is Tuesday", id="s")]}, AT)
        extractor.extract("t")
        assert [said for _, said in _MESSAGE.findall(keeper.asked[-1])] == ["I am one", "III"]
        # Instructions are no news: no call is made for them.
        graph.invoke({"messages": [SystemMessage("It is Wednesday", id="s")]}, AT)
        assert extractor.extract("t") == []
        assert len(keeper.asked) == 2 and "day" not in "".join(keeper.asked)


def test_one_for_several_users_takes_over_none_of_their_stores(store_address: str) -> None:
    keeper = Keeper()
    extractor = MemoryExtractor(keeper.model, after_seconds=0)
    for _ in range(2):  # the store is opened anew
        with LongthreadSaver.from_conn_string(store_address) as saver:
            ada, bob = saver.for_user("ada"), saver.for_user("bob")
            for user, said in ((ada, "I like noodles"), (bob, "I like no noodles")):
                at: Any = {"configurable": {"thread_id": user.backing.user_id}}
                _graph(user, extractor, ScriptedChatModel(["x"])).invoke({"messages": [HumanMessage(said)]}, at)
                extractor.settle()
                extractor.extract(user.backing.user_id, saver=user)
            assert [each.content for each in extractor.search("noodles", saver=bob)] == ["I like no noodles"]
            assert [each.content for each in extractor.search("noodles", saver=ada)] == ["I like noodles"]
            for ask in (extractor.search, extractor.extract, extractor.submit):
                with pytest.raises(InvalidInput, match="saver=saver"):
                    ask("bob")
    assert not extractor._submissions


def test_the_saver_of_a_run_is_the_one_that_is_read(store_address: str) -> None:
    keeper = Keeper()
    with LongthreadSaver.from_conn_string(store_address, user_id="ada") as ada:
        extractor, bob = MemoryExtractor(keeper.model, ada, after_seconds=0), ada.for_user("bob")
        _graph(bob, extractor, ScriptedChatModel(["x"])).invoke({"messages": [HumanMessage("I am Bob")]}, AT)
        extractor.settle()
        extractor.extract("t", saver=bob)
        assert list(_known(bob)) == ["I am Bob"]
        assert _known(ada) == {}


def test_two_open_stores_have_nothing_to_do_with_each_other(store_address: str, tmp_path: Any) -> None:
    keeper = Keeper()
    model, asked, may_answer = _held(keeper)
    extractor = MemoryExtractor(model, after_seconds=0)
    with LongthreadSaver.from_conn_string(store_address, user_id="ada") as one:
        _say(one, "I like tea")
        extractor.submit("t", saver=one)
        assert asked.wait(60)
        with LongthreadSaver.from_conn_string(str(tmp_path / "other.db"), user_id="ada") as other:
            _say(other, "I like coffee")
            MemoryExtractor(keeper.model, other).extract("t")
            waiting = MemoryExtractor(keeper.model, after_seconds=3600)
            for each in (extractor, waiting):
                each.submit("t", saver=one)
                each.submit("t", saver=other)
            assert len(waiting._submissions) == 2
        assert len(waiting._submissions) == 1
        may_answer.set()
        extractor.settle()
        assert list(_known(one)) == ["I like tea"]


def test_what_is_submitted_while_it_is_read_is_not_asked_twice(store_address: str) -> None:
    keeper = Keeper()
    model, asked, may_answer = _held(keeper)
    extractor = MemoryExtractor(model, after_seconds=0)
    with LongthreadSaver.from_conn_string(store_address, user_id="ada") as saver:
        _say(saver, "I like tea")
        extractor.submit("t", saver=saver)
        assert asked.wait(60)
        for _ in range(4):
            extractor.cancel("t", saver=saver)
            extractor.submit("t", saver=saver)
        with ThreadPoolExecutor() as pool:
            by_hand = [pool.submit(extractor.extract, "t", saver=saver) for _ in range(2)]
            may_answer.set()
            assert [each.result() for each in by_hand] == [[], []]
        extractor.settle()
        assert len(keeper.asked) == extractor.usage.calls == 1
        assert list(_known(saver)) == ["I like tea"]
        # What was said meanwhile is read after it.
        asked.clear()
        may_answer.clear()
        _say(saver, "I like milk")
        extractor.submit("t", saver=saver)
        assert asked.wait(60)
        _say(saver, "I like rice")
        extractor.submit("t", saver=saver)
        may_answer.set()
        extractor.settle()
        assert set(_known(saver)) == {"I like tea", "I like milk", "I like rice"}


class _Cipher:
    def encrypt(self, plain: bytes) -> tuple[str, bytes]:
        return "xor", bytes(each ^ 0x5A for each in plain)

    def decrypt(self, name: str, packed: bytes) -> bytes:
        return bytes(each ^ 0x5A for each in packed)


def test_a_saver_without_texts_is_refused(store_address: str) -> None:
    keeper = Keeper()
    serde = EncryptedSerializer(_Cipher())
    with LongthreadSaver.from_conn_string(store_address, user_id="ada", serde=serde) as saver:
        _say(saver, "I like tea")
        extractor = MemoryExtractor(keeper.model, saver)
        for ask in (extractor.extract, extractor.submit):
            with pytest.raises(InvalidInput, match="index_text=True"):
                ask("t")
        assert extractor.search("tea") == []
    with LongthreadSaver.from_conn_string(store_address, user_id="ada", serde=serde, index_text=True) as saver:
        _say(saver, "I like milk")
        assert [each.content for each in MemoryExtractor(keeper.model, saver).extract("t")] == ["I like milk"]


def _finds(*found: dict[str, Any]) -> ScriptedChatModel:
    """A model that finds this, in the messages that are numbered 1."""
    reply = json.dumps({"memories": [{"messages": [1], **each} for each in found]})
    return ScriptedChatModel(lambda messages: reply if "[1] user" in messages[-1].text else '{"memories": []}')


def test_what_was_made_of_a_replaced_message_goes_whatever_its_words_are(store_address: str) -> None:
    said = ("my password is hunter2", "我感染了艾滋病毒", "I live at 5 Elm Street")
    found = ("La clave de la usuaria es Hunter-2", "The user is HIV positive.", "Home: Elm St. no. five")
    with LongthreadSaver.from_conn_string(store_address, user_id="ada") as saver:
        entered = Statement("The user is HIV positive, as she told us.")
        saver.backing.home.call("remember", Memories(saver.backing.store).remember, OWNER, entered)
        graph = _quiet_graph(saver)
        for n, (text, content) in enumerate(zip(said, found, strict=True)):
            at: Any = {"configurable": {"thread_id": f"t{n}"}}
            graph.invoke({"messages": [HumanMessage(text, id="1"), HumanMessage("I like tea", id="2")]}, at)
            model = _finds({"content": content}, {"content": f"Likes tea {n}", "messages": [2]})
            assert len(MemoryExtractor(model, saver).extract(f"t{n}")) == 2
            graph.update_state(at, {"messages": [HumanMessage("[removed]", id="1", name="ada")]})
        assert set(_known(saver)) == {entered.content, *(f"Likes tea {n}" for n in range(3))}
        # The message is read again, as it is now.
        keeper = Keeper()
        MemoryExtractor(keeper.model, saver).extract("t0")
        assert _MESSAGE.findall(keeper.asked[0]) == [("1", "[removed]")]
        # Other metadata is no other words.
        graph.update_state({"configurable": {"thread_id": "t0"}}, {"messages": [HumanMessage("I like tea", id="2")]})
        assert "Likes tea 0" in _known(saver)


@pytest.mark.parametrize("how", ["forgotten", "deleted", "replaced"])
@pytest.mark.parametrize("thread_id", ["a", "b"])
def test_a_memory_of_two_threads_goes_with_either(store_address: str, thread_id: str, how: str) -> None:
    with LongthreadSaver.from_conn_string(store_address, user_id="ada") as saver:
        graph = _quiet_graph(saver)
        for at, text in (("a", "I have diabetes and live in Paris"), ("b", "I moved to Rome")):
            graph.invoke({"messages": [HumanMessage(text, id="1")]}, {"configurable": {"thread_id": at}})
        [old] = MemoryExtractor(_finds({"content": "Has diabetes, lives in Paris"}), saver).extract("a")
        model = _finds({"content": "Has diabetes, lives in Rome", "replaces": old.id})
        [new] = MemoryExtractor(model, saver).extract("b")
        assert new.id == old.id and list(_known(saver)) == ["Has diabetes, lives in Rome"]
        if how == "forgotten":
            saver.forget_message(thread_id, "1")
        elif how == "deleted":
            saver.delete_thread(thread_id, with_memories=True)
        else:
            message = HumanMessage("[removed]", id="1")
            graph.update_state({"configurable": {"thread_id": thread_id}}, {"messages": [message]})
        assert _known(saver) == {}
