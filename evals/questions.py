"""Ask plain questions through the product, and count the right answers. See README.md beside this file.

python evals/questions.py [SET...] [--model M] [--json] [--failures]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sqlite3
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
from databases import DATABASES, build
from files import FILES, write_file, write_truth
from rich.console import Console
from rich.table import Table as Grid
from verdicts import (
    AnswerVerdict,
    Cited,
    GoldQuestion,
    ResultTable,
    judge,
    judge_schema,
    labels,
    read_questions,
    tally,
)

from longthread.errors import LongthreadError, SourceNotFound
from longthread.runs.analyst import Analyst
from longthread.settings import Settings
from longthread.tools.analysis.engines.files import FilesEngine
from longthread.tools.analysis.limits import Limits
from longthread.tools.uploads import Uploads
from longthread_demo.spaceflight import spaceflight_database

HERE = Path(__file__).resolve().parent
DATA = HERE.parents[1] / "shared" / "data"
SETS = ("chinook", "spaceflight", "unseen", "files")
DEMO = "demo"
AND = " + "
"""Between the names of files that are asked together."""
SQL_SECONDS = 20.0
MOST_ROWS = 100_000


@dataclass
class Outcome:
    """One question asked: what came back, and the verdict."""

    set: str
    question: GoldQuestion
    verdict: AnswerVerdict
    answer: str
    sql: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """One line of `--json`."""
        asked = {"id": self.question.id, "set": self.set, "kind": self.question.kind, "lang": self.question.lang}
        verdict = {"right": self.verdict.right, "refused": self.verdict.refused, "reason": self.verdict.reason}
        return asked | {"question": self.question.question, "answer": self.answer, "sql": self.sql} | verdict


async def ask(analyst: Analyst, question: str, *, source: str, thread: str | None, model: str) -> dict[str, Any]:
    """Ask through the product and return the run's final event. The one place that knows how."""
    try:
        handle = await analyst.ask(
            question, thread_id=thread, source=source, model=model, user_id=analyst.settings.user
        )
        return (await handle.wait()).to_json()
    except LongthreadError as error:
        return {"type": "failed", "error": {"type": error.code, "message": str(error)}, "thread_id": thread}


class Bench:
    """The databases and files of the questions, in a folder of their own."""

    def __init__(self, folder: Path, shared: Path) -> None:
        self.folder = folder
        self.shared = shared
        self._paths: dict[str, Path] = {}
        self._uploaded: dict[str, Path] = {}

    def path(self, db: str) -> Path:
        """The SQLite file of `db`, built where it is ours to build; of files that with what they mean. Raises
        SourceNotFound."""
        if db not in self._paths:
            self._paths[db] = self._make(db)
        return self._paths[db]

    def source(self, db: str) -> str:
        """What `--source` is given for `db`."""
        return DEMO if db == DEMO else str(self._uploaded.get(db) or self.path(db))

    async def upload(self, db: str, settings: Settings) -> None:
        """Make the files of `db` one source, as the page does with files that are dropped together."""
        if db in self._uploaded or not _is_of_files(db):
            return
        uploads = Uploads.of(settings)
        received = [await uploads.receive(name, _pieces(write_file(self.folder, name))) for name in db.split(AND)]
        kept = await uploads.keep(received)
        await uploads.settle(kept.upload)
        self._uploaded[db] = kept.upload.path

    def _make(self, db: str) -> Path:
        if db == DEMO:
            return spaceflight_database(self.folder)
        if db in DATABASES:
            return build(self.folder, db)
        if _is_of_files(db):
            return write_truth(self.folder)
        path = self.shared / db / f"{db}.sqlite"
        if not path.is_file():
            raise SourceNotFound(source=path)
        return path

    def rows(self, db: str, sql: str) -> ResultTable:
        """What `sql` returns on `db`. Raises sqlite3.Error where it fails or takes too long."""
        connection = sqlite3.connect(f"{self.path(db).as_uri()}?mode=ro", uri=True)
        until = time.monotonic() + SQL_SECONDS
        connection.set_progress_handler(lambda: time.monotonic() > until, 10_000)
        try:
            cursor = connection.execute(sql)
            columns = tuple(column[0] for column in cursor.description or ())
            return ResultTable(columns, tuple(cursor.fetchmany(MOST_ROWS)))
        finally:
            connection.close()

    def cited_rows(self, db: str, sql: str) -> ResultTable:
        """What a query of an answer returns when it is run again. Raises sqlite3.Error, duckdb.Error,
        LongthreadError."""
        if db not in self._uploaded:
            return self.rows(db, sql)
        path = self._uploaded[db]
        engine = FilesEngine(path, str(path), Limits())
        try:
            found = engine.connect().query(sql)
            rows = (tuple(float(cell) if isinstance(cell, Decimal) else cell for cell in row) for row in found)
            return ResultTable(tuple(found.columns), tuple(rows))
        finally:
            engine.close()

    def column_names(self, db: str) -> list[str]:
        """The names of all columns of `db`."""
        sql = "SELECT DISTINCT c.name FROM sqlite_master t, pragma_table_info(t.name) c WHERE t.type = 'table'"
        return [str(row[0]) for row in self.rows(db, sql).rows]


def _is_of_files(db: str) -> bool:
    """Whether `db` is files of ours, which are asked together."""
    return all(name in FILES for name in db.split(AND))


async def _pieces(path: Path) -> AsyncIterator[bytes]:
    yield await asyncio.to_thread(path.read_bytes)


def examine(bench: Bench, name: str, question: GoldQuestion, event: dict[str, Any], queries: dict[str, str]) -> Outcome:
    """Judge a run's final event; `queries` are those of the thread so far, by label."""
    answer = str(event.get("answer") or event.get("summary") or (event.get("error") or {}).get("message", ""))
    sql = [queries[label] for label in labels(answer) if label in queries]
    gold = [bench.rows(question.db, each) for each in question.sql]
    if event.get("type") != "finished":
        verdict = AnswerVerdict(False, f"the run ended {event.get('type')}")
    elif question.kind == "schema":
        tables = {row[0] for row in bench.rows(question.db, "SELECT name FROM sqlite_master").rows}
        about_tables = {row[0] for row in gold[0].rows} <= tables
        verdict = judge_schema(gold[0], [] if about_tables else bench.column_names(question.db), answer)
    else:
        verdict = judge(question, gold, answer, list(_cited(bench, question.db, sql)))
    return Outcome(name, question, verdict, answer, sql)


def _cited(bench: Bench, db: str, statements: Sequence[str]) -> Iterator[Cited]:
    for sql in statements:
        try:
            yield Cited(sql, bench.cited_rows(db, sql))
        except (sqlite3.Error, duckdb.Error, LongthreadError):
            continue  # a query that does not run is no evidence


async def run(
    analyst: Analyst, bench: Bench, name: str, questions: Sequence[GoldQuestion], model: str
) -> AsyncIterator[Outcome]:
    """Ask the questions of one set in their order, follow-ups on the thread of the question that they follow."""
    threads: dict[str, str | None] = {}
    queries: dict[str, dict[str, str]] = {}
    for question in questions:
        before = question.follows or ""
        await bench.upload(question.db, analyst.settings)
        source, thread = bench.source(question.db), threads.get(before)
        event = await ask(analyst, question.question, source=source, thread=thread, model=model)
        threads[question.id] = event.get("thread_id")
        known = {str(query["query"]): str(query["sql"]) for query in event.get("queries") or ()}
        queries[question.id] = queries.get(before, {}) | known
        yield examine(bench, name, question, event, queries[question.id])


def report(console: Console, total: dict[str, Any], failed: Sequence[Outcome]) -> None:
    """Print the counts as tables, and each failed question."""
    for title in ("set", "kind", "lang"):
        grid = Grid(title, "right", "refused", "wrong", "of")
        for key, count in total[f"by_{title}"].items():
            right, refused, asked = (count[name] for name in ("right", "refused", "questions"))
            grid.add_row(key, *map(str, (right, refused, asked - right - refused, asked)))
        console.print(grid)
    for outcome in failed:
        grade = "refused" if outcome.verdict.refused else "wrong"
        asked = f"{outcome.question.id}  {outcome.question.question}\n  {grade}: {outcome.verdict.reason}"
        console.print(asked, markup=False, highlight=False)
        console.print(f"  sql: {outcome.sql}\n  gold: {[*outcome.question.sql[:1]]}", markup=False, highlight=False)
        console.print(f"  answer: {outcome.answer[:600]}\n", markup=False, highlight=False)


async def ask_all(args: argparse.Namespace) -> tuple[list[Outcome], dict[str, str]]:
    """Ask the sets that the arguments name. Returns the outcomes, and why a set was skipped."""
    outcomes: list[Outcome] = []
    skipped: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), args.data.resolve())
        home = Path(folder) / "home"  # what lies beside the conversations is never a source
        settings = Settings.load(data_dir=home, database=home / "conversations.db")
        async with Analyst.open(settings) as analyst:
            for name in args.sets or SETS:
                path = Path(name) if name.endswith(".jsonl") else HERE / "questions" / f"{name}.jsonl"
                questions = read_questions(path.read_text("utf-8"))
                try:
                    async for outcome in run(analyst, bench, path.stem, questions, args.model):
                        outcomes.append(outcome)
                        if args.json:
                            sys.stdout.write(json.dumps(outcome.to_json(), ensure_ascii=False) + "\n")
                except SourceNotFound as error:
                    skipped[path.stem] = str(error)
                    sys.stderr.write(f"{path.stem} is skipped: {error}\n")
    return outcomes, skipped


def main() -> None:
    """Parse the arguments, ask, and print; the last line is JSON."""
    parser = argparse.ArgumentParser(description="Ask plain questions and count the right answers.")
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"{', '.join(SETS)}, or a file (default: all)")
    parser.add_argument("--model", default="demo", help="the model that is asked (default: demo)")
    parser.add_argument("--data", type=Path, default=DATA, help="the folder that holds chinook/")
    parser.add_argument("--json", action="store_true", help="print one JSON line for each question, no tables")
    parser.add_argument("--failures", action="store_true", help="print the questions that were not answered right")
    args = parser.parse_args()
    outcomes, skipped = asyncio.run(ask_all(args))
    total = tally((outcome.set, outcome.question, outcome.verdict) for outcome in outcomes)
    if not args.json:
        report(Console(), total, [outcome for outcome in outcomes if args.failures and not outcome.verdict.right])
    sys.stdout.write(json.dumps(total | ({"skipped": skipped} if skipped else {}), ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
