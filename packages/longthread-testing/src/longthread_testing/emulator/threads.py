"""Anthropic's message threads: conversations that the provider holds, in memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from longthread_testing.emulator.faults import Refused, RuleBroken
from longthread_testing.emulator.thinking import asks_for_thinking, blocks_of

THREADS_BETA = "message-threads-2026-08-12"
_CREATE_ONLY = ("system", "tools")
_MOST_CACHE_CONTROLS = 3


class MessageThreads:
    """The state after each reply that may be continued, by the reply's id. Each is continued once."""

    def __init__(self) -> None:
        self._states: dict[str, dict[str, Any]] = {}
        self._continued: set[str] = set()
        self._in_flight: set[str] = set()

    def expand(self, body: dict[str, Any], beta: str, *, on: bool) -> dict[str, Any]:
        """Return the request with all that the thread holds. Raises RuleBroken with the vendor's error."""
        thread = body.get("thread")
        if thread is None:
            return body
        if not on or THREADS_BETA not in beta:
            raise RuleBroken(Refused(400, "thread: Extra inputs are not permitted"))
        if unsupported := _list_unsupported(body):
            message = f"`thread` cannot be combined with: {', '.join(unsupported)}."
            raise _make_broken(400, message, "thread_unsupported_request", unsupported=unsupported)
        if thread.get("type") != "continue":
            return body
        return self._continue(body, str(thread.get("previous_message_id")))

    def _continue(self, body: dict[str, Any], previous: str) -> dict[str, Any]:
        state = self._states.get(previous)
        if state is None:
            raise _make_broken(404, f"No thread was found for `previous_message_id` {previous}.", "thread_not_found")
        if previous in self._continued:
            raise _make_broken(400, f"{previous} has already been continued.", "thread_already_continued")
        if previous in self._in_flight:
            raise _make_broken(400, f"Another request is continuing from {previous}.", "thread_continue_in_flight")
        if changed := [name for name in ("model", *_CREATE_ONLY) if name in body and body[name] != state.get(name)]:
            message = f"These fields differ from the thread's: {', '.join(changed)}."
            raise _make_broken(400, message, "thread_fingerprint_mismatch")
        self._in_flight.add(previous)
        kept = {name: state[name] for name in _CREATE_ONLY if name in state}
        return {**body, **kept, "messages": [*state["messages"], *(body.get("messages") or ())]}

    def hold(self, body: Mapping[str, Any], reply: Mapping[str, Any]) -> None:
        """Hold the conversation under the reply's id, if the request asks for a thread."""
        thread = body.get("thread")
        if thread is None:
            return
        said = {"role": "assistant", "content": reply["content"]}
        self._states[reply["id"]] = {**body, "messages": [*(body.get("messages") or ()), said]}
        if thread.get("type") == "continue":
            self._continued.add(thread["previous_message_id"])

    def release(self, body: Mapping[str, Any]) -> None:
        """Let another request continue from where this one did, if it got no reply."""
        self._in_flight.discard((body.get("thread") or {}).get("previous_message_id", ""))

    def forget(self) -> None:
        self._states.clear()


def _list_unsupported(body: Mapping[str, Any]) -> list[str]:
    found = ["thinking"] if asks_for_thinking(body) else []
    return [*found, *(["cache_control"] if _cache_controls(body) > _MOST_CACHE_CONTROLS else [])]


def _cache_controls(body: Mapping[str, Any]) -> int:
    said = (block for each in body.get("messages") or () for block in blocks_of(each.get("content")))
    blocks = [*blocks_of(body.get("system")), *(body.get("tools") or ()), *said]
    return sum(each.get("cache_control") is not None for each in blocks)


def _make_broken(status: int, message: str, code: str, **details: Any) -> RuleBroken:
    return RuleBroken(Refused(status, message, details={"error_code": code, **details}))
