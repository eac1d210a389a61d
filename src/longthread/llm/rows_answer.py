"""The answer of the SQL protocol that needs no second prompt: what the rows say, written without the model.

A small model that is given rows and asked for a sentence often repeats the question, or leaves the rows out. Here each
number is a cell of the result, or how many rows it has. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from longthread.model.language import is_chinese
from longthread.phrasebook import note_in_chinese
from longthread.tools.analysis.column_format import NUMERIC, FormattedRows, escape_cell, number_in, write_cut_note

BY_ROWS = "rows"
"""Who wrote such an answer, in its note: no model."""
_NAMED = 3
"""Rows that the sentence names."""
_SHOWN = 10
"""Rows of the table."""
_STATED = 4
"""Cells of the only row that are stated in a line."""
_NAME = re.compile(r"[^\W\d_][\w %％/-]*")
"""A column's name that is one, and no expression: `COUNT(*)` says nothing."""
_ASKS_WORDS = re.compile(
    r"^\W*(?:(?:and|so|but|then|or|now)\b\W*)?(?:(?:is|are|was|were|do|does|did|has|have|had|should)(?:n['’]t)?|am|may)\b"
    r"|\b(?:why|how come|whether|explain\w*|describ\w*|summar\w+|compare[ds]?|comparing|comparison|differences?"
    r"|interpret\w*|insights?|analy[sz]e|trends?|overview|cause[ds]?|recommend\w*|conclu\w+|sentences?"
    r"|in (?:one )?words?|tell me about|(?:write|give|make) (?:me |us )?a report|what does\b.{1,40}\bmean"
    r"|translat\w+|always|from now on|(?:answer|reply|respond) (?:in|with|as)"
    r"|in (?:english|german|french|spanish|italian|chinese|japanese|korean|portuguese|russian))\b"
    r"|[吗嗎]|是否|是不是|有没有|有沒有|会不会|能不能|对不对|为什么|為什麼|为何|原因|解释|解釋|说明|說明|总结|總結|概括|概述"
    r"|对比|對比|比较|比較|分析|意味|建议|建議|评价|評價|描述|怎么看|怎么样|怎麼樣|如何|趋势|趨勢|更好|回答|翻译|翻譯|总是|總是|以后|以後",
    re.I,
)
"""Questions that rows alone do not answer: yes or no, why, a comparison, a summary, a form of the answer."""
_OTHER_LANGUAGE = re.compile(
    r"[^\W\d_a-z\u4e00-\u9fff]|\b(?:wie|viele|warum|gibt|welche[rsn]?|und|der|das|ist|sind|nicht|combien|pourquoi|quel(?:le)?s?"
    r"|une|cuant[oa]s|cual(?:es)?|por|quanti|quante|quale|quantos|quantas|quais|onde)\b",
    re.I,
)
"""Letters and words of languages whose answers the model writes: a product in two of them would answer in English."""


def asks_words(question: str) -> bool:
    """Return whether a question wants more than the rows, or is in another language than English and Chinese: the model
    writes that answer."""
    is_other = not is_chinese(question) and _OTHER_LANGUAGE.search(question) is not None
    return is_other or _ASKS_WORDS.search(question) is not None


def answer_from_rows(question: str, data: Mapping[str, Any]) -> str:
    """Return what the result of a query says, in the language of the question: a value as a value, some rows by name,
    more as a table of Markdown. `data` is that of the query's observation."""
    result, words = FormattedRows.read(data), _Words(is_chinese=is_chinese(question))
    label = f" [{data['query']}]" if data.get("query") else ""
    text = _summarize(result, words)
    parts = [f"{text[0].upper()}{text[1:]}{label}{words.stop}"]
    if not _is_stated(result):
        parts.append(result.table(min(len(result.rows), _SHOWN)))
    if len(result.rows) > _SHOWN:
        parts.append(write_cut_note(_SHOWN, is_chinese=words.is_chinese))
    notes = [note_in_chinese(str(note)) if words.is_chinese else str(note) for note in data.get("notes") or ()]
    parts += [words.say(" ", "").join(notes)] if notes else []
    return "\n\n".join(parts)


class _Words:
    """The words of one language."""

    def __init__(self, *, is_chinese: bool) -> None:
        self.is_chinese = is_chinese
        self.colon, self.comma, self.stop = ("：", "，", "。") if is_chinese else (": ", ", ", ".")
        self.pause = "、" if is_chinese else ", "

    def say(self, english: str, chinese: str) -> str:
        return chinese if self.is_chinese else english

    def beside(self, name: str, value: str) -> str:
        return self.say(f"{name} ({value})", f"{name}（{value}）")

    def count(self, result: FormattedRows) -> str:
        """Return how many rows there are; of an unknown number that there are more."""
        if result.total is None:
            return self.say(f"more than **{len(result.rows):,}** rows", f"超过 **{len(result.rows):,}** 行")
        return self.say(f"**{result.total:,}** rows", f"共 **{result.total:,}** 行")


def _summarize(result: FormattedRows, words: _Words) -> str:
    if not result.rows:
        return words.say("no rows match", "没有符合条件的数据")
    if result.is_whole and all(cell is None for row in result.rows for cell in row):
        return words.say("there is no value", "没有值")
    if len(result.rows) == 1 and result.is_whole:
        return words.comma.join(_write_value(result, words, at) for at in range(min(len(result.columns), _STATED)))
    if _is_list(result):
        return words.pause.join(result.strong(row, [0]) for row in range(len(result.rows)))
    return (
        words.count(result) + words.colon + _name_rows(result, words)
        if len(result.columns) > 1
        else words.count(result)
    )


def _write_value(result: FormattedRows, words: _Words, column: int) -> str:
    """Return a cell of the only row with its column's name, where that is one."""
    name, value = result.columns[column], result.strong(0, [column])
    return f"{_in_words(name)}{words.colon}{value}" if _NAME.fullmatch(name) else value


def _in_words(name: str) -> str:
    """Return a column's name as words. One with digits is set as code: they come from no row."""
    words = escape_cell(name.replace("_", " ")).strip()
    return f"```{words}```" if re.search(r"\d", words) else words


def _is_stated(result: FormattedRows) -> bool:
    """Return whether the sentence has all cells, so that no table follows it."""
    if not result.rows:
        return True
    if len(result.rows) == 1 and result.is_whole:
        return len(result.columns) <= _STATED
    return _is_list(result) or (result.is_whole and len(result.rows) <= _NAMED and len(result.columns) == 2)


def _is_list(result: FormattedRows) -> bool:
    """Return whether all rows are short texts of one column, which a line names."""
    cells = [row[0] for row in result.rows] if len(result.columns) == 1 and result.is_whole else []
    return 1 < len(cells) <= _SHOWN and all(cell is not None and len(str(cell)) <= 40 for cell in cells)


def _name_rows(result: FormattedRows, words: _Words) -> str:
    """Return the first rows by name, with a number of each, that by which they are sorted; or from the least to the
    most of their last number, where they are sorted by none."""
    name, measures = _find_columns(result)
    is_whole = result.is_whole and len(result.rows) > _NAMED
    ranked = next((at for at in measures if _is_sorted(result, at)), None)
    if is_whole and measures and ranked is None and (span := _write_span(result, words, name, measures[-1])):
        return span
    rows = range(min(len(result.rows), _NAMED))
    names = [result.strong(row, [name]) for row in rows]
    if measures:
        shown = measures[-1] if ranked is None else ranked
        names = [words.beside(name, result.strong(row, [shown])) for row, name in zip(rows, names, strict=True)]
    return words.pause.join(names) + (" …" if len(result.rows) > _NAMED else "")


def _is_sorted(result: FormattedRows, column: int) -> bool:
    numbers = [number for row in result.rows if (number := number_in(row[column])) is not None]
    return numbers in (sorted(numbers), sorted(numbers, reverse=True))


def _write_span(result: FormattedRows, words: _Words, name: int, column: int) -> str:
    """Return from the least to the most of a column, and whose the most is; empty where a row lacks its number."""
    numbers = [number for row in result.rows if (number := number_in(row[column])) is not None]
    if len(numbers) < len(result.rows):
        return ""
    least, most = numbers.index(min(numbers)), numbers.index(max(numbers))
    span = words.say(" to ", " 到 ").join(result.strong(row, [column]) for row in (least, most))
    measured = _in_words(result.columns[column]) if _NAME.fullmatch(result.columns[column]) else ""
    text = f"{measured} {span}".strip()
    if numbers.count(numbers[most]) > 1:
        return text
    return f"{text}{words.comma}{words.say('the most: ', '最多：')}{result.strong(most, [name])}"


def _find_columns(result: FormattedRows) -> tuple[int, list[int]]:
    """Return the column that names a row, a text before ids and years, and the others that measure it."""
    kinds = [format_.kind for format_ in result.formats]
    measures = [at for at, kind in enumerate(kinds) if kind in NUMERIC and kind != "plain"]
    texts = [at for at, kind in enumerate(kinds) if kind not in NUMERIC]
    name = next((at for at in [*texts, *range(len(kinds))] if at not in measures), 0)
    return name, [at for at in measures if at != name]
