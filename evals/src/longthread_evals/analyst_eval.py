"""The eval of the analyst, and of the plain prompt for comparison: questions with gold SQL, asked through the product.

A question is *right* if its last result has the gold rows, *wrong* if it has others, *refused* if the answer came
without a query, *broken* if the run failed, paused, or had no result.
"""

from __future__ import annotations

import asyncio
import json
import re
import statistics
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from longthread.errors import LongthreadError, ModelNotUsable
from longthread.llm.chat import CallOptions, ChatModel, reply_of
from longthread.llm.failures import (
    AuthenticationFailed,
    BadRequest,
    ConnectionBroken,
    Overloaded,
    ProviderError,
    RateLimited,
    ServerFailed,
    StreamTruncated,
    TimedOut,
)
from longthread.llm.models import failure_reason
from longthread.messages.message import Message
from longthread.model.catalog import QUERIES
from longthread.model.run import Protocol, Step
from longthread.runs.analyst import Analyst
from longthread.store import runs
from longthread.tools.analysis.open import open_source
from longthread.tools.analysis.schema import Schema, Table
from longthread.tools.analysis.source import Source
from longthread_evals.gold_questions import Cells, SqlQuestion, have_same_rows

Verdict = Literal["right", "wrong", "refused", "broken"]
VERDICTS: tuple[Verdict, ...] = ("right", "wrong", "refused", "broken")
_MOST_ROWS = 10_000
_GOLD_SECONDS = 60.0
_FENCE = re.compile(r"```(?:sql)?\s*(.*?)```", re.S | re.I)
_PLAIN = """\
You write one {dialect} SELECT that answers the question. Reply with the SQL in a ```sql fence and nothing else.

Schema:
{schema}"""
_RETRY = "That failed: {reason} Send the corrected SQL."
_REPLY_TOKENS = 400
_OUTAGES = frozenset(
    each.__name__
    for each in (
        RateLimited,
        ServerFailed,
        Overloaded,
        ConnectionBroken,
        TimedOut,
        StreamTruncated,
        AuthenticationFailed,
    )
)
"""Causes of a failed run that say nothing of the model's replies."""
_GOES_ON = "What --results wrote is kept: give the command again to go on."


@dataclass(frozen=True, slots=True)
class AnalystOutcome:
    """One question asked: its verdict, what it cost, and that of the plain prompt (None: not asked)."""

    database: str
    question: str
    verdict: Verdict
    sql: str
    answer: str
    calls: int
    prompt_tokens: int
    cached_tokens: int
    seconds: float
    baseline: Verdict | None = None
    baseline_tokens: int = 0
    baseline_sql: str = ""
    model: str = ""
    protocol: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(slots=True)
class AnalystEval:
    """Asks questions with one model. `baseline` asks the plain prompt too, with the same model."""

    analyst: Analyst
    model: str
    plain: ChatModel | None = None
    protocol: Protocol = "auto"
    seen: Mapping[tuple[str, ...], AnalystOutcome] = field(default_factory=dict)
    """Outcomes of earlier evals, as `read_outcomes` returns them."""
    taken: dict[tuple[str, str], AnalystOutcome] = field(init=False)
    """Those of them that count in this eval, by database and question: of its model and protocol, and with a baseline
    if it asks one."""

    def __post_init__(self) -> None:
        own = [each for each in self.seen.values() if (each.model, each.protocol) == (self.model, self.protocol)]
        self.taken = {
            (each.database, each.question): each for each in own if self.plain is None or each.baseline is not None
        }

    async def outcomes(self, threads: Sequence[Sequence[tuple[SqlQuestion, str]]]) -> AsyncIterator[AnalystOutcome]:
        """Ask each thread's questions, given with their sources, and yield an outcome each. A thread that was asked
        whole before is not asked again. Raises ModelNotUsable: the model's server failed, which no verdict tells."""
        for thread in threads:
            earlier = [self.taken.get((question.database, question.text)) for question, _ in thread]
            if all(earlier):
                for outcome in earlier:
                    assert outcome is not None
                    yield outcome
                continue
            async for outcome in self._thread(thread):
                yield outcome

    async def _thread(self, thread: Sequence[tuple[SqlQuestion, str]]) -> AsyncIterator[AnalystOutcome]:
        thread_id: str | None = None
        said: list[Message] = []
        for question, spec in thread:
            async with await open_source(spec) as source:
                gold = [rows for sql in question.gold if (rows := await _rows(source, sql)) is not None]
                for earlier in question.before:
                    thread_id, _ = await self._ask(replace(question, text=earlier), spec, source, gold, thread_id)
                thread_id, outcome = await self._ask(question, spec, source, gold, thread_id)
                if self.plain is not None:
                    try:
                        plain = await _ask_plainly(self.plain, source, question, gold, said)
                    except ProviderError as error:
                        reason = f"{failure_reason(error, self.analyst.settings)} {_GOES_ON}"
                        raise ModelNotUsable(model=self.model, reason=reason) from error
                    outcome = AnalystOutcome(**{**outcome.to_json(), **plain})
            yield replace(outcome, model=self.model, protocol=self.protocol)

    async def _ask(
        self,
        question: SqlQuestion,
        spec: str,
        source: Source,
        gold: Sequence[Sequence[Cells]],
        thread_id: str | None,
    ) -> tuple[str | None, AnalystOutcome]:
        started, user = time.monotonic(), self.analyst.settings.user
        try:
            handle = await self.analyst.ask(
                question.full_text,
                user_id=user,
                source=spec,
                model=self.model,
                protocol=self.protocol,
                thread_id=thread_id,
            )
            final = await handle.wait()
        except LongthreadError as error:
            seconds = round(time.monotonic() - started, 2)
            return thread_id, AnalystOutcome(
                question.database, question.text, "broken", "", str(error), 0, 0, 0, seconds
            )
        seconds = round(time.monotonic() - started, 2)
        async with self.analyst.store.reading() as tx:
            run = await runs.find_run(tx, handle.thread_id, handle.run.id)
            steps = await runs.steps_of(tx, run) if run is not None else []
        queries = [step for step in steps if step.action in QUERIES and step.kind == "tool"]
        results = [step.observation for step in queries if step.observation is not None and step.observation.get("ok")]
        sql = str(results[-1]["data"]["sql"]) if results else ""
        failure = final.data.get("error") or {}
        if failure.get("cause") in _OUTAGES:
            raise ModelNotUsable(model=self.model, reason=f"{failure['params']['reason']} {_GOES_ON}")
        verdict = await _verdict(source, gold, sql, ended=final.type == "finished", asked=bool(queries))
        answer = str(final.data.get("answer") or final.data.get("summary") or failure.get("message") or "")
        calls = [step for step in steps if step.kind == "model"]
        return handle.thread_id, AnalystOutcome(
            question.database,
            question.text,
            verdict,
            sql,
            answer,
            len(calls),
            _total(calls, "input_tokens"),
            _total(calls, "cached_tokens"),
            seconds,
        )


async def _verdict(source: Source, gold: Sequence[Sequence[Cells]], sql: str, *, ended: bool, asked: bool) -> Verdict:
    if not sql:
        return "refused" if ended and not asked else "broken"
    rows = await _rows(source, sql)
    if rows is None:
        return "broken"
    return "right" if any(have_same_rows(each, rows) for each in gold) else "wrong"


def _total(calls: Sequence[Step], name: str) -> int:
    return sum(call.usage.get(name, 0) for call in calls)


async def _rows(source: Source, sql: str) -> list[Cells] | None:
    """Return the rows of a statement; None if it is refused or fails."""
    schema = await source.schema()
    try:
        _, run = await asyncio.to_thread(source.prepare, sql, schema)
        return await source.work(lambda connection: list(islice(connection.query(run), _MOST_ROWS)), _GOLD_SECONDS)
    except LongthreadError:
        return None


async def _ask_plainly(
    model: ChatModel, source: Source, question: SqlQuestion, gold: Sequence[Sequence[Cells]], said: list[Message]
) -> dict[str, Any]:
    """Ask the plain prompt: the schema and the question give one SQL, with one retry. `said` is the conversation so
    far, which this adds to. Raises ProviderError: the server failed."""
    system = _PLAIN.format(dialect=source.dialect, schema=plain_schema(await source.schema()))
    earlier = "".join(f"(Asked before: {each})\n" for each in question.before)
    said.append(Message("user", f"{earlier}{question.full_text}"))
    verdict, tokens, sql = "broken", 0, ""
    for _ in range(2):
        options = CallOptions(max_tokens=_REPLY_TOKENS)
        try:
            reply = await reply_of(model, [Message("system", system), *said], options=options)
        except BadRequest:
            break
        tokens += (reply.usage_metadata or {}).get("input_tokens", 0)
        text = str(reply.text)
        fence = _FENCE.search(text)
        sql = (fence[1] if fence else text).strip()
        said.append(Message("assistant", text))
        reason = await _failure(source, sql)
        if reason is None:
            verdict = await _verdict(source, gold, sql, ended=True, asked=True)
            break
        said.append(Message("user", _RETRY.format(reason=reason)))
    return {"baseline": verdict, "baseline_tokens": tokens, "baseline_sql": sql}


async def _failure(source: Source, sql: str) -> str | None:
    """Return the database's own words for why a statement does not run, as a plain prompt gets them; None if it
    runs."""
    schema = await source.schema()
    try:
        judged = await asyncio.to_thread(source.judge, sql, schema)
        run = source.restrict_statement(judged.text)
        await source.work(lambda connection: list(islice(connection.query(run), 1)), _GOLD_SECONDS)
    except LongthreadError as error:
        return str(error)
    return None


def plain_schema(schema: Schema) -> str:
    """Return a schema as CREATE statements, as people paste it into a prompt."""
    return "\n".join(_create(table) for table in schema.tables.values())


def _create(table: Table) -> str:
    parts = [f"{column.name} {column.type}".strip() for column in table.columns]
    parts += [f"PRIMARY KEY ({', '.join(table.primary_key)})"] if table.primary_key else []
    parts += [
        f"FOREIGN KEY ({', '.join(key.columns)}) REFERENCES {key.table} ({', '.join(key.references)})"
        for key in table.foreign_keys
    ]
    return f"CREATE {table.kind.upper()} {table.sql} ({', '.join(parts)})"


def tally(outcomes: Sequence[AnalystOutcome]) -> dict[str, Any]:
    """Return the counts of an eval: its last line. Tokens are sums; `baseline_right` is None if it was not asked."""
    count = len(outcomes)
    verdicts: dict[str, Any] = {verdict: sum(each.verdict == verdict for each in outcomes) for verdict in VERDICTS}
    plain = [each for each in outcomes if each.baseline is not None]
    return {
        "questions": count,
        **verdicts,
        "calls_per_question": round(sum(each.calls for each in outcomes) / max(1, count), 2),
        "prompt_tokens": sum(each.prompt_tokens for each in outcomes),
        "cached_tokens": sum(each.cached_tokens for each in outcomes),
        "seconds_p50": round(statistics.median([each.seconds for each in outcomes]), 2) if outcomes else None,
        "baseline_right": sum(each.baseline == "right" for each in plain) if plain else None,
        "baseline_prompt_tokens": sum(each.baseline_tokens for each in plain) if plain else None,
    }


def read_outcomes(path: Path) -> dict[tuple[str, ...], AnalystOutcome]:
    """Return the outcomes that earlier evals wrote, by model, protocol, database and question. A last line that was
    cut off by a kill is passed over."""
    outcomes: dict[tuple[str, ...], AnalystOutcome] = {}
    if path.is_file():
        for line in path.read_text("utf-8").splitlines():
            try:
                outcome = AnalystOutcome(**json.loads(line))
            except (ValueError, TypeError):
                continue
            outcomes[outcome.model, outcome.protocol, outcome.database, outcome.question] = outcome
    return outcomes
