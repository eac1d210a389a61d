"""Digests of older messages, built from their structure without a model."""

from __future__ import annotations

import hashlib
import json
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from longthread.memory.index.entry_text import is_prompt
from longthread.model.catalog import QUERIES, RECALL_TOOL, RUN_SQL
from longthread.model.entry import Entry
from longthread.model.fold import PARSE_ERROR, StateFold
from longthread.model.language import asks_to_continue, is_chinese
from longthread.view.compose import digest_of
from longthread.view.tokens import ANY, MESSAGE_OVERHEAD, estimate

_ENCODER = json.JSONEncoder(ensure_ascii=False, default=str)


def findings(data: Any, rows: str) -> Iterator[str]:
    """Yield the findings of an analysis tool's data; `rows` has the words for one and several rows, split by `|`."""
    if not isinstance(data, Mapping):
        return
    if isinstance(data.get("rows"), list) and "sql" in data:
        yield f"[{data.get('query', 'SQL')}] {_count(data, rows)}: {short(data['rows'])}"
    elif "columns" in data and "table_name" in data:
        yield f"{data['table_name']}: {column_names(data['columns'])}"
    elif isinstance(data.get("tables"), list):
        yield ", ".join(map(str, data["tables"][:20])) + (" …" if len(data["tables"]) > 20 else "")


def _count(data: Mapping[str, Any], rows: str) -> str:
    count = len(data["rows"])
    one, _, many = rows.partition("|")
    shown, _, total = str(data.get("shown", count)).partition(" of ")
    if total in ("", shown):
        return f"{shown} {one if shown == '1' else many or one}"
    return f"{shown}+ {many or one}" if not total.isdecimal() else f"{shown}/{total} {many or one}"


def column_names(columns: Any, most: int = 20) -> str:
    given = columns if isinstance(columns, list | tuple) else []
    names = [str(column.get("name", "?") if isinstance(column, Mapping) else column) for column in given]
    return ", ".join(names[:most]) + (" …" if len(names) > most else "")


def short(value: Any, limit: int = 160) -> str:
    text = ""
    for piece in _ENCODER.iterencode(value):  # piece by piece: a result may be long
        text += piece
        if len(text) > limit:
            return f"{text[:limit]}…"
    return text


DIGEST_FORM = 7
"""How a digest is made. What was made another way is made again."""
SECTIONS = ("asked", "told", "done", "errors")
_QUESTION, _ANSWER, _TOLD, _DONE, _FOUND, _ERROR, _COLUMNS = 120, 100, 160, 140, 90, 140, 120
"""Characters of an item of each kind."""
_ARROW = " → "
_UNASKED = f"…{_ARROW}"
"""How an answer begins whose question is not there."""
_SHARES = (1.0, 0.85, 0.7, 0.55, 0.42, 0.32, 0.24, 0.17, 0.11, 0.07, 0.04, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0)
_LENGTHS = (80, 40, 20)
"""What a line is cut to where little more than it has room."""
_DECISIONS = 8
_RECENT = 4
"""One in so many of the lines that stay is there because it is new."""
_TOOLS = 5
"""So many are counted however little room there is."""
_LOOKS = frozenset({"list_tables", "describe_table", "sample_rows"})
_WORDS: Mapping[bool, Mapping[str, str]] = {
    False: {
        "asked": "Asked before",
        "told": "Facts and decisions",
        "tables": "Known tables",
        "done": "Operations",
        "tools": "Tools used",
        "errors": "Errors",
        "left": "and {count} before that",
        "more": "and {count} more",
        "rows": "row|rows",
    },
    True: {
        "asked": "之前的问题",
        "told": "事实与决定",
        "tables": "已知的表",
        "done": "执行过的操作",
        "tools": "用过的工具",
        "errors": "遇到的错误",
        "left": "更早还有 {count} 条",
        "more": "另有 {count} 条",
        "rows": "行",
    },
}
_SENTENCE = re.compile(r"[^。！？!?\n；]+?(?:[。！？!?\n；]+|\.(?=\s|$)|$)")
# Sentences worth keeping verbatim: decisions, wishes, names for things …
_DECIDED = re.compile(
    r"\b(?:remember|don['’]t forget|decid(?:e|ed|es|ing)|decisions?|agree(?:d|s|ment)?|always|never|must|mustn['’]t"
    r"|prefer(?:s|red|ence|ences)?|from now on|instead of|no longer|(?:is|are) called|names? (?:is|are)|responsible"
    r"|in charge|allergic to|my [\w' -]{2,40}? (?:is|are|was)|deadline|budget|means|passwords?|passphrase|passcode"
    r"|(?:api|access|licen[cs]e|secret|private) keys?)\b"
    r"|记住|记得|别忘|决定|约定|商定|同意|说好|总是|每次都|永远|绝不|从来不|必须|务必|不要|不得|更喜欢|偏好|从现在起|今后"
    r"|以后|而不是|改为|改成|不再|负责|预算|期限|截止|叫做|名叫|名字是|名字叫|称为|意思是|口径|是指|指的是|密码|口令|密钥"
    r"|記住|記得|別忘|決定|約定|商定|說好|總是|永遠|絕不|從來不|必須|務必|更喜歡|從現在起|今後|以後|改為|負責|預算|稱為"
    r"|口徑|密碼|密鑰|过敏|過敏|生日|我[的家]?[\u4e00-\u9fff]{0,4}叫(?![我你他她它])",
    re.IGNORECASE,
)
# … then code, paths, addresses and versions …
_NAMED = re.compile(
    r"`[^`]+`|https?://\S+|(?<![\w./])\.{1,2}/[\w.-]+"
    r"|(?<![A-Za-z0-9.])\d{1,4}(?:\.\d{1,4}){2,3}(?!\.?[A-Za-z0-9])"
    r"|(?<![\w.@/-])[A-Za-z0-9][\w-]*(?:\.[A-Za-z0-9][\w-]*)+/[\w./-]+"
    r"|(?<![\w.@/-])[a-z0-9][\w-]+(?:\.[a-z0-9][\w-]*){2,}"
    r"|(?<![A-Za-z0-9_/])[~.]?/[\w.-]+/[\w./-]+|[A-Za-z]:\\\S+"
    r"|(?<![A-Za-z0-9_.+-])[A-Za-z0-9_.+-]{1,64}@[\w-]{1,63}\.\w"
)
# … and then numbers but years.
_NUMBERED = re.compile(r"(?<!\d)(?!(?:19|20)\d\d(?!\d))\d{3,}|\d+(?:\.\d+)?\s?%")
_KINDS = (_DECIDED, _NAMED, _NUMBERED)
"""What makes a sentence a fact, the weightiest first."""


@dataclass(frozen=True, slots=True)
class Digest:
    """The digest of some messages, oldest first in each section.

    `items` are lines by section, and `left` counts the omitted ones. `tables` are those of `source` with their columns,
    as of the schema `fingerprint`; `tools` counts calls. `chinese` of the `questions` are in Chinese.
    """

    items: Mapping[str, Sequence[str]] = field(default_factory=dict)
    left: Mapping[str, int] = field(default_factory=dict)
    tables: Mapping[str, str] = field(default_factory=dict)
    tools: Mapping[str, int] = field(default_factory=dict)
    source: str | None = None
    fingerprint: str | None = None
    questions: int = 0
    chinese: int = 0

    @property
    def is_chinese(self) -> bool:
        return 2 * self.chinese > self.questions

    def is_about(self, source: str | None, fingerprint: str | None) -> bool:
        return (self.source, self.fingerprint) == (source, fingerprint)

    @property
    def without_observations(self) -> Digest:
        """The digest without what was observed of the source."""
        said = {"asked", "told"}
        items = {name: lines for name, lines in self.items.items() if name in said}
        left = {name: count for name, count in self.left.items() if name in said}
        return replace(self, items=items, left=left, tables={}, tools={})

    def text(self) -> str:
        """Return the digest as text, in the conversation's language."""
        words = _WORDS[self.is_chinese]
        asked = "\n".join(self.items.get("asked", ()))
        # What is stated with its question needs no second line.
        said = [line for line in self.items.get("told", ()) if line not in asked]
        parts = [*self._list_section(words, "asked"), *replace(self, items={"told": said})._list_section(words, "told")]
        if self.tables:
            lines = [f"- {name}: {columns}" if columns else f"- {name}" for name, columns in self.tables.items()]
            parts.append("\n".join([f"{words['tables']}{self._more(words, 'tables')}:", *lines]))
        parts += self._list_section(words, "done")
        if self.tools:
            counts = ", ".join(f"{name} ×{count}" for name, count in sorted(self.tools.items()))
            parts.append(f"{words['tools']}: {counts}")
        return "\n".join([*parts, *self._list_section(words, "errors")])

    def _list_section(self, words: Mapping[str, str], name: str) -> list[str]:
        items, left = self.items.get(name, ()), self.left.get(name, 0)
        if not items and not left:
            return []
        return ["\n".join([f"{words[name]}{self._more(words, name)}:", *(f"- {item}" for item in items)])]

    def _more(self, words: Mapping[str, str], name: str) -> str:
        left = self.left.get(name, 0)
        return f" ({words['more' if name == 'told' else 'left'].format(count=left)})" if left else ""

    def to_json(self) -> dict[str, Any]:
        """Convert it to JSON; `from_json` restores it."""
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Digest:
        return cls(**{name: data[name] for name in cls.__slots__ if name in data})


def tokens_of(text: str) -> int:
    """Return an upper estimate of a text's tokens for any model."""
    return estimate(text, ANY)


def digest_entries(entries: Iterable[Entry]) -> Digest:
    """Digest entries of a branch, oldest first; calls come together with their results."""
    fold, said = StateFold(), list[str]()
    for entry in entries:
        fold.add(entry)
        if entry.role in {"user", "system"} and not is_prompt(entry):
            said.append(entry.text)
    asked = list(_list_questions(fold.messages))
    questions = [m["content"] for m in fold.messages if m["role"] == "user" and m["content"].strip()]
    chinese = sum(map(is_chinese, questions))
    rows = _WORDS[2 * chinese > len(questions)]["rows"]
    facts = fold.facts
    schemas = {name: facts.schemas[name].get("columns", facts.columns.get(name)) for name in facts.schemas}
    listed = {name: facts.columns.get(name) for name in facts.tables}
    return Digest(
        items={
            "asked": asked,
            "told": _once(told for text in said for told in _find_statements(text)),
            "done": _once(_done(fold.steps, rows)),
            "errors": _once(_errors(fold.steps)),
        },
        tables={
            _cut(name, _COLUMNS): _cut(column_names(columns), _COLUMNS) for name, columns in (listed | schemas).items()
        },
        tools=_count_tools(fold.steps),
        source=clean(facts.source) if isinstance(facts.source, str) else None,
        fingerprint=clean(facts.fingerprint) if isinstance(facts.fingerprint, str) else None,
        questions=len(questions),
        chinese=chinese,
    )


def merge_digests(old: Digest, new: Digest) -> Digest:
    """Merge two digests: `new` is of what came after `old`."""
    last = old if new.source is None else new
    same = old.is_about(last.source, last.fingerprint)
    items = {name: _once([*old.items.get(name, ()), *new.items.get(name, ())]) for name in SECTIONS}
    asked, answered = old.items.get("asked", ()), new.items.get("asked", ())
    if asked and answered and answered[0].startswith(_UNASKED) and _ARROW not in asked[-1]:
        # The window moved on between a question and its answer.
        items["asked"] = _once([*asked[:-1], asked[-1] + answered[0].removeprefix("…"), *answered[1:]])
    return Digest(
        items=items,
        left=_sum(old.left, new.left),
        tables={**old.tables, **{k: v or old.tables.get(k, "") for k, v in new.tables.items()}} if same else new.tables,
        tools=_sum(old.tools, new.tools),
        source=last.source,
        fingerprint=last.fingerprint,
        questions=old.questions + new.questions,
        chinese=old.chinese + new.chinese,
    )


def join_digests(old: Digest, new: Digest, limit: int) -> Digest:
    """Merge both within about `limit` tokens: if needed the old one is cut to a third, except decisions, then both."""
    both = merge_digests(old, new)
    if tokens_of(both.text()) <= limit:
        return both
    less = fit_digest(old, tokens_of(old.text()) // 3)
    told, stay = old.items.get("told", ()), set(less.items.get("told", ()))
    kept = [line for line in told if line in stay or _kind(line) == 0]
    left = {**less.left, "told": old.left.get("told", 0) + len(told) - len(kept)}
    return fit_digest(merge_digests(replace(less, items={**less.items, "told": kept}, left=left), new), limit)


def fit_digest(digest: Digest, limit: int) -> Digest:
    """Cut a digest to `limit` tokens: the newest items, and the weightiest statements."""

    def fits(share: float) -> bool:
        return tokens_of(_part_of(digest, share).text()) <= limit

    if fits(1.0):
        return digest
    # By halves: with a smaller share there are fewer tokens, but for a few.
    first = bisect_left(_SHARES, True, key=fits)
    share = next(filter(fits, _SHARES[first:]), 0.0)
    return _part_of(digest, share) if share else _least_of(digest, limit)


def _least_of(digest: Digest, limit: int) -> Digest:
    """Cut a digest without room for one line of each section: a fact before a question before the rest,
    each shortened as needed, and counts of the others."""
    found = _part_of(digest, 0.0)
    for name in ("told", "asked", "done", "errors"):
        for line in _lasting(digest.items.get(name, ()), 1) if name == "told" else digest.items.get(name, ())[-1:]:
            left = {**found.left, name: found.left[name] - 1}
            for length in (len(line), *(length for length in _LENGTHS if length < len(line))):
                more = replace(found, items={**found.items, name: [_cut(line, length)]}, left=left)
                if tokens_of(more.text()) <= limit:
                    found = more
                    break
    return found


def clean(text: str) -> str:
    """Replace characters that a store cannot hold: JSON may have escaped them."""
    return text.encode("utf-8", "replace").decode().replace("\x00", "\ufffd")


def cut_to(text: str, limit: int) -> str:
    """Cut a text in the middle to `limit` tokens."""
    return digest_of(text, limit + MESSAGE_OVERHEAD, ANY).text


def _part_of(digest: Digest, share: float) -> Digest:
    """Return a share of each section: the newest, and statements of all ages, which stay longer than questions."""
    if share == 1.0:
        return digest
    items, left = dict[str, Sequence[str]](), dict(digest.left)
    for name, lines in digest.items.items():
        count = _part(len(lines), share)
        if name == "told":
            # They are dropped after most of the rest, and a few of them never before that.
            count = max(_part(len(lines), min(1, 10 * share)), min(len(lines), _part(_DECISIONS, share**0.25)))
        items[name] = _lasting(lines, count) if name == "told" else lines[len(lines) - count :]
        if len(lines) > count:
            left[name] = left.get(name, 0) + len(lines) - count
    names = list(digest.tables)
    if gone := len(names) - _part(len(names), share):
        left["tables"] = left.get("tables", 0) + gone
    tables = {name: _columns(digest.tables[name], int(_COLUMNS * share)) for name in names[gone:]}
    tools = sorted(digest.tools.items(), key=lambda tool: (-tool[1], tool[0]))
    # A dropped count would restart at the tool's next call, and be wrong.
    tools = tools[: max(_part(len(tools), share), min(len(tools), _TOOLS))]
    return replace(digest, items=items, left=left, tables=tables, tools=dict(tools))


def _part(count: int, share: float) -> int:
    return min(count, int(count * share + 0.999)) if share else 0


def _lasting(lines: Sequence[str], count: int) -> Sequence[str]:
    """Choose `count` lines, oldest first: a few of the newest, else decisions before names before numbers.

    A line's hash breaks ties. It does not depend on age: early lines are as likely to stay as late ones.
    """
    if count >= len(lines):
        return lines
    newest = len(lines) - count // _RECENT
    ranked = sorted(range(newest), key=lambda n: _rank(lines[n]))
    stay = {*ranked[: count - count // _RECENT], *range(newest, len(lines))}
    return [line for n, line in enumerate(lines) if n in stay]


@lru_cache(maxsize=4_096)  # lines are ranked again whenever some of them have to go
def _rank(line: str) -> tuple[int, bytes]:
    return _kind(line), hashlib.blake2b(line.encode()).digest()


def _kind(line: str) -> int:
    return next((n for n, kind in enumerate(_KINDS) if kind.search(line)), len(_KINDS))


def _list_questions(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    question, answer = "", ""
    for message in messages:
        if message["role"] == "assistant":
            answer = message["content"]
        elif not asks_to_continue(message["content"]):
            yield from _pair(question, answer)
            question, answer = message["content"], ""
    yield from _pair(question, answer)


def _pair(question: str, answer: str) -> Iterator[str]:
    if question.strip() or answer.strip():
        asked = _cut(question, _QUESTION) or "…"
        yield f"{asked}{_ARROW}{_cut(answer, _ANSWER)}" if answer.strip() else asked


def _find_statements(text: str) -> Iterator[str]:
    """Yield the sentences worth remembering."""
    for match in _SENTENCE.finditer(text[:20_000]):
        sentence = match[0].strip()
        if len(sentence) <= 5 or sentence[-1] in "?？":
            continue
        if found := next(filter(None, (kind.search(sentence) for kind in _KINDS)), None):
            # Of a long one, the part around the key place.
            start = max(0, min(found.start() - _TOLD // 3, len(sentence) - _TOLD))
            yield ("…" if start else "") + _cut(sentence[start:], _TOLD)


def _done(steps: Iterable[Mapping[str, Any]], rows: str) -> Iterator[str]:
    for step in _calls(steps):
        if step["action"] in _LOOKS or _error_of(step["observation"]) is not None:
            continue
        data = step["observation"].get("data")
        found = next(findings(data, rows), None) if step["action"] in QUERIES else None
        asked = step["args"].get("sql") if step["action"] == RUN_SQL else None
        said = _cut(found or (data if isinstance(data, str) else short(data, 60)), _FOUND)
        call = str(asked) if asked else f"{step['action']}({short(step['args'], 60)})"
        # The rows stay: a statement can be written again.
        yield f"{_cut(call, _DONE - len(said) - 3)} → {said}"


def _errors(steps: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for step in _calls(steps):
        error = _error_of(step["observation"])
        if error is not None:
            yield _cut(f"{step['action']}: {error}", _ERROR)


def _count_tools(steps: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for step in _calls(steps):
        name = _cut(step["action"], _COLUMNS)
        counts[name] = counts.get(name, 0) + 1
    return counts


def _calls(steps: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Yield the tool calls, except recall's, which repeat other entries."""
    return (
        step for step in steps if step["observation"] is not None and step["action"] not in {PARSE_ERROR, RECALL_TOOL}
    )


def _error_of(observation: Mapping[str, Any]) -> str | None:
    if observation.get("ok"):
        data = observation.get("data")
        return data if isinstance(data, str) and data.startswith("Error") else None
    error = observation.get("error")
    message = error.get("message") if isinstance(error, Mapping) else error
    return message if isinstance(message, str) else short(error)


def _cut(text: str, limit: int) -> str:
    line = " ".join(clean(text[: 4 * limit + 200]).split())
    return line if len(line) <= limit else f"{line[: max(0, limit - 1)]}…"


def _columns(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit].rpartition(',')[0]}, …".removeprefix(", ")


def _once(items: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(reversed(list(items))))[::-1]


def _sum(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {name: one.get(name, 0) + other.get(name, 0) for name in sorted({*one, *other})}


def json_of(digest: Digest) -> Mapping[str, Any]:
    data: Mapping[str, Any] = json.loads(json.dumps(digest.to_json(), ensure_ascii=False))
    return data
