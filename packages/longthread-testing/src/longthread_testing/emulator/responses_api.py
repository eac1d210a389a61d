"""OpenAI's Responses: reasoning items, and the responses that the provider holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from longthread.messages.message import Message
from longthread_testing.emulator import responses
from longthread_testing.emulator.completions import CREATED
from longthread_testing.emulator.faults import Refused, RuleBroken
from longthread_testing.emulator.reasoning import check_items, encrypt_reasoning
from longthread_testing.emulator.response_events import encode_event, events_of
from longthread_testing.emulator.response_store import HeldResponse, ResponseStore
from longthread_testing.emulator.rules import ProviderRules
from longthread_testing.emulator.seals import seal
from longthread_testing.emulator.wire import ModelReply, ModelRequest

PATH = "/v1/responses"


class ResponsesApi:
    """The dialect of `/v1/responses`."""

    request_id = "x-request-id"

    def __init__(self, rules: ProviderRules) -> None:
        self._rules = rules
        self.store = ResponseStore(on=rules.stored)

    def read(self, body: dict[str, Any], headers: Mapping[str, str]) -> ModelRequest:
        items, held = self.store.expand(body)
        if self._rules.reasoning:
            check_items(items, held, self.store, self._rules.secret)
        if refused := responses.unpaired_items(items):
            raise RuleBroken(refused)
        whole = {**body, "input": items}
        return ModelRequest(body, whole, headers, responses.read_messages(body.get("instructions"), items))

    def reply(self, request: ModelRequest, message: Message, id: str, *, hold: bool) -> ModelReply:  # noqa: A002
        tools = request.body.get("tools") or ()
        items = responses.reply_items(message, id, reasons=self._rules.reasoning, tools=tools)
        made = encrypt_reasoning(items, self._rules.secret)
        body = responses.response(request.sent, message, made, f"resp_{id}")
        events = events_of(body)
        pending = bool(body["background"]) and not request.sent.get("stream")
        held = HeldResponse(body, request.body["input"], events, pending)
        if hold and body["store"] is not False:
            self.store.hold(held)
        return ModelReply(held.show(), map(encode_event, events))

    def compact(self, request: ModelRequest, id: str) -> dict[str, Any]:  # noqa: A002
        """Return the input as its user messages and one item for all the rest."""
        items = [each for each in request.body["input"] if each.get("role") == "user"]
        item = {"id": f"cmp_{id}", "type": "compaction"}
        item["encrypted_content"] = seal(self._rules.secret, {"item": item["id"], "items": len(request.body["input"])})
        users = [{"id": f"msg_{id}{place:02x}", "status": "completed", **each} for place, each in enumerate(items)]
        used = {"input_tokens": request.tokens, "output_tokens": 1, "total_tokens": request.tokens + 1}
        return {
            "id": f"resp_{id}",
            "object": "response.compaction",
            "created_at": CREATED,
            "output": [*users, item],
            "usage": responses.usage(Message("assistant", usage_metadata=used)),
        }

    def input_items(self, id: str, query: Mapping[str, str]) -> dict[str, Any]:  # noqa: A002
        """Return a page of the items that a response was made from, the newest first unless `order` is `asc`."""
        items = self.store.get(id).items
        data = [{"id": f"msg_{id}_{place:02x}", **item} for place, item in enumerate(items)]
        if query.get("order") != "asc":
            data.reverse()
        places = {item["id"]: place for place, item in enumerate(data)}
        begin = places.get(query.get("after", ""), -1) + 1
        limit = int(query.get("limit") or 20)
        page = data[begin : begin + limit]
        return {
            "object": "list",
            "data": page,
            "first_id": page[0]["id"] if page else None,
            "last_id": page[-1]["id"] if page else None,
            "has_more": begin + limit < len(data),
        }

    def cancel(self, id: str) -> dict[str, Any]:  # noqa: A002
        """Raises RuleBroken: the response does not run in the background."""
        held = self.store.get(id)
        if not held.body["background"]:
            raise RuleBroken(Refused(400, "Cannot cancel a synchronous response."))
        if held.pending:
            held.body = {**held.show(), "status": "cancelled"}
            held.pending = False
        return held.body

    def retrieve(self, id: str) -> dict[str, Any]:  # noqa: A002
        """Return the response, finished if it was queued."""
        held = self.store.get(id)
        held.pending = False
        return held.body

    def events_after(self, id: str, number: int) -> list[bytes]:  # noqa: A002
        return [encode_event(each) for each in self.store.get(id).events if each["sequence_number"] > number]

    def release(self, request: ModelRequest) -> None:
        """It holds nothing for a request alone."""

    def refusal(self, refused: Refused, request_id: str) -> dict[str, Any]:
        return refused.body

    def error_event(self, refused: Refused, request_id: str, place: int) -> bytes:
        told = refused.body["error"]
        return encode_event(
            {"type": "error", "sequence_number": place, **{k: told[k] for k in ("code", "message", "param")}}
        )

    def forget(self) -> None:
        self.store.forget()
