"""What a model may do for a summary, and everything that may go wrong with it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import pytest
from tests.memory.summary.test_pruning import POLICY, pass_over
from tests.memory.threads import branch_of, kept_of, talk, topics_of

from longthread.memory.summary.digest import tokens_of
from longthread.memory.summary.pruning import PruningPolicy
from longthread.memory.summary.summaries import INPUT_TOKENS, SummaryConfig, SummaryPart, transcript
from longthread.memory.summary.topics import Mentions
from longthread.model.entry import Entry
from longthread.store import summaries
from longthread.store.driver import Driver
from longthread.store.summaries import ThreadSummary

pytestmark = pytest.mark.one_backend


class Writer:
    """A summarizer whose replies are given; an exception is raised."""

    name = "test:writer"
    topics_only = False

    def __init__(self, *replies: str | BaseException | Callable[[str], str]) -> None:
        self.replies = list(replies)
        self.asked: list[tuple[str, str]] = []

    async def write(self, instructions: str, text: str) -> str:
        if "index" in instructions:
            return '["price checks"]'
        self.asked.append((instructions, text))
        reply = self.replies[min(len(self.asked), len(self.replies)) - 1]
        if isinstance(reply, BaseException):
            raise reply
        return reply if isinstance(reply, str) else reply(text)


async def test_a_model_writes_the_summary_and_the_digest_is_kept_beside_it(store: Driver) -> None:
    await talk(store, "t", 12)
    writer = Writer("They compare numbers 1 to 7.")
    kept = await pass_over(store, summarizer=writer)
    assert (kept.summary, kept.model) == ("They compare numbers 1 to 7.", "test:writer")
    assert len(kept.digest["items"]["asked"]) == 7
    [(instructions, text)] = writer.asked
    assert "1000 tokens" in instructions
    assert "user: How about 1?" in text
    assert "user: How about 8?" not in text
    assert kept == await kept_of(store, "t")
    assert await topics_of(store, "t") == ["price checks"]


async def test_of_a_model_that_only_names_topics_no_word_stands_in_the_summary(store: Driver) -> None:
    await talk(store, "t", 12)
    writer = Writer("There are 93 customers in Germany.")
    writer.topics_only = True
    kept = await pass_over(store, summarizer=writer)
    assert kept.summary == await digest_of(store) and kept.model is None
    assert not kept.unwritten and writer.asked == []
    assert await topics_of(store, "t") == ["price checks"]


async def test_what_such_a_model_wrote_before_is_digested(store: Driver) -> None:
    await talk(store, "t", 12)
    writer = Writer("There are 93 customers in Germany.")
    await pass_over(store, summarizer=writer)
    writer.topics_only = True
    await talk(store, "t", 8, first=13)
    kept = await pass_over(store, summarizer=writer)
    assert "Germany" not in kept.summary and kept.model is None
    assert "How about 1?" in kept.summary


async def digest_of(store: Driver) -> str:
    """Return the summary that statistics make of the same messages."""
    await talk(store, "same", 12)
    return str((await pass_over(store, "same")).summary)


async def test_the_next_summary_stands_behind_the_one_before(store: Driver) -> None:
    await talk(store, "t", 12)
    await pass_over(store, summarizer=Writer("First part."))
    await talk(store, "t", 8, first=13)
    writer = Writer("Second part.")
    kept = await pass_over(store, summarizer=writer)
    assert kept.summary == "First part.\n\nSecond part."
    assert len(writer.asked) == 1
    assert "How about 7?" not in writer.asked[0][1]


async def test_over_the_limit_the_old_one_becomes_a_third_and_then_all_of_it_is_shortened(store: Driver) -> None:
    policy = PruningPolicy(40, 10, SummaryConfig(max_tokens=100))
    await talk(store, "t", 12)
    await pass_over(store, policy=policy, summarizer=Writer("old " * 60))
    await talk(store, "t", 8, first=13)
    old = tokens_of("old " * 60)
    writer = Writer("new " * 95, "older " * 20, "done " * 30)
    kept = await pass_over(store, policy=policy, summarizer=writer)
    assert kept.summary == ("done " * 30).strip()
    whole, shorter, again = writer.asked
    assert "Summarise" in whole[0]
    assert f"at most {old // 3} tokens" in shorter[0]
    assert shorter[1].strip("-\n ") == ("old " * 60).strip()
    assert "at most 100 tokens" in again[0]
    assert "older" in again[1]
    assert "new" in again[1]


@pytest.mark.parametrize("reply", ["shorten", "word " * 800], ids=["fails", "too long"])
async def test_a_summary_is_never_above_its_limit(store: Driver, reply: str) -> None:
    policy = PruningPolicy(40, 10, SummaryConfig(max_tokens=100))
    await talk(store, "t", 12)
    wrong = RuntimeError("no") if reply == "shorten" else reply
    kept = await pass_over(store, policy=policy, summarizer=Writer("word " * 300, wrong))
    assert kept.model == "test:writer"
    assert 50 < tokens_of(kept.summary) <= 100


@pytest.mark.parametrize(
    "reply",
    ["<think>Let me see. {0}</think>\nThe ports were agreed.", "\n<thinking>{0}</thinking> The ports were agreed.",
     "{0} So be it.\n</think>\n\nThe ports were agreed."],
)  # fmt: skip
async def test_what_a_model_thinks_is_not_in_its_summary(store: Driver, reply: str) -> None:
    await talk(store, "t", 12)
    kept = await pass_over(store, summarizer=Writer(reply.format("A long thought. " * 400)))
    assert (kept.summary, kept.model) == ("The ports were agreed.", "test:writer")


FAILURES = {
    "cancelled": (asyncio.CancelledError(), "what it waited for was cancelled"),
    "fails": (RuntimeError("the provider is down"), "failed: the provider is down"),
    "is empty": (" \n", "is empty"),
    "is a thought alone": ("<think>How shall I begin? ", "is empty"),
    "is longer than its input": (lambda text: text + " and more", "is longer than"),
    "has no message": (TimeoutError(), "failed: TimeoutError"),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("failure", FAILURES)
async def test_a_model_that_fails_at_first_leaves_the_digest(
    store: Driver, failure: str, caplog: pytest.LogCaptureFixture
) -> None:
    reply, told = FAILURES[failure]
    await talk(store, "t", 12)
    await talk(store, "other", 12)
    kept = await pass_over(store, summarizer=Writer(reply))  # type: ignore[arg-type]
    assert told in caplog.text
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert kept == await pass_over(store, "other")
    assert kept.model is None


@pytest.mark.sampled(3)
@pytest.mark.parametrize("failure", FAILURES)
async def test_a_model_that_fails_later_leaves_the_old_summary_with_the_digest_of_what_is_new(
    store: Driver, failure: str, caplog: pytest.LogCaptureFixture
) -> None:
    await talk(store, "t", 12)
    await pass_over(store, summarizer=Writer("The old summary."))
    await talk(store, "t", 8, first=13)
    kept = await pass_over(store, summarizer=Writer(FAILURES[failure][0]))  # type: ignore[arg-type]
    assert kept.summary.startswith("The old summary.\n\nAsked before:")
    assert "How about 8?" in kept.summary
    assert "How about 7?" not in kept.summary
    assert (kept.model, kept.last_seq, kept.message_count) == ("test:writer", 60, 60)
    assert FAILURES[failure][1] in caplog.text
    assert len(await branch_of(store, "t")) == 80
    again = Writer("The newest.")
    await talk(store, "t", 8, first=21)
    assert (await pass_over(store, summarizer=again)).summary == f"{kept.summary}\n\nThe newest."


@pytest.mark.sampled(2)
@pytest.mark.parametrize("chinese", [False, True])
async def test_however_often_a_model_fails_its_words_stay_and_one_digest_behind_them(
    store: Driver, chinese: bool
) -> None:
    policy = PruningPolicy(40, 10, SummaryConfig(max_tokens=400))
    written = " ".join(f"host{n} has port {7000 + n}." for n in range(20))
    await talk(store, "t", 12, chinese=chinese)
    assert (await pass_over(store, policy=policy, summarizer=Writer(written))).summary == written
    for n in range(13, 93, 8):
        await talk(store, "t", 8, first=n, chinese=chinese)
        kept = await pass_over(store, policy=policy, summarizer=Writer(RuntimeError("the provider is down")))
        own, digest = kept.summary.split("\n\n")
        asked = "第{}季度" if chinese else "How about {}?"
        assert own == written
        assert digest.count("之前的问题" if chinese else "Asked before") == 1
        assert "left out" not in digest
        assert asked.format(n + 2) in digest  # the newest of what has left the window
        assert tokens_of(kept.summary) <= 400
    assert len(kept.digest["items"]["asked"]) + kept.digest["left"].get("asked", 0) == 87
    await talk(store, "t", 8, first=93, chinese=chinese)
    again = await pass_over(store, policy=policy, summarizer=Writer("In short.", "All of it.", "All."))
    assert not {"written", "since"} & again.digest.keys()


async def test_a_reply_that_comes_late_is_thrown_away(store: Driver, caplog: pytest.LogCaptureFixture) -> None:
    """Somebody else's pass was faster: what it has written stays."""
    await talk(store, "t", 12)

    class Late(Writer):
        async def write(self, instructions: str, text: str) -> str:
            await pass_over(store, summarizer=Writer("In time."))
            return "Too late."

    kept = await pass_over(store, summarizer=Late())
    assert kept == await kept_of(store, "t")
    assert kept.summary == "In time."
    assert kept.message_count == 28
    assert "came late, and is not used: another pass was faster" in caplog.text


async def test_a_model_that_takes_too_long_counts_as_failed(store: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longthread.memory.summary.summaries.SECONDS", 0.01)
    await talk(store, "t", 12)

    class Slow(Writer):
        async def write(self, instructions: str, text: str) -> str:
            await asyncio.sleep(60)
            return "never"

    assert (await pass_over(store, summarizer=Slow())).model is None


async def test_a_pass_that_is_cancelled_while_a_model_writes_leaves_the_digest(store: Driver) -> None:
    await talk(store, "t", 12)
    asked = asyncio.Event()

    class Waiting(Writer):
        async def write(self, instructions: str, text: str) -> str:
            asked.set()
            await asyncio.Event().wait()
            return "never"

    task = asyncio.ensure_future(pass_over(store, summarizer=Waiting()))
    await asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    kept = await kept_of(store, "t")
    assert kept is not None
    assert (kept.model, kept.unwritten, kept.message_count) == (None, True, 28)
    assert (await pass_over(store)).message_count == 28


async def test_switched_off_no_model_is_asked(store: Driver) -> None:
    await talk(store, "t", 12)
    writer = Writer("never")
    kept = await pass_over(store, policy=PruningPolicy(40, 10, SummaryConfig(enabled=False)), summarizer=writer)
    assert writer.asked == []
    assert kept.summary.startswith("Asked before:")


async def test_what_no_store_can_hold_is_replaced_in_a_models_text(store: Driver) -> None:
    await talk(store, "t", 12)
    assert (await pass_over(store, summarizer=Writer("a\x00b \ud800"))).summary == "a\ufffdb ?"


async def test_a_model_reads_no_more_than_it_can(store: Driver) -> None:
    await talk(store, "t", 300)
    entries = await branch_of(store, "t")
    part = SummaryPart.of(entries)
    read = transcript(part)
    assert tokens_of(read) <= INPUT_TOKENS * 1.4
    assert read.startswith("Asked before")
    assert read.endswith("\nassistant: It is 300.")
    assert transcript(SummaryPart.of(entries[:8])).startswith("user: How about 1?")


def test_a_model_reads_system_messages_and_topics_are_made_of_them_but_not_of_the_prompt() -> None:
    rule = "Refunds by Quetzalcoatl Bank. Quetzalcoatl Bank needs a form."
    prompt = Entry("1", "system", "Follow Huitzilopochtli Rules. Huitzilopochtli Rules hold.", seq=1)
    said = [Entry("2", "user", "Hello", seq=2, parent_seq=1), Entry("3", "system", rule, seq=3, parent_seq=2)]
    assert transcript(SummaryPart.of([prompt, *said])) == f"system: …\nuser: Hello\nsystem: {rule}"
    mentions = Mentions()
    mentions.add([prompt, *said])
    topics = {span.topic for span in mentions.spans}
    assert "Quetzalcoatl Bank" in topics
    assert not any("Huitzilopochtli" in topic for topic in topics)


async def test_a_model_names_topics_from_what_was_said_and_reads_no_results() -> None:
    read: list[str] = []

    class Reader(Writer):
        async def write(self, instructions: str, text: str) -> str:
            read.append(text)
            return '["launch costs"]'

    question = Entry("1", "user", "What do launches cost?", seq=1)
    result = Entry("2", "tool", '{"columns": ["Quetzalcoatl"], "rows": []}' * 400, seq=2, parent_seq=1)
    answer = Entry("3", "assistant", "The launch costs are 5.", seq=3, parent_seq=2)
    mentions = Mentions()
    await mentions.ask([question, result, answer], Reader())
    assert {span.topic for span in mentions.spans} == {"launch costs"}
    assert "What do launches cost?" in read[0] and "Quetzalcoatl" not in read[0]
    assert len(read[0]) < 1_500


def test_a_hash_tells_settings_apart_and_no_models() -> None:
    assert SummaryConfig().hash == SummaryConfig().hash
    assert len({SummaryConfig().hash, SummaryConfig(enabled=False).hash, SummaryConfig(max_tokens=900).hash}) == 3


async def test_a_summary_without_a_text_is_no_cache(store: Driver) -> None:
    await talk(store, "t", 12)
    kept = await pass_over(store)
    empty = ThreadSummary("", kept.message_count, kept.config_hash, 1, kept.last_seq)
    async with store.writing() as tx:
        await summaries.save(tx, "t", empty)
    assert await pass_over(store, policy=POLICY) == kept
