"""The answers about boards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from typing_extensions import TypedDict

from longthread.server.answers import JsonObject, Timestamp
from longthread.store.boards.boards import Board, BoardCard, CardParameter, ParameterKind, RefreshInterval


class BoardSummary(TypedDict):
    """A board in a list. `cards` is their number."""

    id: str
    title: str
    cards: int
    refresh_every: RefreshInterval | None
    created_at: Timestamp
    updated_at: Timestamp


class BoardList(TypedDict):
    boards: list[BoardSummary]


class ParameterView(TypedDict):
    """A parameter `{{name}}` of a query, with its value. People read `label`, or the name if it is empty."""

    name: str
    label: str
    kind: ParameterKind
    value: str | int | float


class CardResult(TypedDict):
    """The rows that a card keeps. `total` counts all, null where they were not counted to the end. `formats` are those
    that the source told."""

    columns: list[str]
    rows: list[list[Any]]
    total: int | None
    formats: JsonObject


class SharedCard(TypedDict):
    """A card as a link shows it. `parameters` have the values that its rows were read with."""

    id: str
    title: str
    question: str
    sql: str
    parameters: list[ParameterView]
    look: JsonObject
    result: CardResult
    read_at: Timestamp


class CardView(SharedCard):
    """A saved result. `parameters` have the values that hold now, `values_read` are those that its rows were read with,
    by name: they differ until a refresh succeeds. `thread_id` and `message` lead to its conversation; null if that is
    deleted. `error` says why the last refresh failed: `{type, message, params}`."""

    values_read: dict[str, str | int | float]
    thread_id: str | None
    message: str | None
    source: str | None
    error: JsonObject | None


class BoardView(TypedDict):
    """A board with its cards in their order."""

    id: str
    title: str
    refresh_every: RefreshInterval | None
    created_at: Timestamp
    updated_at: Timestamp
    cards: list[CardView]


class SharedBoard(TypedDict):
    """A board as it was at `shared_at`, to read."""

    title: str
    shared_at: Timestamp
    cards: list[SharedCard]


def summary_of(board: Board) -> BoardSummary:
    """Return a board as a list has it."""
    return {
        "id": board.id,
        "title": board.title,
        "cards": board.cards,
        "refresh_every": board.refresh_every,
        "created_at": board.created_at.isoformat(),
        "updated_at": board.updated_at.isoformat(),
    }


def board_view(board: Board, cards: Sequence[BoardCard]) -> BoardView:
    """Return a board with its cards."""
    return {
        "id": board.id,
        "title": board.title,
        "refresh_every": board.refresh_every,
        "created_at": board.created_at.isoformat(),
        "updated_at": board.updated_at.isoformat(),
        "cards": [card_view(card, board.given) for card in cards],
    }


def card_view(card: BoardCard, given: Mapping[str, Any]) -> CardView:
    """Return a card as its owner sees it."""
    return {
        **shared_card(card, given),
        "parameters": _views(card.values(given)),
        "values_read": {each.name: each.value for each in card.values_read(given)},
        "thread_id": card.thread_id,
        "message": card.entry_id if card.thread_id is not None else None,
        "source": card.source,
        "error": dict(card.error) if card.error is not None else None,
    }


def shared_card(card: BoardCard, given: Mapping[str, Any]) -> SharedCard:
    """Return a card as others see it: without where its source is, which errors may name too."""
    data = card.result
    return {
        "id": card.id,
        "title": card.title,
        "question": card.question,
        "sql": card.sql,
        "parameters": _views(card.values_read(given)),
        "look": dict(card.look),
        "result": {
            "columns": data["columns"],
            "rows": data["rows"],
            "total": data.get("total"),
            "formats": data.get("formats") or {},
        },
        "read_at": card.read_at.isoformat(),
    }


def _views(parameters: Sequence[CardParameter]) -> list[ParameterView]:
    return [{"name": each.name, "label": each.label, "kind": each.kind, "value": each.value} for each in parameters]
