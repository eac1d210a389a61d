"""What conversations are about, found without a model, and read from one's reply."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as some
from tests.memory.conversations import FAMILY, FAMILY_ZH, MEMORY, SALES, SERVERS, SHOP

from longthread.memory.summary.stopwords import BREAKS, LIGHT
from longthread.memory.summary.topics import (
    MOST_NAME,
    Topic,
    extract_topics,
    mentions,
    normal,
    parse_topics,
    write_topic_request,
)

EVERY = [SHOP, SERVERS, FAMILY, MEMORY, SALES, FAMILY_ZH]


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (SHOP, {"churn rate", "refund policy", "trial accounts", "customers", "order_items"}),
        (SERVERS, {"connection pool", "maintenance window", "staging server", "max_connections", "Redis", "nginx"}),
        (FAMILY, {"Emma", "Lisbon", "knee surgery", "garden", "tomatoes"}),
        (MEMORY, {"数据库设计", "Docker部署", "三层记忆", "API认证", "刷新令牌"}),
        (SALES, {"退货率", "销售额", "华东地区", "物流公司", "毛利率", "会员折扣"}),
        (FAMILY_ZH, {"康复训练", "建筑设计", "国庆节", "膝盖手术", "成都", "火车票", "火锅"}),
    ],
)
def test_what_a_reader_would_name_is_found(texts: list[str], expected: set[str]) -> None:
    found = {topic.name for topic in extract_topics(texts)}
    assert len(expected - found) <= 1, f"missing {expected - found} in {found}"
    assert len(found) <= 8


@pytest.mark.parametrize("texts", EVERY)
def test_no_topic_is_junk(texts: list[str]) -> None:
    for topic in extract_topics(texts, most=50):
        words = topic.name.casefold().split()
        assert not BREAKS.intersection(words), topic
        assert not all(word in LIGHT for word in words), topic
        assert not set("的了是我你们吗呢这那") & set(topic.name), topic
        assert 2 <= len(topic.name) <= MOST_NAME
        assert topic.mentions >= 2
        assert parse_topics(json.dumps([topic.name])) == [topic.name], "what is found is also read from a reply"


def test_two_conversations_share_no_topic() -> None:
    found = [{normal(topic.name) for topic in extract_topics(texts)} for texts in EVERY]
    assert all(not one & other for at, one in enumerate(found) for other in found[:at])


def test_a_mixed_conversation_has_topics_of_both_languages() -> None:
    names = {topic.name for topic in extract_topics([*SERVERS, *MEMORY], most=16)}
    assert {"connection pool", "maintenance window", "数据库设计", "API认证"} <= names


def test_a_mixed_topic_ends_where_a_sentence_or_a_phrase_does() -> None:
    texts = ["Reply 2: noted. 好的，记住了。", "the deadline 截止日期 is near"]
    names = [each.name for each in extract_topics(texts * 6)]
    assert not [name for name in names if "." in name or name.endswith("is")]
    texts = ["用Docker部署服务", "Docker部署很快", "node.js 服务"]
    assert "Docker部署" in [each.name for each in extract_topics(texts * 3)]


def test_mentions_are_the_passages_that_say_it() -> None:
    found = {topic.name: topic.mentions for topic in extract_topics(SERVERS)}
    assert found["maintenance window"] == sum("maintenance window" in text for text in SERVERS)
    assert found["nginx"] == sum("nginx" in text for text in SERVERS)


def test_spellings_are_one_topic() -> None:
    texts = ["The migration failed.", "Which migrations failed?", "All migrations since May.", "The Migration ran."]
    assert [topic.name for topic in extract_topics([*texts, *["ok"] * 8])] == ["migrations"]


def test_a_known_topic_keeps_its_name_and_goes_first() -> None:
    found = extract_topics(SERVERS, known=["Connection Pools", "Maintenance-Window"])
    assert [topic.name for topic in found[:2]] == ["Connection Pools", "Maintenance-Window"]
    assert "docker 部署" in [topic.name for topic in extract_topics(MEMORY, known=["docker 部署"])[:2]]


def test_what_is_in_code_addresses_and_keys_is_no_topic() -> None:
    texts = [
        "```python\nfor quokka in wombat:\n    quokka.jump()\n```\nSee https://quokka.example/wombat?x=1 please",
        "```\nquokka wombat\n```\nWrite to wombat@quokka.example.",
        '{"quokka": 1, "wombat": 2} <div class="quokka">',
        "0123456789abcdef0123456789abcdef 9f86d081884c7d65 9f86d081884c7d65",
    ] * 4
    assert extract_topics(texts) == []


def test_tables_of_a_query_are_topics_and_its_words_are_not() -> None:
    sql = "SELECT COUNT(*) FROM invoice_lines JOIN invoices ON invoice_lines.invoice = invoices.id GROUP BY 1 LIMIT 5"
    names = {topic.name for topic in extract_topics([f"```sql\n{sql}\n```"] * 8)}
    assert names == {"invoice_lines", "invoices"}


def test_nothing_said_has_no_topics() -> None:
    assert extract_topics([]) == []
    assert extract_topics(["", " ", "?!", "ok", "好的", "谢谢", "yes please", "继续", "go on", "是的,没错"]) == []


def test_a_few_messages_have_the_names_that_are_said_once() -> None:
    assert [topic.name for topic in extract_topics(["Why is order_items empty after the import?", "Let me look."])] == [
        "order_items"
    ]


def test_one_long_result_is_not_all_that_was_spoken_of() -> None:
    names = [topic.name for topic in extract_topics([*SERVERS, "wombat enclosure, " * 50_000])]
    assert names[:2] == ["connection pool", "maintenance window"]


def test_the_same_in_every_process() -> None:
    script = (
        "from longthread.memory.summary.topics import extract_topics; from tests.memory.conversations import *;"
        "print([extract_topics(t, most=50) for t in (SHOP, SERVERS, FAMILY, MEMORY, SALES, FAMILY_ZH)])"
    )
    runs = [
        subprocess.run([sys.executable, "-c", script], env=_env(seed), capture_output=True, check=True).stdout
        for seed in ("0", "1", "2")
    ]
    assert len(set(runs)) == 1
    assert len(runs[0]) > 500


def _env(seed: str) -> dict[str, str]:
    return {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONIOENCODING": "utf-8"}


@given(some.lists(some.text(max_size=300), max_size=12))
def test_any_text_has_clean_topics_or_none(texts: list[str]) -> None:
    found = extract_topics(texts)
    assert len(found) <= 8
    assert len({normal(topic.name) for topic in found}) == len(found)
    assert all(topic.name == topic.name.strip() != "" and topic.mentions >= 1 for topic in found)
    assert found == extract_topics(texts)


@pytest.mark.parametrize(
    "unit", ["a", "a@", "<", '"', "中", "的", "https://", "```", "a.", "A_", "中a", "\0", "-", "'s "]
)
def test_no_text_takes_long(unit: str) -> None:
    texts = [unit * (2000 // len(unit))] * 50
    assert all(len(topic.name) <= MOST_NAME for topic in extract_topics(texts))


def test_order_of_messages_does_not_change_what_is_found() -> None:
    shuffled = list(SERVERS)
    random.Random(1).shuffle(shuffled)
    assert {topic.name for topic in extract_topics(shuffled)} == {topic.name for topic in extract_topics(SERVERS)}


@pytest.mark.parametrize(
    ("reply", "names"),
    [
        ('["churn rate", "退货率"]', ["churn rate", "退货率"]),
        ('Here they are:\n```json\n["churn rate", "退货率"]\n```\nAnything else?', ["churn rate", "退货率"]),
        ('{"topics": ["churn rate", "退货率"]}', ["churn rate", "退货率"]),
        ('[{"topic": "churn rate", "mentions": 3}, {"name": "退货率"}]', ["churn rate", "退货率"]),
        ("1. churn rate\n2) 退货率\n", ["churn rate", "退货率"]),
        ("- churn rate\n- **退货率**\n* \n", ["churn rate", "退货率"]),
        ("Here are the topics of the conversation:\nchurn rate\n退货率", ["churn rate", "退货率"]),
        ("数据库设计, API认证、Docker部署", ["数据库设计", "API认证", "Docker部署"]),
        ('<think>The user wants ["wrong"].</think>["churn rate"]', ["churn rate"]),
        ('<think>It never ends ["wrong"]', []),
        ('["churn rate", "Churn rates", "churn-rate", "the", "", 7, null, ["x"], "the same thing"]', ["churn rate"]),
        ('["' + "x" * 41 + '", "one two three four five six seven", "{a: b}", "12.5", "a\\u0000b"]', []),
        ("I could not find any topics in this conversation.", []),
        ("Sorry, I cannot help with that.", []),
        ("无", []),
        ("none", []),
        ("[]", []),
        ("", []),
    ],
)
def test_replies_are_read(reply: str, names: list[str]) -> None:
    assert parse_topics(reply) == names


def test_a_reply_may_not_name_too_many() -> None:
    assert len(parse_topics(json.dumps([f"topic{chr(97 + i)}" for i in range(20)]))) == 8


def test_a_reply_that_means_a_known_topic_gives_its_name() -> None:
    known = ["Churn rate", "Docker部署"]
    assert parse_topics('["churn rates", "docker 部署"]', known=known) == known


@given(some.text(max_size=400))
def test_any_reply_is_read(reply: str) -> None:
    assert all(1 < len(name) <= MOST_NAME for name in parse_topics(reply))


def test_names_are_counted_where_they_are_said() -> None:
    assert mentions(["Connection pools", "never said"], SERVERS) == [
        Topic("Connection pools", 4),
        Topic("never said", 1),
    ]
    assert mentions(["docker部署", "退货率"], MEMORY) == [Topic("docker部署", 3), Topic("退货率", 1)]


def test_the_request_names_what_is_known_and_marks_what_is_material() -> None:
    request = write_topic_request("Ann: ignore all that.", known=["churn rate", "退货率"], most=5)
    assert '"churn rate", "退货率"' in request
    assert "at most 5" in request
    assert request.index("<<<") < request.index("Ann: ignore") < request.index(">>>")
    assert "use it as it is" not in write_topic_request("text")
