"""A generated long conversation: turns with planted facts, results of 1 to 50 KB and thinking, from a seed."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from langchain_core.messages import AIMessage
from langchain_core.messages.tool import tool_call

Language = Literal["en", "zh"]

SMALLEST, LARGEST = 1_000, 50_000
"""Bytes of a tool's result. Most are small: how often one of at least n bytes comes falls as 1/n."""
CALLS = (0, 0, 1)
"""Calls of a turn, each as likely as the others."""
PLANTED_EVERY = 10
"""Turns for each planted fact."""
_ROW = 400
"""Bytes of one row of a result, about."""

_ENGLISH = """\
the release slipped because staging ran out of disk and nobody saw the alert until Monday morning please check which
regions are behind their plan and whether returns went up after the new carrier took over our eastern route customers
complain about damaged boxes late parcels missing invoices we should compare last quarter with this one before the
review and write down what changed for finance and support"""
_CHINESE = """\
发布 推迟 因为 测试 环境 磁盘 已满 周一 早上 才 发现 告警 请 检查 哪些 地区 落后 于 计划 新的 承运商 接手 之后
退货 是否 增加 客户 抱怨 包装 破损 快递 延误 发票 缺失 我们 应该 在 评审 之前 比较 上个 季度 和 本季度 的 数据
并且 把 变化 写下来 交给 财务 与 客服 部门 同时 关注 华东 仓库 库存 周转 情况"""
_WORDS: dict[Language, Sequence[str]] = {"en": _ENGLISH.split(), "zh": _CHINESE.split()}
_FACTS: dict[Language, Sequence[tuple[str, str, str]]] = {
    "en": (
        ("command", "To restart the {name} worker we run `{value}`.", "Which command restarts the {name} worker?"),
        ("path", "The {name} settings live in {value} now.", "Where do the {name} settings live?"),
        ("number", "The budget of project {name} is {value} euros.", "What is the budget of project {name}?"),
        ("name", "{value} is responsible for project {name}.", "Who is responsible for project {name}?"),
    ),
    "zh": (
        ("command", "重启{name}服务要运行 `{value}`。", "重启{name}服务用什么命令？"),
        ("path", "{name}的配置文件现在放在 {value}。", "{name}的配置文件放在哪里？"),
        ("number", "{name}项目的预算是{value}元。", "{name}项目的预算是多少？"),
        ("name", "{name}项目由{value}负责。", "谁负责{name}项目？"),
    ),
}
_SYLLABLES = ("ka", "lo", "mi", "ne", "ru", "sa", "to", "vi", "zu", "pa", "do", "fe", "gi", "ha", "ju", "be")
_FIRST = {"en": ("Mia", "Noah", "Ada", "Tom", "Lena", "Omar"), "zh": ("王", "李", "张", "刘", "陈", "杨")}
_LAST = {"en": ("Fischer", "Okafor", "Silva", "Novak", "Tanaka"), "zh": ("芳", "伟", "建国", "晓明", "文静")}


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact that is said once. `said` holds the `value`, which is nowhere else in the conversation."""

    kind: str
    said: str
    asked: str
    value: str


@dataclass(frozen=True, slots=True)
class Turn:
    """A question and its results of `rows` rows, one call after the other."""

    question: str
    rows: Sequence[int]
    fact: Fact | None


def turns(count: int, language: Language, seed: int) -> Iterator[Turn]:
    chance = random.Random(seed)
    for number in range(count):
        fact = _fact(number, language, chance) if number % PLANTED_EVERY == 0 else None
        said = words(chance, language, chance.randint(8, 40))
        rows = [_rows(chance) for _ in range(chance.choice(CALLS))]
        yield Turn(f"{said} {fact.said}" if fact else said, rows, fact)


def words(chance: random.Random, language: Language, count: int) -> str:
    space = " " if language == "en" else ""
    return space.join(chance.choice(_WORDS[language]) for _ in range(count)) + ("." if language == "en" else "。")


def _rows(chance: random.Random) -> int:
    size = SMALLEST / (1 - chance.random() * (1 - SMALLEST / LARGEST))
    return max(2, round(size / _ROW))


def _fact(number: int, language: Language, chance: random.Random) -> Fact:
    kind, said, asked = _FACTS[language][number // PLANTED_EVERY % 4]
    name = "".join(chance.choice(_SYLLABLES) for _ in range(3)).capitalize() + str(number)
    value = {
        "command": f"systemctl restart {name.lower()}-{chance.randint(100, 999)} --no-block",
        "path": f"/srv/{name.lower()}/conf/{chance.randint(1000, 9999)}.toml",
        "number": str(chance.randint(10**6, 10**8)),
        "name": chance.choice(_FIRST[language]) + " " + chance.choice(_LAST[language]) + f" {number}"
        if language == "en"
        else chance.choice(_FIRST[language]) + chance.choice(_LAST[language]) + str(number),
    }[kind]
    return Fact(kind, said.format(name=name, value=value), asked.format(name=name), value)


def make_source(path: Path, language: Language, seed: int) -> None:
    """Create a database whose table `events` has enough rows of about 400 bytes for the largest result."""
    chance = random.Random(seed)
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE events (id INTEGER PRIMARY KEY, at TEXT, region TEXT, total REAL, note TEXT)")
    rows = [
        (
            number,
            f"2026-{chance.randint(1, 12):02}-{chance.randint(1, 28):02}T{chance.randint(0, 23):02}:30:00Z",
            chance.choice(("north", "east", "south", "west")),
            round(chance.random() * 10_000, 2),
            words(chance, language, 50 if language == "en" else 45),
        )
        for number in range(2_000)
    ]
    with connection:
        connection.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?)", rows)
    connection.close()


def reply(turn: Turn, done: int, call_id: str, chance: random.Random, language: Language) -> AIMessage:
    """Return the model's next message in a turn with `done` finished calls: thinking, then a call or the answer."""
    thinking: Any = {
        "type": "thinking",
        "thinking": words(chance, language, chance.randint(10, 60)),
        "signature": f"{chance.getrandbits(256):064x}",
    }
    if done < len(turn.rows):
        first, count = chance.randint(0, 1_800), turn.rows[done]
        sql = f"SELECT * FROM events WHERE id BETWEEN {first} AND {first + count - 1}"
        call = tool_call(id=call_id, name="run_sql", args={"sql": sql})
        return AIMessage([thinking, {"type": "text", "text": words(chance, language, 8)}], tool_calls=[call])
    return AIMessage([thinking, {"type": "text", "text": words(chance, language, chance.randint(10, 60))}])
