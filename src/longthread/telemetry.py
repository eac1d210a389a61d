"""Spans of runs, model calls, tool calls and lookups, by OpenTelemetry's conventions for generative AI.

This module needs no other package, and every span is `OFF`, which does nothing, until one of two has happened:
`longthread.otel.export` has begun to send spans to a collector, or the application has set up OpenTelemetry itself.
Names and numbers go into spans; contents only where `captures` says so.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any, Literal, Protocol
from urllib.parse import quote, urlsplit

Operation = Literal[
    "invoke_agent", "chat", "execute_tool", "retrieval", "search_memory", "upsert_memory", "delete_memory"
]
"""What a span is of: `gen_ai.operation.name`."""
SpanAttributes = Mapping[str, Any]
"""Attributes by name. One that is None is left out."""
TRACEPARENT = "traceparent"
_SDK = "opentelemetry.sdk.trace"
"""The module that is loaded wherever OpenTelemetry is set up."""
_WELL_KNOWN = {"google": "gcp.gemini", "azure": "azure.ai.openai", "bedrock": "aws.bedrock", "mistral": "mistral_ai"}
"""How the conventions call providers that are called otherwise here."""


class TraceSpan(Protocol):
    """A piece of work. End it once."""

    @property
    def is_on(self) -> bool:
        """Whether a collector or the application gets it."""

    @property
    def captures(self) -> bool:
        """Whether contents may go into it: messages, arguments, results, questions."""

    @property
    def headers(self) -> Mapping[str, str]:
        """What a request made in it carries, so that the other side's spans join the trace."""

    def note(self, attributes: SpanAttributes) -> None: ...

    def fail(self, error: BaseException | str) -> None:
        """Note the class or the code of an error. Its message may hold contents, and stays out."""

    def end(self) -> None: ...


class Tracer(Protocol):
    """Begins spans."""

    def begin(
        self, operation: Operation, name: str, attributes: SpanAttributes, *, parent: TraceSpan | None, is_first: bool
    ) -> TraceSpan: ...

    def use(self, span: TraceSpan) -> AbstractContextManager[None]:
        """Make a span the current one of other libraries' instrumentations."""

    def receive(self, traceparent: str) -> AbstractContextManager[None]:
        """Make a caller's span the parent of the block's, unless the block is in a span already."""


class _Off:
    """The span that goes nowhere."""

    is_on = captures = False
    headers: Mapping[str, str] = {}

    def note(self, attributes: SpanAttributes) -> None:
        pass

    def fail(self, error: BaseException | str) -> None:
        pass

    def end(self) -> None:
        pass


OFF: TraceSpan = _Off()
_NOTHING = nullcontext(OFF)
_current: ContextVar[TraceSpan] = ContextVar("span", default=OFF)
_tracer: Tracer | None = None
_adopted: Tracer | None = None


def set_tracer(tracer: Tracer | None) -> None:
    """Let all spans of this process begin with a tracer; None: with that of the application, if it has one."""
    global _tracer
    _tracer = tracer


def is_traced() -> bool:
    """Return whether spans go anywhere: for what takes time to describe."""
    return _find_tracer() is not None


def current_span() -> TraceSpan:
    """Return the span that the caller works in."""
    return _current.get()


def begin_span(
    operation: Operation,
    name: str,
    attributes: SpanAttributes,
    *,
    parent: TraceSpan | None = None,
    is_first: bool = False,
) -> TraceSpan:
    """Begin a span that is not the current one: of work that another task ends, such as a stream.

    Its name is the operation with `name`. Its parent is the current span if none is given; `is_first`: it has none in
    this process, and is linked to the current one.
    """
    tracer = _find_tracer()
    return OFF if tracer is None else tracer.begin(operation, name, attributes, parent=parent, is_first=is_first)


def span(
    operation: Operation,
    name: str,
    attributes: SpanAttributes,
    *,
    parent: TraceSpan | None = None,
    is_first: bool = False,
) -> AbstractContextManager[TraceSpan]:
    """Work in a span. It fails with what the block raises."""
    tracer = _find_tracer()
    if tracer is None:
        return _NOTHING
    return _work_in(tracer, tracer.begin(operation, name, attributes, parent=parent, is_first=is_first))


@contextmanager
def _work_in(tracer: Tracer, begun: TraceSpan) -> Iterator[TraceSpan]:
    token = _current.set(begun)
    try:
        with note_failure(begun), tracer.use(begun):
            yield begun
    finally:
        _current.reset(token)
        begun.end()


@contextmanager
def note_failure(begun: TraceSpan) -> Iterator[None]:
    """Note in a span what the block raises, a cancellation too."""
    try:
        yield
    except BaseException as error:
        begun.fail(error)
        raise


def join_trace(traceparent: str | None) -> AbstractContextManager[Any]:
    """Let the block's spans join the trace of a request's caller."""
    tracer = _find_tracer() if traceparent else None
    return _NOTHING if tracer is None or not traceparent else tracer.receive(traceparent)


def _find_tracer() -> Tracer | None:
    global _adopted
    if _tracer is not None or _SDK not in sys.modules:
        return _tracer
    if _adopted is None:
        _adopted = importlib.import_module("longthread.otel.spans").find_own_tracer()
    return _adopted


def describe_model(name: str, *, asked: str, address: str = "") -> dict[str, Any]:
    """Return the attributes of a model: `name` says the provider, `asked` is the provider's own name for it. Of an
    address only host and port go out: the rest may hold a key."""
    provider, separator, _ = name.partition(":")
    host, port = _read_place(address)
    if not separator:  # a model of the server that the settings name, or the demo model
        provider = "openai" if host else name
    return {
        "gen_ai.provider.name": _WELL_KNOWN.get(provider, provider),
        "gen_ai.request.model": asked,
        "server.address": host,
        "server.port": port,
    }


def _read_place(address: str) -> tuple[str | None, int | None]:
    try:
        parts = urlsplit(address)
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:  # a request to it says what is wrong with it
        return None, None
    return parts.hostname, port if parts.hostname else None


def describe_usage(input_tokens: int | None, output_tokens: int | None, cached: int | None = None) -> dict[str, Any]:
    """Return the attributes of the tokens that a provider counted."""
    return {
        "gen_ai.usage.input_tokens": input_tokens,
        "gen_ai.usage.output_tokens": output_tokens,
        "gen_ai.usage.cache_read.input_tokens": cached or None,
    }


def view_path(thread_id: str, index: int) -> str:
    """Return the path at which a server tells what a model call saw."""
    return f"/api/conversations/{quote(thread_id, safe='')}/calls/{index}"


def as_parts(role: str, text: str, calls: Iterable[Mapping[str, Any]] = (), result_of: str | None = None) -> Any:
    """Return a message in the form of `gen_ai.input.messages`."""
    if result_of is not None:
        return {"role": "tool", "parts": [{"type": "tool_call_response", "id": result_of, "response": text}]}
    parts: list[Any] = [{"type": "text", "content": text}] if text else []
    parts += [
        {"type": "tool_call", "id": each.get("id"), "name": each.get("name"), "arguments": each.get("args")}
        for each in calls
    ]
    return {"role": role, "parts": parts}


def as_text(value: Any) -> str:
    """Return contents as the text of an attribute."""
    return json.dumps(value, ensure_ascii=False, default=str)
