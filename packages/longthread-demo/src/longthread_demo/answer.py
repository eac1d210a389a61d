"""What the demo model says: answers, refusals and explanations, in the language of the question."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from longthread.phrasebook import note_in_chinese
from longthread.tools.analysis.column_format import write_cut_note
from longthread_demo.doubts import texts_named, texts_used
from longthread_demo.examples import examples_for
from longthread_demo.findings import STATED, FoundSentence, read_rows
from longthread_demo.phrases import PHRASES, REFUSALS
from longthread_demo.query.audit import Audit
from longthread_demo.query.plan import QueryPlan
from longthread_demo.query.sums import sum_rows
from longthread_demo.query.wording import plan_in_words
from longthread_demo.question.parse import Understanding
from longthread_demo.schema import DemoSchema, DemoTable
from longthread_demo.sentence_words import SentenceWords
from longthread_demo.talk import Exchange

_NUMBER = re.compile(r"(?<![A-Za-z0-9_.])-?\d[\d,]*(?:[.-]\d+)*(?![A-Za-z0-9_])")
_CODE_OR_NUMBER = re.compile(rf"```.*?```|`[^`\n]*`|{_NUMBER.pattern}(?: (?:rows?|tables?|characters|行|张表|个字符))?")
_SHOWN_ROWS = 50
_NAMED_WORDS = 12


class AnswerTexts:
    """The texts of one language about one database."""

    def __init__(self, language: str, schema: DemoSchema) -> None:
        self.language, self.schema = language, schema

    def say(self, name: str, text: str) -> str:
        """A phrase of the demo model."""
        return PHRASES[name][self.language].format(text=text)

    def say_note(self, note: str) -> str:
        """A note on a file or a result."""
        return note_in_chinese(note) if self.language == "zh" else note

    def _signed(self, *parts: str) -> str:
        return "\n\n".join([*(part for part in parts if part), self.say("label", "")])

    # Without rows.

    def greeting(self) -> str:
        return self._signed(self.say("greeting", ""), self._examples())

    def empty(self) -> str:
        return self._signed(self.say("empty", ""))

    def tables(self, *, counted: bool = False) -> str:
        lines = [self.say("one_table" if len(self.schema.tables) == 1 else "tables", str(len(self.schema.tables))), ""]
        for table in self.schema.tables.values():
            rows = self._number_of_rows(table.rows) if table.rows is not None else ""
            lines.append("- " + " · ".join(part for part in (f"`{table.name}`", rows, table.comment) if part))
        return self._signed(unsourced("\n".join(lines[:202])), unsourced(self._examples()) if not counted else "")

    def columns(self, table: DemoTable) -> str:
        lines = [self.say("columns", f"`{table.name}`").replace("{count}", str(len(table.columns))), ""]
        targets = {
            link.columns[0]: link for link in self.schema.links if link.table == table.name and len(link.columns) == 1
        }
        for column in table.columns:
            link = targets.get(column.name)
            arrow = f"→ `{link.target}.{link.references[0]}`" if link else ""
            lines.append(
                "- " + " · ".join(part for part in (f"`{column.name}`", column.type, column.comment, arrow) if part)
            )
        return self._signed(unsourced("\n".join(lines)))

    def lost(self) -> str:
        return self._signed(self.say("lost", ""), self._examples())

    def refused(self, read: Understanding, unknown: Sequence[str], searched: Sequence[str]) -> str:
        """Why not: no such name, no such value (of the words that were `searched` for), or no rule."""
        reason = ""
        if read.refusal is not None:
            name, about = read.refusal
            reason = REFUSALS[name][self.language].format(text=about if len(about) <= 200 else about[:200] + "…")
        understood = ""
        if read.plan is not None:
            plan = plan_in_words(read.plan, self.schema, self.language)
            numbered = _NUMBER.search(plan) is not None
            understood = self.say("understood", f"```{plan.replace('`', '')}```" if numbered else plan)
        names = [word for word in unknown if word not in searched]
        words = (("no_value", searched), ("no_name", names), ("no_rule", read.left))
        lost = [self.say(name, self._quoted(found)) for name, found in words if found]
        about = " ".join([*read.left, *(read.refusal or ())[1:]])
        texts = [self._note("as_text", name) for name in texts_named(about, read.candidates, self.schema)]
        cut = next((self._note(name, text) for name, text in read.notes if name == "cut"), "")
        said = " ".join(part for part in (self.say("cannot", ""), reason, *lost, *texts, understood, cut) if part)
        return self._signed(unsourced(said), unsourced(self._examples()))

    def unreachable(self, base: str, other: str) -> str:
        text = self.say("unreachable", f"`{base}` / `{other}`")
        return self._signed(unsourced(f"{self.say('cannot', '')} {text}"), unsourced(self._examples()))

    def failed(self, message: str, sql: str) -> str:
        return self._signed(unsourced(self.say("failed", message)), _fenced(sql) if sql else "")

    def cut(self) -> str:
        """What it was given does not fit into the window."""
        return self._signed(self.say("cut", ""))

    def _examples(self) -> str:
        found = examples_for(self.schema, self.language)
        if not found:
            return ""
        shown = (f"`{example}`" if _NUMBER.search(example) else example for example in found)  # a question stays whole
        return self.say("try", "") + "\n" + "\n".join(f"- {example}" for example in shown)

    def _quoted(self, words: Sequence[str]) -> str:
        marks = ("“", "”")
        joint = "、" if self.language == "zh" else ", "
        short = [word if len(word) <= 60 else word[:60] + "…" for word in dict.fromkeys(words)]
        more = joint + "…" if len(short) > _NAMED_WORDS else ""
        return joint.join(f"{marks[0]}{word}{marks[1]}" for word in short[:_NAMED_WORDS]) + more

    # With rows.

    def result(self, read: Understanding, exchange: Exchange, audit: Audit | None, *, audited: bool) -> str:
        """Return the answer from a query's rows, and, if it was `audited`, from the counts of its audit."""
        data = exchange.data
        assert read.plan is not None
        sql = str(data.get("sql") or exchange.call.args.get("sql") or "")
        body = self._found(read.plan, data, sql, audit)
        notes = [self._note(name, text) for name, text in read.notes if f"note_{name}" in PHRASES]
        notes += [self._note("as_text", name) for name in texts_used(read.plan, self.schema)]
        sums = sum_rows(read.plan, self.schema)
        notes += [self._note("sum_row", item.table) for at, item in enumerate(sums) if _may_be_read(audit, at)]
        notes += [self.say_note(str(note)) for note in data.get("notes") or ()]
        counted = self._counts(read.plan, audit) if audit is not None else []
        counted += [self.say("not_counted", "")] if audited and audit is None else []
        read_as = "" if _says_all(read.plan, data) else plan_in_words(read.plan, self.schema, self.language)
        read_as = self.say("read_as", read_as) if read_as else ""
        told = (" ".join(counted), *(unsourced(text, source=sql) for text in (" ".join(notes), read_as)))
        return self._signed(body, *told, _fenced(sql))

    def _counts(self, plan: QueryPlan, audit: Audit) -> list[str]:
        """What a query is without, or has twice, as it was counted."""
        said = {"base": f"`{plan.table}`", "all": f"{audit.rows}", "cite": f"[{audit.query}]" if audit.query else ""}
        found = []
        if audit.left_out:
            summed = plan.measures[0].field
            total = f"`{summed.ref.column}`: {_cell(audit.total)}" if summed is not None and audit.total else ""
            total = PHRASES["left_out_total"][self.language].format(text=total) if total else ""
            missing = self._missing(plan)
            text = PHRASES["left_out"][self.language]
            found.append(text.format(number=audit.left_out, missing=missing, total=total, **said).strip())
        if audit.several:
            found.append(PHRASES["in_several"][self.language].format(number=audit.several, **said).strip())
        return found

    def _missing(self, plan: QueryPlan) -> str:
        """What rows that are left out lack: a row in a table, or a value."""
        others = [field.ref.table for item in plan.dimensions for field in item.fields if field.ref.table != plan.table]
        own = [field.ref.column for item in plan.dimensions for field in item.fields if field.ref.table == plan.table]
        own += [m.factor.ref.column for m in plan.measures if m.factor is not None]
        return (" / " if self.language == "zh" else " or ").join(f"`{name}`" for name in dict.fromkeys([*others, *own]))

    def _note(self, name: str, text: str) -> str:
        if name == "also":
            value, taken, other = text.split("|", 2)
            if self.language == "zh":
                return f"“{value}” 取自 `{taken}`；它也出现在 `{other}` 里。"
            return f"I took “{value}” as `{taken}`; it also occurs in `{other}`."
        return self.say(f"note_{name}", text)

    def _found(self, plan: QueryPlan, data: Mapping[str, Any], sql: str, audit: Audit | None) -> str:
        """What was found in one sentence, and the rows where it does not state them all."""
        found = read_rows(data, plan, self.schema)
        cite = f" [{data['query']}]" if data.get("query") else ""
        end = cite + ("。" if self.language == "zh" else ".")
        if not found.rows:
            return self.say("nothing", "") + end
        if len(found.rows) == 1 and all(cell is None for cell in found.rows[0]):
            return self.say("null_result", "") + end
        words = SentenceWords(plan, self.schema, self.language, lambda text: unsourced(text, source=sql))
        sentence = FoundSentence(words, found, audit).sentence() or self._tell_count(found.rows, data)
        text = (sentence if self.language == "zh" else sentence[0].upper() + sentence[1:]) + end
        if len(found.rows) == 1 and len(found.columns) <= STATED:
            return text
        shown = min(len(found.rows), _SHOWN_ROWS)
        cut = write_cut_note(_SHOWN_ROWS, is_chinese=self.language == "zh")
        more = f"\n\n{cut}" if len(found.rows) > _SHOWN_ROWS else ""
        return f"{text}\n\n{found.table(shown)}{more}"

    def _tell_count(self, rows: Sequence[Any], data: Mapping[str, Any]) -> str:
        """How many rows were found, as far as they were counted: how many of them are shown is said where they are."""
        total = data.get("total", len(rows))
        number = len(rows) if total is None else total
        text = self.say("row" if number == 1 else "rows", f"**{number:,}**")
        return self.say("found_more" if total is None else "found_rows", text)

    def _number_of_rows(self, number: int) -> str:
        return self.say("row" if number == 1 else "rows", f"{number:,}")


def _says_all(plan: QueryPlan, data: Mapping[str, Any]) -> bool:
    """Whether the first sentence says how the question was read: how many rows of a table there are, or were found."""
    if len(plan.tables()) > 1 or plan.dimensions or plan.limit is not None or plan.share or plan.wrap or plan.distinct:
        return False
    rows = len(data.get("rows") or ())
    return rows > 1 if not plan.measures else rows == 1 and [each.function for each in plan.measures] == ["count"]


def _may_be_read(audit: Audit | None, at: int) -> bool:
    """Return whether a query would read a row that it leaves out for being a sum: it was counted, or its number is
    unknown."""
    return audit is None or at >= len(audit.sums) or audit.sums[at]


def unsourced(text: str, *, source: str = "") -> str:
    """A sentence of our own, its numbers set as code: they come from no query, so none is looked for. What `source`
    says stays as it is."""

    def marked(found: re.Match[str]) -> str:
        said = found[0]
        if said.startswith("```"):
            return said
        if said.startswith("`"):
            return f"``{said}``" if any(number not in source for number in _NUMBER.findall(said)) else said
        return said if said in source else f"```{said}```"

    return _CODE_OR_NUMBER.sub(marked, text)


def _fenced(sql: str) -> str:
    return f"```sql\n{sql}\n```"


def _cell(value: Any) -> str:
    if value is None:
        return "—"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        text = f"{value:.4f}".rstrip("0").rstrip(".") if abs(value) < 1e15 else repr(value)
        return text or "0"
    return str(value).replace("|", "\\|").replace("\n", " ")
