"""What a question asks for beside its words, and that recall believes it, on both backends."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longthread.memory.index.dates import days, has_time
from longthread.memory.index.indexer import index_thread, merge_segments
from longthread.memory.index.postings import (
    HAS_TIME,
    USER_SAID,
    IndexDocument,
    SegmentPart,
    build,
    hash_of,
    join_segments,
    look_up,
    mark_rows,
    spread_out,
)
from longthread.memory.index.shards import bind_user
from longthread.memory.index.terms import find_telling_terms, name_terms, named_in, terms
from longthread.memory.keywords import ParsedQuery
from longthread.memory.recall import Question, Recaller
from longthread.model.entry import Draft
from longthread.model.thread import Scope
from longthread.store import log
from longthread.store.driver import Driver

pytestmark = pytest.mark.one_backend

MINE = Scope("ann", "t")
NOTHING = [("user", None, f"Nothing of note, number {n}.") for n in range(40)]


@pytest.mark.parametrize(
    ("question", "by_user"),
    [
        ("Which museum did I visit?", True),
        ("where is my passport", True),
        ("What did we pay?", True),
        ("我去过哪个公园？", True),
        ("我给你推荐过一部电影，它叫什么？", True),
        ("我和你说过的那本书是什么", True),
        ("What did you recommend for my knee?", False),
        ("Which hotel was it that you suggested?", False),
        ("can you repeat what you told me about rates", False),
        ("你给我推荐过哪些画家？", False),
        ("你建议的方法是什么", False),
        ("Can you tell me where I parked?", True),
        ("你还记得我住在哪里吗", True),
        ("Where does Caroline live?", None),
        ("How fast is I/O here?", None),
        ("我国的首都是哪里？", None),
        ("总部在哪里？", None),
        ("The plan for i18n", None),
        ("What did I tell you about my shopping list?", True),
        ("You remember what I told you about my shopping list?", True),
        ("Where is what I told you of?", True),
        ("what did you list for my trip", False),
        ("The list you wrote for me", False),
        ("Let us go on with the shots of your list", False),
        ("You know what is on my list", True),
        ("What was on the shopping list you listed?", False),
        ("I need you to tell me where my passport is", True),
        ("I need you to tell me the hotel in Paris", None),
        ("Can you tell me which tea I like?", True),
        ("What did you tell me of rates?", False),
        ("Can you tell me the hotel in Paris?", None),
        ("Tell me the hotel in Paris", None),
        ("Please remind me of the hotel in Paris", None),
        ("Tell me where my car is", True),
        ("where did i park the car", True),
        ("WHERE IS MY CAR", True),
        ("where is MY car", True),
        ("which part i of the plan", None),
        ("how fast is i/o here", None),
        ("what Bob said of i", None),
        ("你能告诉我我妈妈的生日吗", True),
        ("请你告诉我我妈妈的生日", True),
        ("你能告诉我巴黎的酒店吗", None),
        ("告诉我巴黎的酒店", None),
        ("我告诉过你我妈妈的生日吗", True),
        ("你知道我给妈妈的生日准备了什么吗", True),
        ("你记不记得我说过的妈妈的生日", True),
        ("你告诉我的那家餐厅", False),
        ("你帮我介绍过的医生", False),
        ("上次给我推荐的餐厅叫什么", False),
        ("您给我推荐的餐厅叫什么", False),
        ("您推荐的餐厅叫什么", False),
        ("妳推荐的餐厅", False),
        ("上次给你推荐的餐厅叫什么", True),
        ("妈妈给我推荐的餐厅", True),
    ],
)
def test_whose_words_a_question_asks_for(question: str, by_user: bool | None) -> None:
    assert ParsedQuery.of(question).by_user is by_user


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        ("Where does Ann live? When did Bob marry?", 2),
        ("妈妈电话是多少来着？另外，高尔夫之旅的主要内容是什么？", 2),
        ("We fly to Rome in May. Which hotel had a pool? Also, who books the car?", 2),
        ("北京的酒店叫什么，另外机票价格是多少", 2),
        ("I bought a telescope; it has a motor. Which star is that?", 2),
        ("Which insurance did we take, and who found the runaway dog?", 2),
        ("What book did Melanie also read?", 1),
        ("那里还有什么好吃的", 1),
        ("Who? What?", 1),
        ("Ann lives? Bob sings? Carl runs? Dora paints? Eve cooks?", 1),
    ],
)
def test_how_many_parts_a_question_has(question: str, parts: int) -> None:
    assert len(ParsedQuery.of(question).parts) == parts


@pytest.mark.parametrize(
    ("question", "when"),
    [
        ("When did she move?", True),
        ("What day was the race?", True),
        ("什么时候出发", True),
        ("哪天见面", True),
        ("星期几体检", True),
        ("周几体检", True),
        ("哪一天体检", True),
        ("哪年毕业", True),
        ("几月毕业", True),
        ("什么时间开会", True),
        ("几点开会", True),
        ("what's the date of the race", True),
        ("On which date is the race?", True),
        ("Where is it?", False),
        ("坐几号线", False),
        ("我家在几号楼", False),
        ("她提了几点建议", False),
    ],
)
def test_whether_a_question_asks_for_a_time(question: str, when: bool) -> None:
    assert ParsedQuery.of(question).when is when


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("I ran a race last Sunday", True),
        ("明天下午三点", True),
        ("6月3号见", True),
        ("It is blue.", False),
        ("很好", False),
        ("I may go", False),
        ("next to the bed", False),
        ("2019年", True),
        ("It was on Jan 3", True),
        ("Dec. 24, in the park", True),
        ("5 Sept", True),
        ("at noon", True),
        ("at midnight", True),
        ("at 5 o'clock", True),
        ("at 5 p.m.", True),
        ("on Mon", True),
        ("Fri, at the bar", True),
        ("五月八号", True),
        ("10点开会", True),
        ("三点半", True),
        *((word, True) for word in ("上午", "中午", "下午", "晚上", "凌晨", "周末", "礼拜六")),
        ("坐15号线", False),
        ("10点建议", False),
        ("有一点贵", False),
        ("in room 2045", False),
        ("You may 5 times", False),
        ("We sat in the sun", False),
    ],
)
def test_whether_a_text_says_when_something_is(text: str, said: bool) -> None:
    assert has_time(text) is said


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("where did she go", "we went there"),
        ("Who wrote it?", "I write a lot"),
        ("the children", "my child"),
        ("on the 17th", "May 17, 2023"),
        ("in January", "we met on 3 Jan"),
        ("4月27日", "27 April 2023"),
        ("April 27th", "2023年4月27号"),
        ("4月27号的会议", "2023-04-27"),
        ("27号下午", "27日下午见"),
        ("April the 27th", "27. April"),
        ("where she lives", "I live here"),
        ("leaving time", "The train leaves at 5"),
    ],
)
def test_forms_of_words_and_dates_share_a_term(asked: str, said: str) -> None:
    assert set(terms(asked)) & set(terms(said)) - {"the", "in", "we", "on", "i", "be"}


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("4 月 27 日去看牙医", ["4月27日"]),
        ("四月二十七日", ["4月27日"]),
        ("四月27日", ["4月27日"]),
        ("五月八号", ["5月8日"]),
        ("十二月三十一日", ["12月31日"]),
        ("Sept 5", ["9月5日"]),
        ("5 Sept. 2023", ["9月5日"]),
        ("what is on may 5?", ["5月5日"]),
        ("we met on 5 may at noon", ["5月5日"]),
        ("You may 5 times a day", []),
        ("the 5 may come", []),
        ("they march 5 miles", []),
        ("买 4 月 27 个苹果", []),
        ("三个月二十天", []),
        ("五月初八", []),
    ],
)
def test_which_days_a_text_names(text: str, named: list[str]) -> None:
    assert days(text) == named


async def test_a_day_is_found_however_it_is_written(store: Driver) -> None:
    await say(store, [("user", None, "9 个苹果, 5 元"), *NOTHING, ("user", None, "九月五号去看牙医"), *NOTHING])
    assert await first(store, "What is on Sept 5?") == "九月五号去看牙医"


@pytest.mark.parametrize(("one", "other"), [("mad", "made"), ("4月27日", "4月28日"), ("April 2", "2月4日")])
def test_what_only_looks_alike_stays_apart(one: str, other: str) -> None:
    assert not set(terms(one)) >= {terms(other)[0]}


@pytest.mark.parametrize(
    "forms",
    [
        "try tries tried trying",
        "cry cries cried crying",
        "dry dried drying",
        "fry fries fried",
        "study studies studied studying",
        "die dies died dying",
        "tie ties tied tying",
        "pie pies",
        "go goes going went gone",
        "become becomes became becoming",
        "beat beats beaten",
        "show showed shown",
        "shoot shoots shot shooting",
        "use uses used using",
        "age aged aging",
        "owe owes owed",
        "burn burned burnt",
        "bend bent bending",
        "light lit",
        "seek sought seeking",
        "travel travels traveled travelled travelling",
        "cancel canceled cancelled cancelling",
        "install installs installed",
        "call called calls",
    ],
)
def test_all_forms_of_a_word_are_one_term(forms: str) -> None:
    assert len({tuple(terms(form)) for form in forms.split()}) == 1


@pytest.mark.parametrize(
    ("plural", "of"), [("leaves", "leaf"), ("leaves", "leave"), ("Lives", "life"), ("lives", "live")]
)
def test_a_plural_that_is_also_a_verb_is_found_by_both(plural: str, of: str) -> None:
    assert set(terms(plural)) & set(terms(of))
    assert not set(terms("life")) & set(terms("live"))


def test_a_building_is_no_day() -> None:
    assert "日" not in terms("3号楼") and "号楼" in terms("3号楼的钥匙")


@given(st.sets(st.integers(0, 400)), st.integers(1, 400))
def test_a_mark_is_where_it_was_set_however_segments_are_put_together(places: set[int], cut: int) -> None:
    assert spread_out(mark_rows(np.array(sorted(places), dtype=np.int64))).nonzero()[0].tolist() == sorted(places)
    documents = [IndexDocument(seq, {"a": 1}, 1, seq, marks=[USER_SAID] if seq in places else []) for seq in range(401)]
    whole = build(0, 400, documents)
    halves = [build(part[0].seq, part[-1].seq, part) for part in (documents[:cut], documents[cut:])]
    parts = [SegmentPart(h.first, h.last, h.entries, h.words, h.times, list(h.buckets.values())) for h in halves]
    assert join_segments(parts) == whole
    found = {value: p for data in whole.buckets.values() for value, p in look_up(data, [USER_SAID, HAS_TIME]).items()}
    assert set(found) == ({USER_SAID} if places else set())


def test_a_posting_says_whether_the_term_is_the_speaker_s_name() -> None:
    documents = [IndexDocument(1, {"ann": 2}, 1, 1, speaker=["ann"]), IndexDocument(2, {"ann": 70_000}, 1, 2)]
    [data] = build(1, 2, documents).buckets.values()
    postings = look_up(data, [hash_of("ann")])[hash_of("ann")]
    assert postings.counts.tolist() == [2, 0x7FFF]
    assert postings.of_speaker.tolist() == [0]


async def say(store: Driver, said: Sequence[tuple[str, str | None, str]], thread: str = "t") -> None:
    async with store.writing() as tx:
        await log.create_thread(tx, thread, user_id="ann")
        tip, size = await log.position(tx, thread)
        drafts = [Draft(str(size + n), role, text, name=name) for n, (role, name, text) in enumerate(said)]  # type: ignore[arg-type]
        await log.append(tx, thread, drafts, tip=tip, size=size)


async def first(store: Driver, question: str, scope: Scope = MINE) -> str:
    recalled = await Recaller(store).find(Question(question, scope, k=1))
    return recalled.hits[0].entry.text if recalled.hits else ""


async def test_what_the_named_speaker_said_comes_before_what_was_said_to_her(store: Driver) -> None:
    to_her = ("user", "Melanie", "Caroline, a violin is a lovely thing.")
    hers = ("user", "Caroline", "Melanie, a violin is a lovely thing.")
    await say(store, [to_her, *NOTHING, hers, *NOTHING, to_her])
    assert await first(store, "What did Caroline say of the violin?") == hers[2]
    assert await first(store, "What did Melanie say of the violin?") == to_her[2]


async def test_a_word_of_a_tool_s_name_names_no_speaker(store: Driver) -> None:
    same = "A run of ten miles."
    await say(store, [("tool", "run_sql", same), *NOTHING, ("user", None, same), *NOTHING, ("assistant", None, same)])
    recalled = await Recaller(store).find(Question("How far did I run, ten miles?", MINE, k=1))
    assert recalled.hits[0].entry.role == "user"


@pytest.mark.parametrize(
    ("speaker", "question", "is_named"),
    [
        ("Will", "What did Will say about the trip?", True),
        ("Will", "Will it be a long trip?", False),
        ("Will", "will it be a long trip?", False),
        ("Will Smith", "What did Will say about the trip?", True),
        ("Caroline", "what did caroline say of the trip", True),
        ("Caroline", "Caroline's trip", True),
        ("Éva", "What did Éva say of the trip?", True),
        ("王明", "王明的 trip", True),
        ("李小明", "小明的 trip", True),
        ("flight_assistant", "When is the flight of my trip?", False),
        ("flight_assistant", "What did flight_assistant say of the trip?", True),
        ("Flight Assistant", "What flight is it of the trip?", False),
        ("trip-agent", "Which trip?", False),
        ("航班助手", "航班 trip", False),
    ],
)
def test_a_speaker_is_named_as_people_name_one(speaker: str, question: str, is_named: bool) -> None:
    asked = {*find_telling_terms(question), *named_in(question)}
    assert bool(asked & set(name_terms(speaker))) is is_named


async def test_a_speaker_whose_name_is_a_common_word_is_found_by_it(store: Driver) -> None:
    of_ann, of_will = "Will said the trip is to Oslo, a trip by train.", "The trip is to Rome by bus."
    await say(store, [("user", "Ann", of_ann), *NOTHING, ("user", "Will", of_will), *NOTHING])
    assert await first(store, "What did Will say about the trip?") == of_will
    assert await first(store, "Will there be a trip?") == of_ann


async def test_a_word_of_an_agent_s_name_names_no_speaker(store: Driver) -> None:
    mine, its = "Our sales target is 40 units a month.", "A sales target of a month should be of units."
    await say(store, [("user", None, mine), *NOTHING, ("assistant", "sales_agent", its), *NOTHING])
    assert await first(store, "What did I say our sales target is?") == mine
    assert await first(store, "What is the sales target of sales_agent?") == its


@pytest.mark.parametrize(
    "text",
    [
        "1" * 50_000,
        "\n" * 50_000,
        ", " * 25_000,
        "you " * 15_000,
        "1月" * 25_000,
        "a? " * 20_000,
        "给你" * 25_000,
        "may 1 " * 10_000,
        "十二月" * 20_000,
        "to you " * 10_000,
        "告诉你" * 20_000,
        "you know " * 10_000,
        "You " * 20_000,
    ],
)
def test_a_long_question_takes_no_more_than_its_length(text: str) -> None:
    # With the square of it, this would not end.
    assert ParsedQuery.of(text).parts
    has_time(text.replace("月", "x"))


@pytest.mark.parametrize("threads", ["one", "many"])
@pytest.mark.parametrize(
    ("question", "role"),
    [("Which tea did I like?", "user"), ("Which tea did you recommend?", "assistant"), ("我喜欢什么茶？", "user")],
)
async def test_who_is_asked_for_comes_first(store: Driver, threads: str, question: str, role: str) -> None:
    text = "Oolong is a tea. 乌龙茶是一种茶。"
    for order, thread in ((("user", "assistant"), "a"), (("assistant", "user"), "b")):
        await say(store, [(order[0], None, text), *NOTHING, (order[1], None, text)], thread)
    scope = Scope("ann", "a")
    if threads == "many":
        scope = Scope("ann")
        for thread in ("a", "b"):
            await index_thread(store, thread)
        assert await bind_user(store, "ann", least=1) == 2
    recalled = await Recaller(store).find(Question(question, scope, k=2))
    assert {hit.entry.role for hit in recalled.hits[: 2 if threads == "many" else 1]} == {role}


async def test_of_entries_that_say_the_same_one_with_a_time_answers_when(store: Driver) -> None:
    await say(
        store,
        [
            ("user", None, "The race was awful, as I said"),
            *NOTHING,
            ("user", None, "The race was yesterday, as I said"),
        ],
    )
    assert await first(store, "When was the race?") == "The race was yesterday, as I said"
    assert await first(store, "How was the race?") == "The race was awful, as I said"


async def test_a_part_with_many_words_does_not_hide_what_another_asks(store: Driver) -> None:
    tours = ["The harbour tour passes the lighthouse and the bridge.", *["The harbour tour passes the lighthouse."] * 3]
    said = [one for tour in tours for one in (("user", None, tour), *NOTHING)]
    await say(store, [*said, ("user", None, "Grandfather keeps honey bees."), *NOTHING])
    question = "Where do the harbour tour, the lighthouse and the bridge begin? Also, who keeps bees?"
    recalled = await Recaller(store).find(Question(question, MINE, k=2))
    assert [hit.entry.text for hit in recalled.hits] == [tours[0], "Grandfather keeps honey bees."]


async def test_a_short_fact_is_found_among_long_answers(store: Driver) -> None:
    answer = (
        "Here is what one may consider about a budget. " + "There are many ways to look at it in some detail. " * 40
    )
    said: list[tuple[str, str | None, str]] = []
    for n in range(12):
        said += [("user", None, f"What about option {n}?"), ("assistant", None, f"{answer} The budget, option {n}.")]
    await say(store, [*said[:10], ("user", None, "The budget is 900 euros."), *said[10:]])
    assert await first(store, "budget") == "The budget is 900 euros."


async def test_who_is_asked_for_is_known_however_far_apart_the_marks_are(store: Driver) -> None:
    said = [
        ("user" if n == 0 else "assistant", None, "An apple." if n in (0, 70, 139) else "Well.") for n in range(140)
    ]
    for start in range(0, 140, 20):
        await say(store, said[start : start + 20])
        await index_thread(store, "t")
    recalled = await Recaller(store).find(Question("my apple", MINE, k=3))
    assert [hit.entry.seq for hit in recalled.hits] == [1, 71, 140]


async def test_a_part_is_measured_by_what_may_be_found(store: Driver) -> None:
    await say(store, [("user", None, "zebra zebra zebra"), *NOTHING])
    cello = ("user", None, "A cello is what one may see in this large room of ours.")
    await say(store, [("user", None, "A zebra here."), *NOTHING, cello, *NOTHING])
    both = (await Recaller(store).find(Question("zebra", MINE, k=2))).hits
    since = max(hit.entry.created_at for hit in both)
    recalled = await Recaller(store).find(Question("zebra? cello?", MINE, k=2, since=since))
    assert [hit.entry.text for hit in recalled.hits] == ["A zebra here.", cello[2]]


async def test_what_is_found_does_not_depend_on_how_the_index_is_cut(store: Driver) -> None:
    said = [
        ("user" if n % 3 else "assistant", "Ann" if n % 2 else "Bob", f"word{n % 7} tea yesterday" if n % 5 else "x")
        for n in range(90)
    ]
    for thread in ("t", "u"):
        await say(store, said[:1], thread)
    for one in said[1:]:
        await say(store, [one], "u")
        await index_thread(store, "u")
    await say(store, said[1:])
    await merge_segments(store, "u")
    for question in ("When did I drink tea word3?", "What did Bob say of word2?", "Did you mention word5? Also, tea?"):
        ranked = [
            [
                (hit.entry.seq, round(hit.score, 4))
                for hit in (await Recaller(store).find(Question(question, Scope("ann", thread), k=30))).hits
            ]
            for thread in ("t", "u")
        ]
        assert ranked[0] == ranked[1]
