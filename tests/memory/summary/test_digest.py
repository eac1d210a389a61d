"""The digest that needs no model: what it tells of an analyst's and of any other conversation, in its language."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.memory.threads import turn

from longthread.memory.summary.digest import (
    Digest,
    cut_to,
    digest_entries,
    findings,
    fit_digest,
    join_digests,
    json_of,
    merge_digests,
    tokens_of,
)
from longthread.model.entry import Draft, Entry, ToolCall


def entries(*drafts: Draft) -> list[Entry]:
    return [
        Entry(**{name: getattr(draft, name) for name in draft.__slots__}, thread_id="t", seq=n)
        for n, draft in enumerate(drafts, start=1)
    ]


def called(name: str, args: dict[str, Any], observation: Any) -> list[Draft]:
    text = observation if isinstance(observation, str) else json.dumps(observation)
    return [Draft("c", "assistant", "", (ToolCall("x", name, args),)), Draft("r", "tool", text, tool_call_id="x")]


ASKED = {"kind": "question", "source": "shop.db", "fingerprint": "f"}


def analyst() -> list[Entry]:
    tables = {"ok": True, "data": {"dialect": "sqlite", "tables": ["orders", "customers"]}}
    schema = {"ok": True, "data": {"table_name": "orders", "columns": [{"name": "id"}, {"name": "total"}]}}
    rows = {"ok": True, "data": {"query": "q1", "sql": "…", "columns": ["n"], "rows": [[3]], "shown": 1}}
    return entries(
        Draft("1", "user", "How many orders? The fiscal year means April to March.", metadata=ASKED),
        *called("list_tables", {}, tables),
        *called("describe_table", {"table": "orders"}, schema),
        *called("run_sql", {"sql": "SELECT COUNT(*) FROM order"}, {"ok": False, "error": {"message": "no such table"}}),
        *called("recall_memory", {"query": "orders"}, {"ok": True, "data": {"found": []}}),
        *called("json_parse_error", {}, {"ok": False, "error": {"message": "not JSON"}}),
        *called("run_sql", {"sql": "SELECT COUNT(*) FROM orders"}, rows),
        Draft("a", "assistant", "There are 3 orders [q1].", metadata={"kind": "answer"}),
        Draft("2", "user", "continue", metadata=ASKED),
    )


def test_an_analysts_conversation() -> None:
    assert digest_entries(analyst()).text() == (
        "Asked before:\n"
        "- How many orders? The fiscal year means April to March. → There are 3 orders [q1].\n"
        "Known tables:\n"
        "- orders: id, total\n"
        "- customers\n"
        "Operations:\n"
        "- SELECT COUNT(*) FROM orders → [q1] 1 row: [[3]]\n"
        "Tools used: describe_table ×1, list_tables ×1, run_sql ×2\n"
        "Errors:\n"
        "- run_sql: no such table"
    )


def test_any_other_conversation() -> None:
    told = digest_entries(
        entries(
            Draft("1", "user", "Deploy with `make ship`. Is it up?"),
            *called("http_get", {"url": "http://x.test"}, "200 OK"),
            *called("http_get", {"url": "http://y.test"}, "Error: timed out"),
            Draft("a", "assistant", "x.test is up, y.test is not."),
            Draft("2", "user", "Thanks"),
        )
    ).text()
    assert told == (
        "Asked before:\n"
        "- Deploy with `make ship`. Is it up? → x.test is up, y.test is not.\n"
        "- Thanks\n"
        "Operations:\n"
        '- http_get({"url": "http://x.test"}) → 200 OK\n'
        "Tools used: http_get ×2\n"
        "Errors:\n"
        "- http_get: Error: timed out"
    )


def test_what_a_system_message_says_in_the_middle_is_told_and_a_prompt_is_not() -> None:
    prompt, asked, rule = entries(
        Draft("1", "system", "You must always be brief."),
        Draft("2", "user", "Hello"),
        Draft("3", "system", "Refunds above 4711 must be approved by Quetzalcoatl."),
    )
    branch = [prompt, *(replace(entry, parent_seq=entry.seq - 1) for entry in (asked, rule))]
    assert digest_entries(branch).items["told"] == [rule.text]
    assert digest_entries(branch[1:]).items["told"] == [rule.text]
    assert digest_entries(branch).items["asked"] == ["Hello"]


def test_a_chinese_conversation() -> None:
    digest = digest_entries(entries(*turn("3", chinese=True)))
    told = digest.text()
    assert told.splitlines()[0] == "之前的问题:"
    assert "[q0] 1 行" in told
    assert "事实与决定:\n- 预算是300元。" in replace(digest, items={**digest.items, "asked": []}).text()


def test_what_stands_with_its_question_is_told_once_and_stays_when_the_question_goes() -> None:
    asked = [f"Remember: part {n} is called {'x' * 20}{n}. Anything else about part {n}?" for n in range(20)]
    whole = digest_entries(entries(*(Draft(str(n), "user", text) for n, text in enumerate(asked))))
    assert "Facts and decisions" not in whole.text()
    cut = fit_digest(whole, 400)
    assert 0 < len(cut.items["asked"]) < 20
    assert all(cut.text().count(f"is called {'x' * 20}{n}.") == 1 for n in range(20))


@pytest.mark.parametrize(
    ("decided", "numbered"),
    [
        ("We agreed that the {} team signs off.", "Have a look at ticket {}41, it is open."),
        ("我们约定由{}组签字。", "看一下工单{}41，还没有关。"),
    ],
    ids=["en", "zh"],
)
def test_decisions_of_all_ages_outlive_newer_numbers(decided: str, numbered: str) -> None:
    digest = Digest()
    for n in range(100, 400):
        said = [decided.format(n)] if n % 10 == 0 else []
        new = [Draft(f"{n}{at}", "user", text) for at, text in enumerate([*said, numbered.format(n)])]
        digest = join_digests(digest, digest_entries(entries(*new)), 700)
    told = digest.items["told"]
    decisions = [n for n in range(100, 400, 10) if decided.format(n) in told]
    numbers = [n for n in range(100, 400) if numbered.format(n) in told]
    assert len(decisions) >= 25
    assert {n // 100 for n in decisions} == {1, 2, 3}
    # Of mere numbers those of the last pages alone are left.
    assert numbers
    assert min(numbers) > 300
    assert digest.left["told"] + len(told) == 330
    assert f"({'另有' if digest.is_chinese else 'and'} {digest.left['told']} " in digest.text()


def test_of_very_many_decisions_some_of_each_time_stay() -> None:
    digest = Digest()
    for n in range(400):
        said = Draft(str(n), "user", f"Never sell product number {n} without asking the owner of shelf {n}.")
        digest = join_digests(digest, digest_entries(entries(said)), 700)
    numbers = [n for n in range(400) if any(f"product number {n} " in line for line in digest.items["told"])]
    assert {n // 100 for n in numbers} == {0, 1, 2, 3}
    assert 399 in numbers


def test_how_many_rows_there_were_is_told_in_no_language() -> None:
    told = [
        next(findings({"query": "q1", "sql": "…", "rows": [[1]], "shown": shown}, "行"))
        for shown in ("1 of 1", "1 of 250", "1 of many", 1)
    ]
    assert told == [f"[q1] {count} 行: [[1]]" for count in ("1", "1/250", "1+", "1")]


def test_tables_of_another_source_are_forgotten() -> None:
    other = Draft("1", "user", "?", metadata={**ASKED, "source": "other.db"})
    new = digest_entries(entries(other, *called("list_tables", {}, {"ok": True, "data": {"tables": ["cars"]}})))
    both = merge_digests(digest_entries(analyst()), new)
    assert dict(both.tables) == {"cars": ""}
    changed = Draft("1", "user", "?", metadata={**ASKED, "fingerprint": "another"})
    assert dict(merge_digests(digest_entries(analyst()), digest_entries(entries(changed))).tables) == {}
    talk = digest_entries(entries(Draft("1", "user", "Thanks")))
    assert list(merge_digests(digest_entries(analyst()), talk).tables) == ["orders", "customers"]


def test_a_schema_that_is_known_stays_known_when_the_tables_are_listed_again() -> None:
    listed = digest_entries(
        entries(
            Draft("1", "user", "?", metadata=ASKED),
            *called("list_tables", {}, {"ok": True, "data": {"tables": ["orders"]}}),
        )
    )
    assert merge_digests(digest_entries(analyst()), listed).tables["orders"] == "id, total"


def test_what_no_store_can_hold_is_replaced() -> None:
    text = json.dumps({"ok": True, "data": {"tables": ["a\x00b", "\ud800"]}})
    digest = digest_entries(entries(Draft("1", "user", "?", metadata=ASKED), *called("list_tables", {}, text)))
    assert "\x00" not in json.dumps(json_of(digest), ensure_ascii=False)
    assert list(digest.tables) == ["a\ufffdb", "?"]
    digest.text().encode()


def test_the_newest_stay_and_decisions_longer_than_questions() -> None:
    digest = digest_entries(entries(*(draft for n in range(200) for draft in turn(str(n)))))
    small = fit_digest(digest, 600)
    assert 300 < tokens_of(small.text()) <= 600
    assert "How about 199?" in small.text()
    assert "How about 1?" not in small.text()
    assert len(small.items["told"]) > len(small.items["asked"]) > 0
    assert small.left["asked"] + len(small.items["asked"]) == 200
    again = join_digests(small, digest_entries(entries(*turn("new"))), 600)
    assert again.left["asked"] + len(again.items["asked"]) == 201
    assert tokens_of(again.text()) <= 600


@pytest.mark.parametrize(
    "said", ["We decided that the port of service {n} is 900{n}.", "我们决定服务{n}的端口是900{n}，不再改。"]
)
def test_there_are_no_headings_without_a_line_where_one_has_room(said: str) -> None:
    asked = [Draft(f"q{n}", "user", said.format(n=n) + " " + "… " * 60) for n in range(50)]
    digest = digest_entries(entries(*asked))
    bare = tokens_of(fit_digest(digest, 1).text())
    assert "\n- " not in fit_digest(digest, 1).text()
    for limit in range(bare + 30, 4 * bare, 10):
        small = fit_digest(digest, limit)
        assert tokens_of(small.text()) <= limit
        assert len(small.items["told"]) >= 1
        for name in ("asked", "told"):
            assert small.left[name] + len(small.items[name]) == 50


texts = st.text(max_size=30) | st.sampled_from(["预算是3000元。" * 30, "a" * 3000, "The path is /srv/a/b. " * 40])
observed = texts | st.builds(lambda data: json.dumps({"ok": True, "data": data}), texts | st.integers() | st.none())


@st.composite
def conversations(draw: st.DrawFn) -> list[Entry]:
    drafts: list[Draft] = []
    for _ in range(draw(st.integers(0, 6))):
        drafts.append(Draft("u", "user", draw(texts)))
        if draw(st.booleans()):
            drafts += called(draw(st.sampled_from(["run_sql", "look"])), {"sql": draw(texts)}, draw(observed))
        drafts.append(Draft("a", "assistant", draw(texts)))
    return entries(*drafts)


@settings(max_examples=examples(50), suppress_health_check=[HealthCheck.too_slow])
@given(conversations(), conversations(), st.integers(1, 800))
def test_a_digest_fits_its_limit_and_is_read_back(one: list[Entry], other: list[Entry], limit: int) -> None:
    old, new = digest_entries(one), digest_entries(other)
    both = join_digests(old, new, limit)
    assert tokens_of(cut_to(both.text(), limit)) <= limit
    assert Digest.from_json(json_of(both)).text() == both.text()
    assert json_of(Digest.from_json(json_of(both))) == json_of(both)
    whole = merge_digests(old, new)
    assert both.questions == whole.questions == old.questions + new.questions


def test_an_answer_finds_its_question_in_the_part_before() -> None:
    asked, answered = entries(Draft("q", "user", "Why?")), entries(Draft("a", "assistant", "Because."))
    both = merge_digests(digest_entries(asked), digest_entries(answered))
    assert both.text() == "Asked before:\n- Why? → Because."
    assert merge_digests(both, digest_entries(answered)).items["asked"] == ["Why? → Because.", "… → Because."]


def test_a_few_decisions_outlive_many_questions_and_a_year_is_none() -> None:
    asked = [f"Remember: the budget of part {n} is {n}2000 euros." for n in range(4)]
    asked += [f"How many since {2000 + n % 25} in part {n}? Only since {2000 + n % 25}." for n in range(60)]
    whole = digest_entries(entries(*(Draft(str(n), "user", text) for n, text in enumerate(asked))))
    assert len(whole.items["told"]) == 4
    cut = fit_digest(whole, 400)
    assert len(cut.items["told"]) == 4
    assert len(cut.items["asked"]) < 20


def test_paths_and_addresses_are_facts_in_any_language() -> None:
    said = [
        "配置放在/srv/app/conf里。",
        "有问题写信给张三san.zhang@example.com。",
        "Ask ops@example.com first.",
        "It is in ~/a/b.",
        "The staging server is 10.0.0.7.",
        "サーバーは10.0.0.7です。",
        "Deploy with ./ship.sh --fast",
        "We run version 2.3.1.",
        "The host is db-7.eu.internal.",
        "The repo is at github.com/acme/tools",
        "My birthday is 5 March.",
        "I am allergic to peanuts.",
        "我对花生过敏。",
        "我女儿叫小美。",
    ]
    told = digest_entries(entries(*(Draft(str(n), "user", text) for n, text in enumerate(said))))
    assert told.items["told"] == said
    no_facts = ("e.g. this, i.e. that.", "At 10.30 p.m. it costs 1.5 euros", "我叫你去看看。", "So on...and on.")
    assert not digest_entries(entries(*(Draft(str(n), "user", said) for n, said in enumerate(no_facts)))).items["told"]


PAIRS = [
    ("I prefer dark mode in all charts.", "我更喜欢深色模式的图表。", "我更喜歡深色模式的圖表。"),
    ("We agreed to send a report.", "我们说好发一份报告。", "我們說好發一份報告。"),
    ("Remember that Bob ships.", "请记得发货的是小王。", "請記得發貨的是小王。"),
    ("Use the euro instead of the dollar.", "用欧元而不是美元。", "用歐元而不是美元。"),
    ("Always show totals first.", "每次都先显示合计。", "總是先顯示合計。"),
    ("She never eats meat.", "她从来不吃肉。", "她從來不吃肉。"),
    ("From now on sort by date.", "从现在起按日期排序。", "從現在起按日期排序。"),
    ("You must ask before you sell.", "卖之前必须先问。", "賣之前必須先問。"),
    ("Her name is Ada.", "她名叫艾达。", "她的名字是艾達，請記得。"),
    ("The password is at the desk.", "密码在前台。", "密碼在前台。"),
    ("We no longer sell tea.", "我们不再卖茶。", "我們不再賣茶。"),
    ("Good morning to you.", "各位早上好。", "各位早上好。"),
    ("The numbers come from different tables.", "数字来自不同的表，从不同的角度看。", "數字來自不同的表。"),
]


@pytest.mark.parametrize("texts", PAIRS, ids=[pair[0] for pair in PAIRS])
def test_a_decision_is_one_in_english_and_in_chinese(texts: tuple[str, ...]) -> None:
    found = [digest_entries(entries(Draft("1", "user", text))).items["told"] for text in texts]
    assert found == ([[text] for text in texts] if found[0] else [[]] * len(texts))
    assert bool(found[0]) == (texts not in PAIRS[-2:])


def test_a_text_without_an_end_is_looked_through_once() -> None:
    # Looked through anew from each of its places, these would keep a process busy for minutes.
    said = [unit * 10_000 for unit in ("x@", "a@b", "中文", "a.", "/a", "` ", "a-", "://")]
    told = digest_entries(entries(*(Draft(str(n), "user", text) for n, text in enumerate(said))))
    assert told.questions == len(said)


def test_tables_that_are_left_out_are_counted_and_columns_are_whole() -> None:
    tables = {f"table_{n}": "id: int, name: text, created_at: timestamp" for n in range(10)}
    cut = fit_digest(Digest(tables=tables), 60)
    assert cut.left["tables"] == 10 - len(cut.tables) > 0
    assert f"Known tables (and {cut.left['tables']} before that):" in cut.text()
    assert all(text.endswith(("timestamp", "int, …", "text, …", "…")) for text in cut.tables.values())
    assert not any("creat, " in text or "nam…" in text for text in cut.tables.values())


def test_calls_that_were_counted_stay_counted() -> None:
    calls = [draft for n in range(30) for draft in called("look", {"n": n}, f"The path is /srv/{n}/{'a' * 60}.")]
    digest = digest_entries(entries(*calls, *called("keep", {}, "ok")))
    for n in range(30, 60):
        said = Draft("u", "user", f"The path of {n} is /srv/{n}/{'b' * 60}.")
        digest = join_digests(digest, digest_entries(entries(said, *called("look", {"n": n}, "ok"))), 400)
        assert tokens_of(digest.text()) <= 400
    assert digest.text().endswith("Tools used: keep ×1, look ×60")
