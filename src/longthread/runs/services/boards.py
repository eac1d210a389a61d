"""Boards: results that are saved, and asked of their sources again."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC
from typing import Any, BinaryIO

from longthread.access.grants import GrantedRights
from longthread.errors import (
    BoardNotFound,
    InvalidInput,
    LongthreadError,
    NotSavable,
    StoreError,
    ToolInvalid,
)
from longthread.runs.rights import AskerRights
from longthread.runs.services.results import FileRequest, KeptResult, Results, write_file
from longthread.runs.services.sources import Sources
from longthread.runs.shared import RunServices
from longthread.store import boards
from longthread.store.boards import Board, BoardCard, CardParameter, NewCard
from longthread.tools.analysis.column_format import ColumnFormat, format_of_json
from longthread.tools.analysis.engine import SourceConnection
from longthread.tools.analysis.result import is_whole
from longthread.tools.analysis.source import Source
from longthread.tools.analysis.toolbox import run_query
from longthread.tools.arguments import names_in
from longthread.tools.types.query import BoundStatement, compile_template

KEPT_ROWS, KEPT_BYTES = 1_000, 128_000
"""Rows that a card keeps, and bytes of their JSON."""
_LONGEST_TITLE = 200


@dataclass(frozen=True, slots=True)
class SavedLook:
    """What a card is called, by default as its question, and how it is shown: the page's own JSON."""

    title: str | None
    look: Mapping[str, Any]


class Boards:
    """Saves results to boards and refreshes them: through the guard, by the rules of their sources that hold now, with
    the rights of the board's user. No model is asked."""

    def __init__(self, services: RunServices, results: Results, sources: Sources, rights: AskerRights) -> None:
        self._rights = rights
        self._store = services.store
        self._worker = services.worker
        self._results = results
        self._sources = sources

    async def save(
        self,
        board_id: str,
        thread_id: str,
        index: int,
        shown: SavedLook,
        *,
        user_id: str,
        of_thread: str | None = None,
        rights: GrantedRights | None = None,
    ) -> BoardCard:
        """Save the result of a step. A result that the step does not keep whole is read again, if its source answers.
        `of_thread` is the user of the thread, where that is not the board's: in a project.

        Raises:
            NotSavable: the query cannot be run again.
            EntryNotFound: the step has no result with rows.
            BoardFull, BoardNotFound, ThreadNotFound: or they are another user's.
        """
        kept = await self._results.find_kept(thread_id, index, of_thread or user_id)
        if not kept.can_run:
            raise NotSavable(step=index)
        async with self._store.writing() as tx:
            board = await boards.lock(tx, board_id, user_id=user_id)
            card = await boards.add_card(tx, board, _card_of(kept, shown))
        return card if kept.whole else await self.refresh(board_id, card.id, user_id=user_id, rights=rights)

    async def refresh(
        self, board_id: str, card_id: str, *, user_id: str, rights: GrantedRights | None = None
    ) -> BoardCard:
        """Run a card's query again, and return the card. A query that fails leaves its rows, and the card says why.

        Raises:
            BoardNotFound, CardNotFound: or they are another user's.
        """
        async with self._store.reading() as tx:
            board = await boards.find(tx, board_id, user_id=user_id)
            card = await boards.find_card(tx, board_id, card_id)
        await self._refresh(board, card, rights)
        async with self._store.reading() as tx:
            return await boards.find_card(tx, board_id, card_id)

    async def ask_anew(
        self,
        board_id: str,
        card_id: str,
        sql: str,
        parameters: Sequence[CardParameter],
        *,
        user_id: str,
        rights: GrantedRights | None = None,
    ) -> BoardCard:
        """Run another query in the place of a card's, and keep it with its rows.

        Raises:
            SourceError, SourceMissing: it is refused or fails. Nothing is written.
            InvalidInput: its parameters are not the ones that stand in it.
            BoardNotFound, CardNotFound: or they are another user's.
        """
        _check_places(sql, parameters)
        async with self._store.reading() as tx:
            board = await boards.find(tx, board_id, user_id=user_id)
            card = await boards.find_card(tx, board_id, card_id)
        given = {**board.given, **{each.name: each.value for each in parameters}}
        wanted = replace(card, sql=sql, parameters=tuple(parameters))
        result = await self._read(replace(board, given=given), wanted, rights)
        async with self._store.writing() as tx:
            board = await boards.lock(tx, board_id, user_id=user_id)
            card = await boards.ask_anew(tx, board, card_id, sql, parameters)
            await boards.save_result(tx, card, result)
            return await boards.find_card(tx, board_id, card_id)

    async def write(
        self,
        board_id: str,
        card_id: str,
        to: BinaryIO,
        wanted: FileRequest,
        *,
        user_id: str,
        rights: GrantedRights | None = None,
    ) -> BoardCard:
        """Write all rows of a card to a file, and return the card. What it does not keep is read from its source again,
        with the values that its rows have.

        Raises:
            ResultTooLong: a sheet cannot hold the rows.
            SourceError, SourceMissing: the query cannot be run again.
            BoardNotFound, CardNotFound: or they are another user's.
        """
        async with self._store.reading() as tx:
            board = await boards.find(tx, board_id, user_id=user_id)
            card = await boards.find_card(tx, board_id, card_id)
        data = card.result
        told = formats_of(card)
        if is_whole(data):
            await asyncio.to_thread(write_file, wanted, told, data["columns"], data["rows"], to)
            return card
        async with await self._open_source(board, card, rights) as source:
            statement = await _bind_card(source, card, card.values_read(board.given))
            _, sql = await asyncio.to_thread(source.prepare, statement.shown, await source.schema(), statement.run)

            def work(connection: SourceConnection) -> None:
                rows = connection.query(sql, statement.values)
                try:
                    write_file(wanted, told, rows.columns, rows, to, rows.binary)
                finally:
                    rows.close()

            await source.work(work)
        return card

    async def refresh_if_due(self, board_id: str) -> None:
        """Carry out a board's schedule, as the job that this process has claimed: refresh its cards if it is time, and
        let the job wait for the next look. A board that has no schedule any more ends it."""
        async with self._store.reading() as tx:
            try:
                board = await boards.find(tx, board_id, user_id=None)
            except BoardNotFound:
                return
            cards = await boards.cards_of(tx, board_id)
        if board.refresh_every is None:
            return
        is_due = board.seconds_left <= 0
        for card in cards if is_due else ():
            await self._refresh(board, card)
        owner = await self._worker.id()
        async with self._store.writing() as tx:
            await boards.keep_schedule(tx, board, owner, refreshed=is_due)

    async def _refresh(self, board: Board, card: BoardCard, rights: GrantedRights | None = None) -> None:
        """Read a card's rows, and store them or why they could not be read. Raises StoreError."""
        try:
            result = await self._read(board, card, rights)
        except StoreError:
            raise
        except LongthreadError as error:
            async with self._store.writing() as tx:
                await boards.save_error(tx, card, error.described())
            return
        async with self._store.writing() as tx:
            await boards.save_result(tx, card, result)

    async def _read(self, board: Board, card: BoardCard, rights: GrantedRights | None) -> Mapping[str, Any]:
        async with await self._open_source(board, card, rights) as source:
            limits = replace(source.limits, rows=KEPT_ROWS, bytes=KEPT_BYTES)
            parameters = card.values(board.given)
            statement = await _bind_card(source, card, parameters)
            bound = (statement.run, statement.values) if parameters else None
            result = await run_query(source, statement.shown, bound=bound, limits=limits)
        return {**result, "values": {each.name: each.value for each in parameters}}

    async def _open_source(self, board: Board, card: BoardCard, rights: GrantedRights | None) -> Source:
        """Open a card's source for the board's user, for the caller to close. Without `rights`, as for a schedule,
        those of that user hold. Raises also AccessEnded, NotGranted."""
        if rights is None:
            rights = await self._rights.of_user(board.user_id)
        if card.source:
            return await self._sources.open_again(card.source, user_id=board.user_id, rights=rights)
        return await self._sources.open(None, None, user_id=board.user_id, rights=rights)


def formats_of(card: BoardCard) -> dict[str, ColumnFormat]:
    """Return the formats of a card's columns: the chosen ones, else those of its source."""
    told = {**(card.result.get("formats") or {}), **(card.look.get("formats") or {})}
    found: dict[str, ColumnFormat] = {}
    for name, each in told.items():
        with suppress(InvalidInput):
            found[name] = format_of_json(each)
    return found


def _card_of(kept: KeptResult, shown: SavedLook) -> NewCard:
    step, run = kept.step, kept.run
    return NewCard(
        title=shown.title or (" ".join(run.question.split()) or kept.sql)[:_LONGEST_TITLE],
        question=run.question,
        thread_id=kept.thread.id,
        entry_id=step.entry_id,
        source=run.source,
        sql=kept.sql,
        look=shown.look,
        result={name: value for name, value in kept.data.items() if name != "query"},
        read_at=step.started_at.astimezone(UTC),
    )


async def _bind_card(source: Source, card: BoardCard, parameters: Sequence[CardParameter]) -> BoundStatement:
    """Return a card's statement with values bound. Raises InvalidInput: its parameters are not the ones that stand in
    it."""
    if not parameters:
        return BoundStatement(card.sql, [], card.sql)
    values = {each.name: each.value for each in parameters}
    properties = {name: {"type": _type_of(value)} for name, value in values.items()}
    try:
        template = await asyncio.to_thread(compile_template, card.sql, properties, source.dialect)
    except ToolInvalid as error:
        problem = error.problem.removeprefix("in `sql_template`, ")
        raise InvalidInput(reason=f"The query's parameters cannot be used: {problem}") from error
    return template.statement(values)


def _check_places(sql: str, parameters: Sequence[CardParameter]) -> None:
    """Raise InvalidInput unless the parameters are the ones that stand in a query."""
    places, names = names_in(sql), [each.name for each in parameters]
    for name in places:
        if name not in names:
            raise InvalidInput(reason=f"The query has a place {{{{{name}}}}}. Say what kind of value it is.")
    for each in parameters:
        if each.name not in places or names.count(each.name) > 1:
            raise InvalidInput(
                reason=f"The parameter {each.name} is no {{{{{each.name}}}}} of the query, or is there twice."
            )
        boards.check_value(each.name, each.kind, each.value)


def _type_of(value: object) -> str:
    if isinstance(value, str):
        return "string"
    return "integer" if isinstance(value, int) else "number"
