"""The responses that the provider holds, in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from longthread_testing.emulator.faults import Refused, RuleBroken
from longthread_testing.emulator.responses import items_of

# The texts of the vendor's errors. Clients recognize them.
_NO_PREVIOUS = "Previous response with id '{id}' not found."
_BOTH = (
    "Mutually exclusive parameters: 'previous_response_id' and 'conversation'. Ensure you are only using one of them."
)
_NO_RESPONSE = "Response with id '{id}' not found."
_NO_ITEM = (
    "Item with id '{id}' not found. Items are not persisted when `store` is set to false. Try again with `store` set "
    "to true, or remove this item from your input."
)


@dataclass
class HeldResponse:
    """A response, the items that it was made from, and its events. `pending`: it runs in the background until somebody
    looks."""

    body: dict[str, Any]
    items: list[dict[str, Any]]
    events: list[dict[str, Any]] = field(default_factory=list)
    pending: bool = False

    def show(self) -> dict[str, Any]:
        """Return the response as it is now; a pending one is finished the next time."""
        if self.pending:
            return {**self.body, "status": "queued", "output": [], "usage": None, "completed_at": None}
        return self.body


class ResponseStore:
    """Responses and their items, by id. Without `on` it holds nothing, as a stateless server."""

    def __init__(self, *, on: bool) -> None:
        self.on = on
        self._responses: dict[str, HeldResponse] = {}
        self._items: dict[str, dict[str, Any]] = {}
        self._reasoning: dict[str, str] = {}

    def hold(self, held: HeldResponse) -> None:
        if not self.on:
            return
        self._responses[held.body["id"]] = held
        before = None
        for item in held.body["output"]:
            self._items[item["id"]] = item
            if before and before["type"] == "reasoning":
                self._reasoning[item["id"]] = before["id"]
            before = item

    def get(self, id: str) -> HeldResponse:  # noqa: A002
        """Raises RuleBroken: there is none."""
        if id not in self._responses:
            raise RuleBroken(Refused(404, _NO_RESPONSE.format(id=id)))
        return self._responses[id]

    def delete(self, id: str) -> None:  # noqa: A002
        """Raises RuleBroken: there is none."""
        self.get(id)
        del self._responses[id]

    def forget(self) -> None:
        self._responses.clear()
        self._items.clear()
        self._reasoning.clear()

    def item(self, id: str) -> dict[str, Any]:  # noqa: A002
        """Raises RuleBroken: the item is not held."""
        if id not in self._items:
            raise RuleBroken(Refused(404, _NO_ITEM.format(id=id), param="input"))
        return self._items[id]

    def reasoning_of(self, id: str | None) -> str | None:  # noqa: A002
        """Return the id of the reasoning that a held item was made right after."""
        return self._reasoning.get(id or "")

    def expand(self, body: Mapping[str, Any]) -> tuple[list[dict[str, Any]], int]:
        """Return all items of a request, and how many of them are held ones before its input. Raises RuleBroken: what
        it refers to is not held."""
        if body.get("conversation"):
            if body.get("previous_response_id"):
                raise RuleBroken(Refused(400, _BOTH, "mutually_exclusive_parameters"))
            raise RuleBroken(Refused(404, f"Conversation with id '{body['conversation']}' not found."))
        before = self._before(body.get("previous_response_id"))
        return [*before, *self._resolve(items_of(body.get("input")))], len(before)

    def _before(self, previous: str | None) -> list[dict[str, Any]]:
        if previous is None:
            return []
        if previous not in self._responses:
            message = _NO_PREVIOUS.format(id=previous)
            raise RuleBroken(Refused(400, message, "previous_response_not_found", param="previous_response_id"))
        held = self._responses[previous]
        return [*held.items, *held.body["output"]]

    def _resolve(self, items: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        resolved = []
        for item in items:
            bare = item["type"] == "reasoning" and not item.get("encrypted_content")
            resolved.append(self.item(str(item.get("id"))) if item["type"] == "item_reference" or bare else item)
        return resolved
