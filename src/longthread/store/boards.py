"""Boards: saved results as cards, each with its query and the rows that it last gave."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal

from longthread.errors import BoardFull, BoardNotFound, CardNotFound, InvalidInput
from longthread.model.ids import new_id
from longthread.store.driver import Row, Transaction, one
from longthread.store.log import lock as lock_thread
from longthread.store.log import now
from longthread.store.maintenance.jobs import Job
from longthread.store.rows import decoder, dump

ParameterKind = Literal["text", "number", "date"]
RefreshInterval = Literal["hour", "day", "week"]
SECONDS: Mapping[RefreshInterval, int] = {"hour": 3600, "day": 86_400, "week": 604_800}
LONGEST_WAIT = 3_600
"""No background job waits longer."""
MOST_BOARDS, MOST_CARDS = 100, 30
_LONGEST_TEXT = 1_000
"""Characters of a parameter's value."""
_WANTED: Mapping[ParameterKind, str] = {
    "number": "a number, a whole one of at most 64 bits",
    "text": f"a text of at most {_LONGEST_TEXT} characters",
    "date": "a day such as 2026-01-31",
}


@dataclass(frozen=True, slots=True)
class CardParameter:
    """A value in a query that is changed on the board: `{{name}}`. `value` holds where the board gives no other.
    `label` is what people read instead of the name."""

    name: str
    kind: ParameterKind
    value: str | int | float
    label: str = ""


@dataclass(frozen=True, slots=True)
class NewCard:
    """A result to save. `look` is how it is shown, as JSON of the page's; `result` the data of an observation."""

    title: str
    question: str
    thread_id: str
    entry_id: str | None
    source: str | None
    sql: str
    look: Mapping[str, Any]
    result: Mapping[str, Any]
    read_at: datetime


@dataclass(frozen=True, slots=True)
class BoardCard:
    """A saved result. `thread_id` is the conversation that it comes from, None if that is deleted. `revision` counts
    the changes of what is asked. `error` is that of the last refresh."""

    id: str
    title: str
    question: str
    thread_id: str | None
    entry_id: str | None
    source: str | None
    sql: str
    parameters: tuple[CardParameter, ...]
    look: Mapping[str, Any]
    result: Mapping[str, Any]
    read_at: datetime
    error: Mapping[str, Any] | None
    revision: int

    def values(self, given: Mapping[str, Any]) -> list[CardParameter]:
        """Return its parameters with the values that hold: a board's, where it gives one that fits."""
        return [
            replace(each, value=given[each.name]) if fits(each.kind, given.get(each.name)) else each
            for each in self.parameters
        ]

    def values_read(self, given: Mapping[str, Any]) -> list[CardParameter]:
        """Return its parameters with the values that its rows were read with; where one is missing, the value that
        holds."""
        return self.values({**given, **(self.result.get("values") or {})})


@dataclass(frozen=True, slots=True)
class Board:
    """A user's board. `given` are the values of parameters, by name."""

    id: str
    user_id: str
    title: str
    refresh_every: RefreshInterval | None
    refreshed_at: datetime | None
    """When the schedule was set, or last carried out."""
    given: Mapping[str, Any]
    created_at: datetime
    updated_at: datetime
    cards: int = 0
    """How many; in a list of boards."""

    @property
    def seconds_left(self) -> float:
        """How long its schedule still waits: no more where its time lies ahead, as of a clock that was set back."""
        if self.refresh_every is None or self.refreshed_at is None:
            return 0
        passed = (datetime.now(UTC) - self.refreshed_at).total_seconds()
        return max(0, SECONDS[self.refresh_every] - passed) if passed >= 0 else 0


@dataclass(frozen=True, slots=True)
class BoardChange:
    """What changes of a board; None leaves it. `order` are the ids of its cards; `refresh_every` empty: by hand."""

    title: str | None = None
    refresh_every: RefreshInterval | Literal[""] | None = None
    given: Mapping[str, Any] = field(default_factory=dict)
    order: Sequence[str] | None = None


async def create(tx: Transaction, title: str, *, user_id: str) -> Board:
    """Insert an empty board. Raises BoardFull: the user has too many."""
    if len(await of_user(tx, user_id)) >= MOST_BOARDS:
        raise BoardFull(what="boards", most=MOST_BOARDS)
    id_ = new_id()
    await tx.run("insert_board", id=id_, user_id=user_id, title=title, now=now())
    return await find(tx, id_, user_id=user_id)


async def of_user(tx: Transaction, user_id: str) -> list[Board]:
    """Return a user's boards, the first first."""
    return [_board(row) for row in await tx.fetch("select_boards", user_id=user_id)]


async def find(tx: Transaction, board_id: str, *, user_id: str | None) -> Board:
    """Return a board; without a user anybody's. Raises BoardNotFound: there is none, or it is another user's."""
    row = await one(tx, "select_board", id=board_id, user_id=user_id)
    if row is None:
        raise BoardNotFound(board=board_id)
    return _board(row)


async def lock(tx: Transaction, board_id: str, *, user_id: str) -> Board:
    """Lock a board until the transaction ends, and return it. Raises BoardNotFound."""
    await tx.run("touch_board", id=board_id, user_id=user_id, now=now())
    return await find(tx, board_id, user_id=user_id)


async def change(tx: Transaction, board: Board, wanted: BoardChange) -> None:
    """Change a board that is locked. Raises InvalidInput: a parameter is none of its cards', a value is of another
    kind, or the order does not name each card once."""
    cards = await cards_of(tx, board.id)
    known = {each.name: each for card in cards for each in card.parameters}
    if wanted.given:
        for name, value in wanted.given.items():
            if name not in known:
                raise InvalidInput(reason=f"No card of this board has a parameter {name}.")
            check_value(name, known[name].kind, value)
        await tx.run("give_cards", board_id=board.id)
    if wanted.order is not None:
        if sorted(wanted.order) != sorted(card.id for card in cards):
            raise InvalidInput(reason="An order names each card of the board once. Load the board again.")
        rows = [{"id": id_, "board_id": board.id, "place": place} for place, id_ in enumerate(wanted.order, 1)]
        await tx.run_all("place_card", rows)
    every = board.refresh_every if wanted.refresh_every is None else wanted.refresh_every or None
    since = board.refreshed_at.isoformat(timespec="microseconds") if board.refreshed_at else None
    await tx.run(
        "update_board",
        id=board.id,
        title=wanted.title or board.title,
        refresh_every=every,
        refreshed_at=since if every == board.refresh_every else now(),
        given=dump({name: value for name, value in {**board.given, **wanted.given}.items() if name in known}),
    )
    if every is not None and board.refresh_every is None:
        await _job(board.id).call_off(tx)
        await _job(board.id).note(tx, min(SECONDS[every], LONGEST_WAIT))


async def delete(tx: Transaction, board_id: str, *, user_id: str) -> None:
    """Delete a board with its cards, links and schedule. Raises BoardNotFound."""
    if not await tx.run("delete_board", id=board_id, user_id=user_id):
        raise BoardNotFound(board=board_id)
    await _job(board_id).call_off(tx)


async def note_schedules(tx: Transaction) -> None:
    """Note the jobs of schedules that have none: a copy takes no jobs along."""
    for row in await tx.fetch("select_boards_without_job", kind="board"):
        await _job(row["id"]).note(tx)


async def keep_schedule(tx: Transaction, board: Board, worker: str, *, refreshed: bool) -> None:
    """Let a worker's job of a board wait for its next refresh, at most an hour: then it looks again. `refreshed`: its
    cards were refreshed now."""
    if refreshed:
        await tx.run("refresh_board", id=board.id, now=now())
    wait = SECONDS[board.refresh_every or "hour"] if refreshed else board.seconds_left
    await _job(board.id).repeat(tx, worker, min(wait, LONGEST_WAIT))


def _job(board_id: str) -> Job:
    return Job("board", board_id)


async def cards_of(tx: Transaction, board_id: str) -> list[BoardCard]:
    """Return a board's cards in their order."""
    return [_card(row) for row in await tx.fetch("select_cards", board_id=board_id, id=None)]


async def find_card(tx: Transaction, board_id: str, card_id: str) -> BoardCard:
    """Return a card of a board. Raises CardNotFound."""
    row = await one(tx, "select_cards", board_id=board_id, id=card_id)
    if row is None:
        raise CardNotFound(card=card_id)
    return _card(row)


async def add_card(tx: Transaction, board: Board, card: NewCard) -> BoardCard:
    """Add a card after the others to a board that is locked, and lock the conversation that it comes from.

    Raises:
        BoardFull: the board has too many cards.
        ThreadNotFound: the conversation is gone.
    """
    await lock_thread(tx, card.thread_id)
    if len(await cards_of(tx, board.id)) >= MOST_CARDS:
        raise BoardFull(what="cards on a board", most=MOST_CARDS)
    id_ = new_id()
    await tx.run(
        "insert_card",
        id=id_,
        board_id=board.id,
        title=card.title,
        question=card.question,
        asked_in=card.thread_id,
        entry_id=card.entry_id,
        source=card.source,
        sql=card.sql,
        look=dump(card.look),
        result=dump(card.result),
        read_at=card.read_at.isoformat(timespec="microseconds"),
    )
    return await find_card(tx, board.id, id_)


async def change_card(tx: Transaction, board_id: str, card: BoardCard, *, title: str, look: Mapping[str, Any]) -> None:
    """Change how a card is shown."""
    await tx.run("update_card", id=card.id, board_id=board_id, title=title, look=dump(look))


async def ask_anew(
    tx: Transaction, board: Board, card_id: str, sql: str, parameters: Sequence[CardParameter]
) -> BoardCard:
    """Change what a card of a board that is locked asks; the values are the board's from now on.

    Raises:
        CardNotFound: the board has no such card.
        InvalidInput: another card's parameter of the same name is of another kind, or a value is of another kind than
            its parameter.
    """
    others = {
        each.name: each for card in await cards_of(tx, board.id) if card.id != card_id for each in card.parameters
    }
    for each in parameters:
        check_value(each.name, each.kind, each.value)
        if each.name in others and others[each.name].kind != each.kind:
            kind = others[each.name].kind
            raise InvalidInput(reason=f"{each.name} is a {kind} on another card of this board. Use another name.")
    told = dump([asdict(each) for each in parameters])
    if not await tx.run("ask_card_anew", id=card_id, board_id=board.id, sql=sql, parameters=told):
        raise CardNotFound(card=card_id)
    given = {each.name: each.value for each in parameters}
    if given.items() - board.given.items():
        await change(tx, board, BoardChange(given=given))
    return await find_card(tx, board.id, card_id)


async def save_result(tx: Transaction, card: BoardCard, result: Mapping[str, Any]) -> None:
    """Store what a card's query gave, unless something else is asked meanwhile."""
    await tx.run("save_card_result", id=card.id, revision=card.revision, result=dump(result), read_at=now())


async def save_error(tx: Transaction, card: BoardCard, error: Mapping[str, Any]) -> None:
    """Store why a card could not be refreshed, unless something else is asked meanwhile. Its rows stay."""
    await tx.run("save_card_error", id=card.id, revision=card.revision, error=dump(error))


async def delete_card(tx: Transaction, board_id: str, card_id: str) -> None:
    """Delete a card. Raises CardNotFound."""
    if not await tx.run("delete_card", id=card_id, board_id=board_id):
        raise CardNotFound(card=card_id)


async def count_of_thread(tx: Transaction, thread_id: str) -> Counter[str]:
    """Count the cards that come from a thread, and the links that may show them, by table."""
    [row] = await tx.fetch("count_cards_of_thread", thread_id=thread_id)
    return Counter({name: int(rows) for name, rows in row.items()})


def fits(kind: ParameterKind, value: object) -> bool:
    """Return whether a value is of a parameter's kind."""
    if kind == "number":
        if isinstance(value, int) and not isinstance(value, bool):
            return -(2**63) <= value < 2**63
        return isinstance(value, float) and math.isfinite(value)
    return isinstance(value, str) and len(value) <= _LONGEST_TEXT and (kind == "text" or _is_date(value))


def check_value(name: str, kind: ParameterKind, value: object) -> None:
    """Raise InvalidInput for a value that is not of a parameter's kind."""
    if not fits(kind, value):
        raise InvalidInput(reason=f"{name} wants {_WANTED[kind]}.")


def _is_date(text: str) -> bool:
    try:
        return len(text) == len("2026-01-31") and bool(datetime.strptime(text, "%Y-%m-%d"))
    except ValueError:
        return False


@decoder
def _board(row: Row) -> Board:
    return Board(
        id=row["id"],
        user_id=row["user_id"],
        title=row["title"],
        refresh_every=row["refresh_every"],
        refreshed_at=datetime.fromisoformat(row["refreshed_at"]) if row["refreshed_at"] else None,
        given=json.loads(row["given"]),
        created_at=datetime.fromisoformat(row["created_at"]),
        updated_at=datetime.fromisoformat(row["updated_at"]),
        cards=int(row.get("cards") or 0),
    )


@decoder
def _card(row: Row) -> BoardCard:
    return BoardCard(
        id=row["id"],
        title=row["title"],
        question=row["question"],
        thread_id=row["thread_id"],
        entry_id=row["entry_id"],
        source=row["source"],
        sql=row["sql"],
        parameters=tuple(CardParameter(**each) for each in json.loads(row["parameters"])),
        look=json.loads(row["look"]),
        result=json.loads(row["result"]),
        read_at=datetime.fromisoformat(row["read_at"]),
        error=json.loads(row["error"]) if row["error"] else None,
        revision=int(row["revision"]),
    )
