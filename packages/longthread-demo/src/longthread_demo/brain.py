"""What the demo model does next: a pure function of the conversation."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from longthread.view.items import BARE_ARGS
from longthread_demo.answer import AnswerTexts
from longthread_demo.doubts import reads_all_rows
from longthread_demo.near import near
from longthread_demo.probe import found_in, is_probe, probe_sql, probed_words, variants
from longthread_demo.query.audit import Audit, audit_sql, is_audit
from longthread_demo.query.joins import path
from longthread_demo.query.plan import QueryPlan
from longthread_demo.query.render import Unreachable, sql_of
from longthread_demo.query.sums import sum_rows
from longthread_demo.question.parse import LONGEST, Understanding, understand
from longthread_demo.schema import DemoSchema, pointed_at, schema_of
from longthread_demo.schematalk import SchemaQuestion, schema_question
from longthread_demo.talk import DemoCall, DemoTurn, Exchange, Utterance, facts_of, turns_of
from longthread_demo.words.lexicon import language_of
from longthread_demo.words.vocabulary import Vocabulary, vocabulary

_FEW_TABLES = 12
_DESCRIBED_AT_ONCE = 8
_LONGEST_VALUE = 80
"""Characters of a word that is looked up among the values; a longer one is none."""


_UNKNOWN_NAME = re.compile(r"no such (table|column)|does not exist|unknown (table|column)|not found")


@dataclass(frozen=True)
class NextStep:
    """The next calls, or when there are none the answer. `thought` says why."""

    thought: str
    calls: tuple[DemoCall, ...] = ()
    answer: str = ""


def decide(messages: Sequence[Utterance]) -> NextStep:
    """The next step of the conversation's last question."""
    turns = turns_of(messages)
    if not turns:
        return NextStep("No question.", answer=AnswerTexts("en", DemoSchema(tables={})).greeting())
    return _Mind(turns, facts_of(messages)).next()


class _Mind:
    """The reasoning over one conversation. It lives for one decision."""

    def __init__(self, turns: list[DemoTurn], facts: dict[str, Any]) -> None:
        turns = [replace(turn, question=turn.question[: LONGEST + 1]) for turn in turns]  # one more tells of the cut
        self.turn = turns[-1]
        self.earlier = turns[:-1]
        self.exchanges = [exchange for turn in turns for exchange in turn.exchanges]
        self.schema = schema_of(facts, self.exchanges)
        self.language = language_of(self.turn.question, self.schema.chinese_names)
        self.answer = AnswerTexts(self.language, self.schema)

    def next(self) -> NextStep:
        """The next step, unless it would only be a step once more that does not fit into the view: for ever."""
        decision = self._next()
        if any(self._is_in_vain(call) for call in decision.calls):
            return self._finish("What I looked up does not fit into the window.", self.answer.cut())
        return decision

    def _next(self) -> NextStep:
        if not self.schema.listed:
            return self._explore()
        if not self.schema.tables:
            return self._finish("There are no tables.", self.answer.empty())
        about = schema_question(self.turn.question, self.schema)
        if about is not None:
            return self._of_schema(about)
        words = self._words()
        previous, lost = self._previous(words)
        read = understand(self.turn.question, self.schema, words, previous)
        wanted = self._undescribed(read)
        if wanted:
            return self._describe(wanted)
        unknown = [word for word in read.unknown if len(word) <= _LONGEST_VALUE and not self._probed(word)]
        if unknown and not _hopeless(read):
            sql = probe_sql(unknown, self._probe_tables(read), self.schema)
            if sql and not self._tried("run_sql", sql):
                return NextStep(self.answer.say("probing", ", ".join(unknown)), (DemoCall("run_sql", {"sql": sql}),))
        return self._conclude(read, lost)

    def _is_in_vain(self, call: DemoCall) -> bool:
        """Whether the call was made in this turn, or perhaps was, and cannot be seen."""
        return any(
            done.call.args == BARE_ARGS or (done.is_cut and (done.call.name, done.call.args) == (call.name, call.args))
            for done in self.turn.exchanges
        )

    # Exploring.

    def _explore(self) -> NextStep:
        failed = [exchange for exchange in self.turn.exchanges if exchange.call.name == "list_tables"]
        if failed:
            error = failed[-1].error or {}
            return self._finish("The tables cannot be listed.", self.answer.failed(str(error.get("message") or ""), ""))
        return NextStep(self.answer.say("listing", ""), (DemoCall("list_tables", {}),))

    def _of_schema(self, about: SchemaQuestion) -> NextStep:
        table = self.schema.tables.get(about.table)
        if table is not None and not table.described and not self._tried_table(table.name):
            return NextStep(
                self.answer.say("describing", table.name), (DemoCall("describe_table", {"table": table.name}),)
            )
        text = self.answer.columns(table) if table is not None else self.answer.tables(counted=about.counted)
        read = [*self.schema.tables] if table is None else [table.name]
        return self._finish("The schema is known.", text, read)

    def _words(self) -> Vocabulary:
        found = tuple(item for exchange in self.exchanges for item in found_in(exchange))
        questions = [turn.question for turn in (*self.earlier[-3:], self.turn)]
        return vocabulary(tuple(near(self.schema, questions).tables.values()), found)

    def _previous(self, words: Vocabulary) -> tuple[QueryPlan | None, bool]:
        """The plan before this question, from the last questions that stand alone; whether there was a question.

        A question that was refused, or was about the schema, changes nothing.
        """
        chain: list[DemoTurn] = []
        for turn in reversed(self.earlier[-12:]):
            if _refused(turn) or schema_question(turn.question, self.schema) is not None:
                continue
            chain.append(turn)
            if not understand(turn.question, self.schema, words, None).leans:
                break
        plan: QueryPlan | None = None
        for turn in reversed(chain):
            read = understand(turn.question, self.schema, words, plan)
            sound = turn.answer or not (read.left or read.unknown)
            plan = read.plan if read.plan is not None and not read.refusal and sound else plan
        return plan, not self.earlier

    def _undescribed(self, read: Understanding) -> list[str]:
        names: list[str] = []
        if read.plan is not None:
            names += self._along(read.plan)
        few = len(self.schema.tables) <= _FEW_TABLES
        candidates = [*read.candidates[: 6 if few else 4]]
        names += candidates if read.plan is not None or read.candidates else []
        if few and read.plan is None and read.unknown_or_bare:
            names += [*self.schema.tables]  # a value of some table may be all that is named
        if few and read.of_column:
            names += [*self.schema.tables]  # its noun may be a value elsewhere: managers
        if not few:
            names += self._beyond(read, names)
        fresh = [
            name
            for name in dict.fromkeys(names)
            if name in self.schema.tables and not self.schema.tables[name].described and not self._tried_table(name)
        ]
        return fresh[:_DESCRIBED_AT_ONCE]

    def _beyond(self, read: Understanding, names: list[str]) -> list[str]:
        """Where the list of tables came without columns: what else may be meant, while something is unexplained."""
        if not (read.unknown or read.plan is None or read.refusal):
            return []
        known = [name for name in names if name in self.schema.tables and self.schema.tables[name].described]
        return [other for name in known[:4] for other in pointed_at(self.schema, name)][:4]

    def _describe(self, names: Sequence[str]) -> NextStep:
        calls = tuple(DemoCall("describe_table", {"table": name}) for name in names)
        return NextStep(self.answer.say("describing", ", ".join(names)), calls)

    def _unseen(self) -> list[str]:
        """The other tables, if they are few: one of them may lie between two that nothing seems to connect."""
        fresh = [name for name, table in self.schema.tables.items() if not table.described]
        fresh = [name for name in fresh if not self._tried_table(name)]
        return fresh[:_DESCRIBED_AT_ONCE] if len(self.schema.tables) <= 2 * _FEW_TABLES else []

    def _along(self, plan: QueryPlan) -> list[str]:
        """The tables of a plan and those between them."""
        names = plan.tables()
        between: list[str] = []
        for name in names[1:]:
            between += [hop.end for hop in path(self.schema, names[0], name) or []]
        return [*names, *between]

    def _is_apart(self, plan: QueryPlan) -> bool:
        """Whether nothing that is known so far leads from the plan's table to another of it."""
        first, *others = plan.tables()
        return any(path(self.schema, first, name) is None for name in others)

    def _tried_table(self, name: str) -> bool:
        return any(e.call.name == "describe_table" and e.call.args.get("table") == name for e in self.turn.exchanges)

    def _tried(self, name: str, sql: str) -> bool:
        return any(e.call.name == name and e.call.args.get("sql") == sql for e in self.turn.exchanges)

    # Probing.

    def _probed(self, word: str) -> bool:
        return any(variants([word])[0] in probed_words(e.call) for e in self.exchanges if is_probe(e.call) and e.data)

    def _probe_tables(self, read: Understanding) -> list[str]:
        """The tables worth searching: those of the question and their neighbours first, then the rest."""
        near = self._along(read.plan) if read.plan is not None else []
        near += read.candidates
        around = [
            other
            for link in self.schema.links
            for one, other in ((link.table, link.target), (link.target, link.table))
            if one in near
        ]
        return list(dict.fromkeys([*near, *around, *self.schema.tables]))

    # Answering.

    def _conclude(self, read: Understanding, lost: bool) -> NextStep:
        unknown = [word for word in read.unknown if word not in read.domain or not self._probed(word)]
        searched = [word for word in unknown if self._probed(word)]
        if read.greeting:
            return self._finish("Nothing is asked yet.", self.answer.greeting())
        if read.marked and lost:
            return self._finish("The question before is out of sight.", self.answer.lost())
        if read.refusal is not None and read.refusal[0] == "far_apart" and self._unseen():
            return self._describe(self._unseen())
        if read.refusal is not None or read.plan is None:
            return self._finish("This cannot be answered by the rules.", self.answer.refused(read, unknown, searched))
        if read.left and self._is_apart(read.plan) and self._unseen():
            return self._describe(self._unseen())  # a table between them may be what the word is about
        if unknown or read.left:
            return self._finish(
                "Too much of the question is unexplained.", self.answer.refused(read, unknown, searched)
            )
        try:
            sql = sql_of(read.plan, self.schema)
            sums = [] if reads_all_rows(read.plan) else sum_rows(read.plan, self.schema)
            audit = audit_sql(read.plan, self.schema, sums)
        except Unreachable as reason:
            if self._unseen():
                return self._describe(self._unseen())
            return self._finish("Two tables are not connected.", self.answer.unreachable(*reason.args[0]))
        return self._run(read, sql, audit)

    def _run(self, read: Understanding, sql: str, audit: str) -> NextStep:
        queries = [e for e in self.turn.exchanges if e.call.name == "run_sql" and not is_probe(e.call)]
        runs = [exchange for exchange in queries if not is_audit(exchange.call)]
        for exchange in runs:
            if exchange.data:
                counted = next((Audit.read(e) for e in queries if e.call.args.get("sql") == audit), None)
                answer = self.answer.result(read, exchange, counted, audited=bool(audit))
                tables = self._along(read.plan) if read.plan is not None else []
                return self._finish("The rows answer the question.", answer, tables)
        if not runs:
            calls = tuple(DemoCall("run_sql", {"sql": text}) for text in (audit, sql) if text)
            return NextStep(self.answer.say("running", ""), calls)
        if runs[-1].is_cut:
            return self._finish("The rows do not fit into the window.", self.answer.cut())
        stale = self._stale(read, runs[-1])
        if stale:
            return NextStep(self.answer.say("listing_again", ""), stale)
        repaired = sql if runs[-1].call.args.get("sql") != sql else _repaired(sql, runs[-1])
        relisted = self.turn.exchanges[-1].call.name in ("list_tables", "describe_table")
        if relisted or (repaired == sql and not self._tried("run_sql", sql)):
            return NextStep(self.answer.say("repairing", ""), (DemoCall("run_sql", {"sql": sql}),))
        if len(runs) == 1 and repaired != sql and not self._tried("run_sql", repaired):
            return NextStep(self.answer.say("repairing", ""), (DemoCall("run_sql", {"sql": repaired}),))
        message = str((runs[-1].error or {}).get("message") or "")
        return self._finish("The query failed.", self.answer.failed(message, str(runs[-1].call.args.get("sql") or sql)))

    def _stale(self, read: Understanding, failure: Exchange) -> tuple[DemoCall, ...]:
        """What to look at again, once, when the database does not know a name any more."""
        message = str((failure.error or {}).get("message") or "").lower()
        if not _UNKNOWN_NAME.search(message) or any(e.call.name == "list_tables" for e in self.turn.exchanges):
            return ()
        names = read.plan.tables() if read.plan is not None else []
        return (DemoCall("list_tables", {}), *(DemoCall("describe_table", {"table": name}) for name in names[:4]))

    def _finish(self, thought: str, text: str, tables: Collection[str] = ()) -> NextStep:
        """The answer, with what is left out of the files, and of those `tables` that it is about."""
        left_out = [note for exchange in self.turn.exchanges for note in self._left_out(exchange, tables)]
        told = "\n".join(dict.fromkeys(map(self.answer.say_note, left_out)))
        return NextStep(thought, answer=f"{text}\n\n```text\n{told}\n```" if told else text)

    def _left_out(self, exchange: Exchange, tables: Collection[str]) -> list[str]:
        """What a listing says of files, and parts of these tables, that are not read."""
        notes = (exchange.data or {}).get("notes") if exchange.call.name == "list_tables" else None
        others = tuple(f"{name}: " for name in self.schema.tables if name not in tables)
        return [note for note in map(str, notes or ()) if " left out" in note and not note.startswith(others)]


def _refused(turn: DemoTurn) -> bool:
    """Whether a question of before was not answered, by what was said."""
    return any(text in turn.answer for text in ("cannot answer this.", "无法回答这个问题。"))


def _hopeless(read: Understanding) -> bool:
    return read.refusal is not None and read.refusal[0] == "unsupported"


def _repaired(sql: str, failure: Exchange) -> str:
    """The query once more, careful: dates cast, division and comparison by text avoided where the error hints at it."""
    message = json.dumps(failure.error or {}).lower()
    if "timestamp" in message or "date" in message or "extract" in message or "strftime" in message:
        return re.sub(r"EXTRACT\((\w+) FROM ([^()]+)\)", r"EXTRACT(\1 FROM CAST(\2 AS TIMESTAMP))", sql)
    if "distinct" in message and "order by" in message:
        return re.sub(r"\nORDER BY [^\n]+", "", sql)
    if "timeout" in message or "stopped" in message or "too long" in message:
        return sql if "LIMIT" in sql else sql + "\nLIMIT 100"
    return re.sub(r"\nORDER BY [^\n]+", "", sql)
