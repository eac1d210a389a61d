"""Judges SQL statements in the guard alone, or on a real source."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from longthread.errors import SqlRefused
from longthread.store.transfer.threads import TransferProgress
from longthread.tools.analysis.guard import Guard
from longthread.tools.analysis.limits import GRACE, Limits
from longthread.tools.analysis.open import open_source
from longthread.tools.analysis.source import Source
from longthread.tools.analysis.toolbox import analysis_tools
from longthread.tools.tool import Tool
from longthread_evals.statements import JudgedStatement

SqlOutcome = Literal["refused", "allowed", "bounded"]
GOLD_DIALECT = "sqlite"
"""The dialect of gold questions without a source."""
_STOPPED = frozenset({"sql_timeout", "sql_too_large", "source_crashed"})
_REFUSED = frozenset({"sql_refused", "unknown_table", "unknown_column"})
_SLACK = 3.0
"""Seconds over limit and grace that a machine may need to stop a statement."""


@dataclass(frozen=True)
class SqlVerdict:
    """The verdict on one statement. `allowed`: the guard let it through, and it finished if it was run."""

    statement: JudgedStatement
    dialect: str
    outcome: SqlOutcome
    reason: str = ""
    late: bool = False
    """Whether it still ran after its limits should have stopped it."""

    @property
    def has_failed(self) -> bool:
        """Whether that is not what its `must` asks for."""
        must = self.statement.must
        if self.late or (must == "refuse" and self.outcome != "refused"):
            return True
        return must == "allow" and self.outcome == "refused"

    def to_json(self) -> dict[str, Any]:
        told = {"dialect": self.dialect, "sql": self.statement.sql, "must": self.statement.must}
        return told | {"outcome": self.outcome, "reason": self.reason}


def summary(verdicts: Sequence[SqlVerdict]) -> dict[str, Any]:
    """Count the verdicts, each once; `failed` lists the statements that did not meet their `must`."""
    counts = {name: sum(one.outcome == name for one in verdicts) for name in ("refused", "allowed", "bounded")}
    return {"statements": len(verdicts)} | counts | {"failed": [one.to_json() for one in verdicts if one.has_failed]}


async def judge(
    statements: Sequence[JudgedStatement],
    *,
    source: str | None = None,
    seconds: float = 5.0,
    progress: TransferProgress,
) -> list[SqlVerdict]:
    """Judge each statement in the guard and, with a source of its dialect, by running it.

    `source` may be a folder with a database `NAME.sqlite` for each `db` of gold questions. A statement that must be
    refused and was let through is not run. Raises SourceError when a source cannot be opened.
    """
    guards: dict[str, Guard] = {}
    verdicts = []
    async with AsyncExitStack() as stack:
        opened = _Opened(source, replace(Limits(), seconds=seconds), stack)
        for done, statement in enumerate(statements):
            progress(done, len(statements), "judging")
            asked = await opened.of(statement)
            dialect = statement.dialect or (asked[0].dialect if asked else GOLD_DIALECT)
            verdict = _judge_statement(statement, dialect, guards.setdefault(dialect, Guard(dialect)), asked)
            if asked and asked[0].dialect == dialect and verdict.outcome == "allowed" and statement.must != "refuse":
                verdict = await _run(verdict, asked[1], seconds)
            verdicts.append(verdict)
    return verdicts


def _judge_statement(
    statement: JudgedStatement, dialect: str, guard: Guard, asked: tuple[Source, Tool] | None
) -> SqlVerdict:
    functions = asked[0].functions if asked else ()
    try:
        guard.check(statement.sql, functions=functions)
    except SqlRefused as error:
        return SqlVerdict(statement, dialect, "refused", str(error))
    return SqlVerdict(statement, dialect, "allowed")


async def _run(verdict: SqlVerdict, run_sql: Tool, seconds: float) -> SqlVerdict:
    started = time.monotonic()
    observation = await run_sql.call({"sql": verdict.statement.sql})
    late = time.monotonic() - started > seconds + GRACE + _SLACK
    if observation["ok"]:
        stopped = [note for note in observation["data"]["notes"] if "stopped" in note]
        return replace(verdict, outcome="bounded" if stopped else "allowed", reason=" ".join(stopped), late=late)
    error = observation["error"]
    outcome: SqlOutcome = (
        "bounded" if error["type"] in _STOPPED else "refused" if error["type"] in _REFUSED else verdict.outcome
    )
    return replace(verdict, outcome=outcome, reason=error["message"], late=late)


class _Opened:
    def __init__(self, source: str | None, limits: Limits, stack: AsyncExitStack) -> None:
        self._source = source
        self._limits = limits
        self._stack = stack
        self._known: dict[str, tuple[Source, Tool]] = {}

    async def of(self, statement: JudgedStatement) -> tuple[Source, Tool] | None:
        """Return the statement's source and its tool `run_sql`; None without a source."""
        if self._source is None:
            return None
        spec = self._spec(self._source, statement.database)
        if spec not in self._known:
            source = await self._stack.enter_async_context(await open_source(spec, limits=self._limits))
            tools = {tool.name: tool for tool in analysis_tools(source)}
            self._known[spec] = (source, tools["run_sql"])
        return self._known[spec]

    @staticmethod
    def _spec(source: str, database: str | None) -> str:
        file = Path(source) / f"{database}.sqlite"
        return str(file) if database and file.is_file() else source
