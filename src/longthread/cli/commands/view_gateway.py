"""`longthread view` of a conversation that came through the gateway."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from rich.markup import escape
from rich.table import Table

from longthread.cli.language import say
from longthread.cli.screen import Console
from longthread.gateway.inspect import CLIENT, InspectedGatewayCall, SentMessage, SentPart
from longthread.model.content import attachment_of
from longthread.model.markdown import in_line

_LONG = ("system", "instructions", "tools", "messages", "input")
"""Fields of a request that are no parameters."""
_OTHERS = 50
"""Columns for what is shown of a part next to its text."""
_PREVIEW = 400
"""Characters of a part's text that are looked at for a line of it."""


def gateway_call_json(found: InspectedGatewayCall) -> dict[str, Any]:
    call = found.call
    return {
        "thread": call.thread_id,
        "call": call.n,
        "calls": found.last,
        "client": found.client,
        "dialect": call.dialect,
        "upstream": call.upstream,
        "model": call.model,
        "status": call.status,
        "at": call.started_at,
        "elapsed_ms": call.elapsed_ms,
        "usage": dict(call.usage),
        "restored": call.restored,
        "dropped": call.dropped,
        "refused": call.refused,
        "whole": found.is_whole,
        "frame": dict(found.frame),
        "messages": [each.to_json() for each in found.messages],
        "reply": [each.to_json() for each in found.reply],
    }


def instructions_of(found: InspectedGatewayCall) -> str:
    """Return what stood before the messages."""
    return "\n\n".join(text for name in _LONG if name != "tools" for text in _texts(found.frame.get(name)))


def print_gateway_call(console: Console, found: InspectedGatewayCall) -> None:
    call = found.call
    title = f"[bold]{say('Call {} of {}', call.n, found.last)}[/bold]  {escape(call.model)}"
    console.print(f"{title}  [dim]{call.started_at[:19].replace('T', ' ')}[/dim]", highlight=False)
    told = "{} asked {} ({}): status {}, {:,} ms"
    asked = say(told, found.client, call.upstream, call.dialect, call.status, call.elapsed_ms)
    console.print(asked, markup=False, highlight=False)
    if call.usage:
        console.print(say("usage: {}", _list_values(call.usage)), markup=False, highlight=False)
    hidden = say("hidden parts: {} put back, {} dropped", call.restored, call.dropped)
    refused = say("; the provider refused those of this reply since") if call.refused else ""
    console.print(f"{hidden}{refused}", markup=False, highlight=False)
    if not found.is_whole:
        console.print(say("Of what went up, a part is deleted: by retention, or it was refused."), style="dim")
    if text := instructions_of(found):
        console.print(
            say("system: {}", in_line(text[:_PREVIEW])),
            markup=False,
            highlight=False,
            no_wrap=True,
            overflow="ellipsis",
        )
    tools = found.frame.get("tools")
    if names := [_tool(each) for each in tools] if isinstance(tools, list) else []:
        console.print(say("tools: {}", ", ".join(names)), markup=False, highlight=False)
    if parameters := {name: value for name, value in found.frame.items() if name not in _LONG}:
        console.print(_list_values(parameters), style="dim", markup=False, highlight=False)
    console.print(_table(found, max(20, console.width - _OTHERS)))


def _table(found: InspectedGatewayCall, width: int) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("entry", "role", "part", "how"):
        table.add_column(say(name), no_wrap=True, justify="right" if name == "entry" else "left")
    table.add_column(say("text"), no_wrap=True, overflow="ellipsis", max_width=width)
    for messages, is_reply in ((found.messages, False), (found.reply, True)):
        for message in messages:
            for row, style in _rows(message, is_reply=is_reply):
                table.add_row(*map(escape, row), style=style)
    return table


def _rows(message: SentMessage, *, is_reply: bool) -> Iterator[tuple[tuple[str, ...], str | None]]:
    for number, part in enumerate(message.parts):
        place = (str(message.seq), message.role) if number == 0 else ("", "")
        how = "reply" if is_reply else _how(part)
        yield (
            (*place, say(part.kind), say(how), in_line(" ".join(_texts(part.block))[:_PREVIEW])),
            "dim" if part.kind == "hidden" else None,
        )


def _how(part: SentPart) -> str:
    if not part.sent:
        return "not sent"
    if part.origin is None:
        return "sent"
    return say("sent, the client's") if part.origin == CLIENT else say("sent, of call {}", part.origin)


def _tool(tool: Any) -> str:
    own = tool.get("function") if isinstance(tool, Mapping) else None
    named = own if isinstance(own, Mapping) else tool
    return str(named.get("name") or named.get("type")) if isinstance(named, Mapping) else str(tool)


def _list_values(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {json.dumps(value, ensure_ascii=False)}" for name, value in values.items())


def _texts(value: Any) -> Iterator[str]:
    """Yield what a person reads in a block, a field or a list of them."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)
    elif isinstance(value, Mapping) and (attached := attachment_of(value)) and (attached.label or attached.text):
        yield from (text for text in (attached.label, attached.text) if text)
    elif isinstance(value, Mapping):
        known = [value[name] for name in _READ if value.get(name)]
        yield from (
            (text for each in known for text in _texts(each)) if known else [json.dumps(value, ensure_ascii=False)]
        )


_READ = ("text", "thinking", "content", "summary", "output", "name", "input", "arguments", "function", "value")
