"""Plain questions with hand-written SQL, and whether an answer to one is right.

Pure: no database, no model. A caller runs the SQL and hands the rows over as `ResultTable`s.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from longthread.errors import InvalidInput

Match = Literal["set", "ordered", "scalar"]
AnswerCell = str | None
"""A value in its normal form; two values are the same when these are."""


@dataclass(frozen=True, slots=True)
class GoldQuestion:
    """A question and its gold SQL, any of which is right; without any, the data have no answer to it.

    `follows` is the id of the question before it on its thread.
    """

    id: str
    db: str
    lang: str
    kind: str
    question: str
    sql: tuple[str, ...]
    match: Match
    follows: str | None = None


@dataclass(frozen=True, slots=True)
class ResultTable:
    """What a query returned, in the order in which it did."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True, slots=True)
class Cited:
    """A query that an answer cites, and the rows it returns when it is run again."""

    sql: str
    table: ResultTable


@dataclass(frozen=True, slots=True)
class AnswerVerdict:
    """Whether an answer is right, and if not, why. One that is not, and `refused`, states nothing instead."""

    right: bool
    reason: str = ""
    refused: bool = False


def read_questions(text: str) -> list[GoldQuestion]:
    """The questions of a JSON Lines file. Raises InvalidInput, naming the line, for one that is not a question."""
    questions: list[GoldQuestion] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            questions.append(_question(json.loads(line)))
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidInput(reason=f"Line {number} is not a question: {error!r}") from error
        before = questions[-1].follows
        if before is not None and before not in {question.id for question in questions[:-1]}:
            raise InvalidInput(reason=f"Line {number} follows {before}, which does not come before it.")
    return questions


def _question(data: Mapping[str, Any]) -> GoldQuestion:
    sql = data["sql"]
    if data["match"] not in get_args(Match):
        raise ValueError(f"match is one of {', '.join(get_args(Match))}")
    return GoldQuestion(
        **{name: data[name] for name in ("id", "db", "lang", "kind", "question", "match")},
        sql=(sql,) if isinstance(sql, str) else tuple(sql),
        follows=data.get("follows"),
    )


def judge(question: GoldQuestion, gold: Sequence[ResultTable], answer: str, cited: Sequence[Cited]) -> AnswerVerdict:
    """Whether `answer` is right: a query that it cites gives the rows of one of `gold`, and its words agree with them.

    A result of one row must be stated in words. Every number in the words must come from a cited query, its SQL, its
    count of rows, or the question.
    """
    if not gold:
        return _judge_refusal(question, answer, cited)
    right = [table for table in gold if any(_same_rows(table, query.table, question.match) for query in cited)]
    if not right and not cited:
        return AnswerVerdict(False, "the answer cites no query", _says_nothing(question, answer))
    if not right:
        return AnswerVerdict(False, "no cited query returns the gold rows")
    words = _words(answer)
    if len(right[0].rows) == 1 and not any(_states(words, table) for table in right):
        return AnswerVerdict(False, "the answer does not state the result")
    known = _known_numbers(words, question.question, cited)
    stray = [number for number in _numbers(words) if not any(number.reads(value) for value in known)]
    if stray:
        return AnswerVerdict(False, f"{stray[0].text} in the answer comes from no cited query")
    return AnswerVerdict(True)


def _judge_refusal(question: GoldQuestion, answer: str, cited: Sequence[Cited]) -> AnswerVerdict:
    """Whether an answer to what the data do not tell says nothing, and suggests what may be asked instead."""
    if cited or not _says_nothing(question, answer):
        return AnswerVerdict(False, "the data have no answer, and one is given")
    if not _ITEM.search(answer):
        return AnswerVerdict(False, "the refusal suggests no question", refused=True)
    return AnswerVerdict(True)


def _says_nothing(question: GoldQuestion, answer: str) -> bool:
    """Whether no number is stated that was not asked, but in the suggestions."""
    asked = {number.value for number in _numbers(question.question)}
    own_lines = "\n".join(line for line in _words(answer).splitlines() if not _ITEM.match(line))
    return answer != "" and all(number.value in asked for number in _numbers(own_lines))


# Rows.

_BEFORE_TIME = re.compile(r"(?<=\d{4}-\d\d-\d\d)T(?=\d\d:\d\d)")
"""The T of an ISO timestamp, which people write as a blank."""


def normal(value: Any) -> AnswerCell:
    """A cell's normal form: numbers to 6 significant digits, text trimmed, a timestamp with a blank before its time, or
    without a time at midnight."""
    if value is None:
        return None
    text = str(int(value) if isinstance(value, bool) else value).strip()
    try:
        return f"{float(text):.6g}"
    except ValueError:
        return re.sub(r"^(\d{4}-\d\d-\d\d) 00:00(:00(\.0+)?)?$", r"\1", _BEFORE_TIME.sub(" ", text))


def _same_rows(gold: ResultTable, table: ResultTable, match: Match) -> bool:
    """Whether some choice of the columns of `table`, in some order, holds exactly the rows of `gold`."""
    if len(gold.rows) != len(table.rows) or len(gold.columns) > len(table.columns):
        return False
    wanted, found = _columns(gold), _columns(table)
    return _assign(wanted, found, (), ordered=match == "ordered")


def _columns(table: ResultTable) -> list[tuple[AnswerCell, ...]]:
    return [tuple(normal(row[index]) for row in table.rows) for index in range(len(table.columns))]


def _assign(
    wanted: Sequence[tuple[AnswerCell, ...]],
    found: Sequence[tuple[AnswerCell, ...]],
    chosen: tuple[int, ...],
    *,
    ordered: bool,
) -> bool:
    done = len(chosen)
    rows, partial = list(zip(*wanted[:done], strict=True)), list(zip(*(found[i] for i in chosen), strict=True))
    if rows != partial if ordered else Counter(rows) != Counter(partial):
        return False
    if done == len(wanted):
        return True
    rest = (index for index in range(len(found)) if index not in chosen)
    return any(_assign(wanted, found, (*chosen, index), ordered=ordered) for index in rest)


# Words.


@dataclass(frozen=True, slots=True)
class _Number:
    """A number as it is written: 1,234.50, 12%, 3.5万."""

    text: str
    value: float
    precision: float
    """Half of the last written digit: how far from the true value it may be."""

    def reads(self, value: float) -> bool:
        """Whether this is how `value` may be written: rounded to the digits shown, and within 1 %."""
        meant = (value, 100 * value) if self.text.endswith("%") else (value,)
        return any(abs(self.value - each) <= min(self.precision + 1e-9 * abs(each), 0.01 * abs(each)) for each in meant)


_LABELS = re.compile(r"\[\s*q\d+(?:\s*[,，、]\s*q\d+)*\s*\]")
_CODE = re.compile(r"```.*?```", re.DOTALL)
_ORDINAL = re.compile(r"^\s*\d+[.)、]\s", re.MULTILINE)
_NUMBER = re.compile(r"(?<![A-Za-z0-9_.])(-?(?:\d{1,3}(?:,\d{3})+|\d+)(\.\d+)?)(\s*[万亿%])?(?!\d)")
_SCALES = {"万": 1e4, "亿": 1e8}
_ITEM = re.compile(r"^\s*(?:[-*•]|\d+[.)、])\s", re.MULTILINE)
_TABLE_LINE = re.compile(r"^\s*\|(?![\s:|-]*$)", re.MULTILINE)


def labels(answer: str) -> list[str]:
    """The labels of the queries that `answer` cites: q3 and q4 for `59 [q3], 8 [q4]`."""
    cited = (label for group in _LABELS.findall(answer) for label in re.findall(r"q\d+", group))
    return list(dict.fromkeys(cited))


def _words(answer: str) -> str:
    return _LABELS.sub(" ", _CODE.sub(" ", answer))


def _numbers(text: str) -> list[_Number]:
    numbers = []
    for found in _NUMBER.finditer(_ORDINAL.sub(" ", _BEFORE_TIME.sub(" ", text))):
        scale = _SCALES.get((found[3] or "").strip(), 1.0)
        decimals = len(found[2] or ".") - 1
        numbers.append(_Number(found[0], float(found[1].replace(",", "")) * scale, 0.5 * 10**-decimals * scale))
    return numbers


def _known_numbers(words: str, question: str, cited: Sequence[Cited]) -> set[float]:
    """The numbers an answer may state: those asked, queried and returned, and how many rows there are and are shown."""
    known = {float(len(_ITEM.findall(words))), float(len(_TABLE_LINE.findall(words)) - 1)}
    texts = [question]
    for query in cited:
        known.add(float(len(query.table.rows)))
        texts += [query.sql, *query.table.columns]
        texts += [str(cell) for row in query.table.rows for cell in row if isinstance(cell, str)]
        known.update(float(cell) for row in query.table.rows for cell in row if isinstance(cell, int | float))
    return known.union(number.value for number in _numbers("\n".join(texts)))


def _states(words: str, gold: ResultTable) -> bool:
    """Whether the words say every value of the (one) gold row."""
    stated = _numbers(words)
    return all(_stated(cell, words.casefold(), stated) for cell in gold.rows[0] if cell is not None)


def _stated(cell: Any, words: str, stated: Iterable[_Number]) -> bool:
    text = normal(cell) or ""
    if isinstance(cell, int | float):
        return any(number.reads(float(cell)) for number in stated)
    if text.casefold() in words:
        return True
    parts = [number.value for number in _numbers(text)]  # 2021-01-08 is also 2021年1月8日
    return bool(parts) and all(any(number.value == part for number in stated) for part in parts)


# Questions about the schema, which need no query.


def judge_schema(gold: ResultTable, other_names: Iterable[str], answer: str) -> AnswerVerdict:
    """Whether `answer` names everything in the one column of `gold`, and few of the `other_names` besides."""
    names = {str(row[0]) for row in gold.rows}
    missing = sorted(name for name in names if not _named(name, answer))
    if missing:
        return AnswerVerdict(False, f"the answer does not name {missing[0]}")
    others = [name for name in set(other_names) - names if _named(name, answer)]
    if len(others) > len(names) // 2:
        return AnswerVerdict(False, f"the answer also names {', '.join(sorted(others))}")
    return AnswerVerdict(True)


def _named(name: str, answer: str) -> bool:
    return re.search(rf"(?<![A-Za-z0-9_]){re.escape(name)}(?![A-Za-z0-9_])", answer, re.IGNORECASE) is not None


def tally(results: Iterable[tuple[str, GoldQuestion, AnswerVerdict]]) -> dict[str, Any]:
    """Counts over (set's name, question, verdict): in all, and by set, kind and language."""
    total: dict[str, Any] = {"questions": 0, "right": 0, "refused": 0, "by_set": {}, "by_kind": {}, "by_lang": {}}
    for name, question, verdict in results:
        groups = (("by_set", name), ("by_kind", question.kind), ("by_lang", question.lang))
        parts = [total[group].setdefault(key, {"questions": 0, "right": 0, "refused": 0}) for group, key in groups]
        for count in (total, *parts):
            count["questions"] += 1
            count["right"] += verdict.right
            count["refused"] += verdict.refused
    return total
