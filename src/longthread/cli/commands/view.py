"""`longthread view`: what the model saw of a conversation, call by call, also of one that came through the gateway."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from longthread.cli import options
from longthread.cli.language import say
from longthread.cli.options import find_thread
from longthread.cli.terminal import Console, echo_data, print_line
from longthread.cli.whole_store import count_noun, existing
from longthread.documentation import documentation
from longthread.errors import InvalidInput
from longthread.gateway.stored_calls import CLIENT, InspectedGatewayCall, SentMessage, SentPart, look_at_call
from longthread.model.content import attachment_of
from longthread.model.markdown import in_line
from longthread.model.run import TEXTS, Step
from longthread.settings import Settings
from longthread.store import checkpoints, log, runs
from longthread.store.driver import Driver, Transaction

if TYPE_CHECKING:
    from longthread.langgraph.memory.message_view import LastView
    from longthread.runs.inspect import InspectedCall, ViewDifference
    from longthread.view.items import ViewEntry

_LONG = ("system", "instructions", "tools", "messages", "input")
"""Fields of a request that are no parameters."""
_GATEWAY_OTHERS = 50
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
    if names := [_name_tool(each) for each in tools] if isinstance(tools, list) else []:
        console.print(say("tools: {}", ", ".join(names)), markup=False, highlight=False)
    if parameters := {name: value for name, value in found.frame.items() if name not in _LONG}:
        console.print(_list_values(parameters), style="dim", markup=False, highlight=False)
    console.print(_gateway_table(found, max(20, console.width - _GATEWAY_OTHERS)))


def _gateway_table(found: InspectedGatewayCall, width: int) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("entry", "role", "part", "how"):
        table.add_column(say(name), no_wrap=True, justify="right" if name == "entry" else "left")
    table.add_column(say("text"), no_wrap=True, overflow="ellipsis", max_width=width)
    for messages, is_reply in ((found.messages, False), (found.reply, True)):
        for message in messages:
            for row, style in _gateway_rows(message, is_reply=is_reply):
                table.add_row(*map(escape, row), style=style)
    return table


def _gateway_rows(message: SentMessage, *, is_reply: bool) -> Iterator[tuple[tuple[str, ...], str | None]]:
    for number, part in enumerate(message.parts):
        place = (str(message.seq), message.role) if number == 0 else ("", "")
        how = "reply" if is_reply else _describe_part(part)
        yield (
            (*place, say(part.kind), say(how), in_line(" ".join(_texts(part.block))[:_PREVIEW])),
            "dim" if part.kind == "hidden" else None,
        )


def _describe_part(part: SentPart) -> str:
    if not part.sent:
        return "not sent"
    if part.origin is None:
        return "sent"
    return say("sent, the client's") if part.origin == CLIENT else say("sent, of call {}", part.origin)


def _name_tool(tool: Any) -> str:
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


_WIDTH = 100
"""Columns where the output is no terminal."""
_OTHERS = 56
"""Columns for what is shown of a message next to its text."""
_WHY = {
    "window": "no longer in the window, and in no summary that was shown",
    "budget": "no room",
    "digest": "no room; the summary tells of it",
    "stale": "another source or schema",
    "unpaired": "a call without result, or the reverse",
    "pruned": "deleted since, by retention",
}
_TIERS = {1: "1 summary", 2: "2 condensed", 3: "3 whole", None: ""}


@dataclass(frozen=True, slots=True)
class _Found:
    calls: int
    look: InspectedCall
    model: str
    other: int | None
    difference: ViewDifference | None


def view(
    thread: Annotated[str, typer.Argument(help="The conversation: its id, the beginning of it, or last.")],
    call: Annotated[int | None, typer.Option("--call", help="Which model call, from 1; by default the last.")] = None,
    diff: Annotated[int | None, typer.Option("--diff", help="Another call to compare with.")] = None,
    answer: Annotated[str | None, typer.Option("--answer", help="The call that gave this answer, by its id.")] = None,
    prompt: Annotated[
        bool, typer.Option("--prompt", help="The instructions that stood before the messages, and nothing else.")
    ] = False,
    as_json: options.AsJson = False,
    database: options.Database = None,
    read_only: options.ReadOnly = None,
) -> None:
    """What the model saw: each message of a call's view, how it went in, what it cost, and why."""
    found = asyncio.run(
        _find(Settings.load(database=database, read_only=read_only), thread, call, diff, answer, has_prompt=prompt)
    )
    if as_json:
        print_line(_as_json(found))
        return
    if prompt and isinstance(found, _Found | InspectedGatewayCall):
        echo_data(found.look.system if isinstance(found, _Found) else instructions_of(found))
        return
    console = Console()
    if not console.is_terminal:
        console = Console(width=_WIDTH)
    if isinstance(found, _Found):
        _print(console, found)
    elif isinstance(found, InspectedGatewayCall):
        print_gateway_call(console, found)
    else:
        _print_last(console, found)


def _as_json(found: _Found | InspectedGatewayCall | LastView) -> dict[str, Any]:
    if isinstance(found, InspectedGatewayCall):
        return gateway_call_json(found)
    return _json(found) if isinstance(found, _Found) else _json_of_last(found)


async def _find(
    settings: Settings, given: str, call: int | None, diff: int | None, answer: str | None, *, has_prompt: bool
) -> _Found | InspectedGatewayCall | LastView:
    # Here and not above: LangChain takes time to load, and other commands do not need it.
    from longthread.runs.inspect import calls_of, difference, look

    async with existing(settings) as store:
        thread_id = str(await find_thread(store, given, user=settings.user))
        async with store.reading() as tx:
            calls = await calls_of(tx, thread_id)
            if not calls and (of_gateway := await look_at_call(tx, thread_id, call)) is not None:
                if diff is not None:
                    raise InvalidInput(reason="Calls of the gateway are not compared. Leave out --diff.")
                return of_gateway
            if not calls:
                return await _last(
                    store, thread_id, settings, is_of_one=has_prompt or call is not None or diff is not None
                )
            number = _number(call, len(calls)) if answer is None else await _call_of(tx, thread_id, answer, calls)
            seen = await look(tx, calls, number)
            run = await runs.find_run(tx, thread_id, seen.step.run_id)
            model = run.model if run else ""
            if diff is None:
                return _Found(len(calls), seen, model, None, None)
            other = await look(tx, calls, _number(diff, len(calls)))
            return _Found(len(calls), seen, model, other.number, difference(seen, other))


async def _last(store: Driver, thread_id: str, settings: Settings, *, is_of_one: bool) -> LastView:
    """The last view of a LangGraph application's thread, which is all that is kept of its views."""
    async with store.reading() as tx:
        has_checkpoints = bool(await checkpoints.namespaces(tx, thread_id))
    found = None
    if has_checkpoints:
        from longthread.langgraph.memory.message_view import last_view

        found = await last_view(store, thread_id, user_id=settings.user)
    if found is None:
        raise InvalidInput(
            reason=f"Thread {thread_id} has no model call whose view is kept. Those of `longthread ask`, `chat`, "
            "the server and the gateway are; of a LangGraph application the last one is, where its agent has "
            f"MemoryMiddleware ({documentation('how-to/langgraph')}). `longthread threads show {thread_id}` shows its "
            "messages."
        )
    if is_of_one:
        raise InvalidInput(
            reason=f"Thread {thread_id} is a LangGraph application's, of which the last view alone is kept, without "
            "its instructions. Leave out --call, --diff and --prompt."
        )
    return found


async def _call_of(tx: Transaction, thread_id: str, answer: str, calls: Sequence[Step]) -> int:
    """The number of the call that gave an answer: the last one of its run. Raises EntryNotFound; InvalidInput: no call
    gave it."""
    entry = await log.find_entry(tx, thread_id, answer)
    own = [place for place, each in enumerate(calls, 1) if entry.run_id is not None and each.run_id == entry.run_id]
    if not own:
        raise InvalidInput(reason=f"No model call whose view is kept gave {answer}. Give the id of an answer.")
    return own[-1]


def _number(given: int | None, calls: int) -> int:
    """A call's number; a negative one counts from the end."""
    number = calls if given is None else given if given > 0 else calls + 1 + given
    if not 0 < number <= calls:
        raise InvalidInput(reason=f"There is no call {given}: the thread has {calls}, counted from 1.")
    return number


def _json(found: _Found) -> dict[str, Any]:
    seen, step = found.look, found.look.step
    data = {
        "thread": step.thread_id,
        "call": seen.number,
        "calls": found.calls,
        "step": step.index,
        "run": step.run_id,
        "model": found.model,
        "status": step.status,
        "at": step.started_at.isoformat(),
        "tokens": seen.tokens,
        "usage": dict(step.usage),
        "why_planned": seen.why_planned,
        "system": seen.system,
        "tools": list(seen.tools),
        "segments": [segment.to_json() for segment in seen.segments],
        "entries": [entry.to_json() for entry in seen.entries],
    }
    if found.difference is not None:
        changed = [{"seq": seq, "from": old, "to": new} for seq, old, new in found.difference.changed]
        data["diff"] = {
            "with": found.other,
            "same_tokens": found.difference.same,
            "entered": list(found.difference.entered),
            "left": list(found.difference.left),
            "changed": changed,
        }
    return data


def _print(console: Console, found: _Found) -> None:
    seen, step = found.look, found.look.step
    budget = step.usage.get("budget")
    of = say(" of {:,}", budget) if budget else ""
    counted = step.usage.get("input_tokens")
    title = f"[bold]{say('Call {} of {}', seen.number, found.calls)}[/bold]  {escape(found.model)}"
    console.print(f"{title}  [dim]{step.started_at:%Y-%m-%d %H:%M:%S}[/dim]", highlight=False)
    console.print(say("{:,}{} tokens of messages, by estimate", seen.tokens, of), highlight=False)
    if counted:
        estimated = step.usage.get("estimated_tokens", 0)
        whole = say("whole prompt: {:,} by estimate, {:,} as the provider counted", estimated, counted)
        console.print(whole, highlight=False)
    why = seen.why_planned
    planned = say("planned anew: {}", say(why)) if why else say("goes on from the call before")
    console.print(f"[dim]{planned}[/dim]", highlight=False)
    console.print(_table(seen.entries, max(20, console.width - _OTHERS)))
    for entry in seen.entries:
        if entry.how in TEXTS:
            console.print(f"\n{_stands_for(entry)}[dim]{escape(entry.text)}[/dim]", highlight=False)
    if found.difference is not None:
        _print_difference(console, found.difference, found.other)


def _json_of_last(found: LastView) -> dict[str, Any]:
    return {
        "thread": found.thread_id,
        "call": None,
        "model": found.model,
        "usage": {"estimated_tokens": found.estimated, "input_tokens": found.reported},
        "entries": [entry.to_json() for entry in found.entries],
    }


def _print_last(console: Console, found: LastView) -> None:
    console.print(f"[bold]{say('The last view')}[/bold]  {escape(found.model)}", highlight=False)
    counted_ = say(", {:,} as the provider counted", found.reported) if found.reported else ""
    console.print(say("whole prompt: {:,} by estimate{}", found.estimated, counted_), highlight=False)
    told = say("A LangGraph application's: MemoryMiddleware keeps its last view in the state, and none before it.")
    console.print(f"[dim]{told}[/dim]", highlight=False)
    console.print(_table(found.entries, max(20, console.width - _OTHERS)))
    for entry in found.entries:
        if entry.how in TEXTS:
            console.print(f"\n[dim]{escape(entry.text)}[/dim]", highlight=False)


def _table(entries: Sequence[ViewEntry], width: int) -> Table:
    table = Table(box=None, pad_edge=False)
    for name, options_ in (
        ("entry", {"justify": "right"}),
        ("role", {}),
        ("tier", {}),
        ("how", {}),
        ("tokens", {"justify": "right"}),
        ("text", {"overflow": "ellipsis", "max_width": width}),
    ):
        table.add_column(say(name), no_wrap=True, **options_)
    for first, last, seen in _rows(entries):
        place = _place(first, last) if last else ""
        is_told = seen.why and (seen.tier is None or _is_not_shown(seen))
        text = say(_WHY.get(str(seen.why), "")) if is_told else _preview(seen.text)
        style, tokens = ("dim", "") if _is_not_shown(seen) else (None, f"{seen.tokens:,}")
        table.add_row(place, seen.role, say(_TIERS[seen.tier]), say(seen.how), tokens, escape(text), style=style)
    return table


def _rows(entries: Sequence[ViewEntry]) -> list[tuple[int, int, ViewEntry]]:
    """A row for each entry; those one after the other that were left out for one reason, or were deleted, share one."""
    rows: list[tuple[int, int, ViewEntry]] = []
    for seen in entries:
        last = rows[-1][2] if rows else None
        if last is not None and (last.how, last.why) == (seen.how, seen.why) and _is_not_shown(seen):
            rows[-1] = (rows[-1][0], seen.seq, replace(seen, role="", tokens=0, text=""))
        else:
            rows.append((seen.seq if seen.first is None else seen.first, seen.seq, seen))
    return rows


def _is_not_shown(seen: ViewEntry) -> bool:
    """Whether the call did not see it, or what it saw is no longer there."""
    return seen.how == "left out" or seen.why == "pruned"


def _stands_for(seen: ViewEntry) -> str:
    """Which messages a summary tells of, in a line of its own."""
    if not seen.count or seen.first is None:
        return ""
    told = say("In the place of {}, {}:", count_noun(seen.count, "message"), _place(seen.first, seen.seq))
    return f"[bold]{told}[/bold]\n"


def _place(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def _preview(text: str) -> str:
    return " ".join(text[:_PREVIEW].split())


def _print_difference(console: Console, difference: ViewDifference, other: int | None) -> None:
    console.print(f"\n[bold]{say('Against call {}', other)}[/bold]", highlight=False)
    console.print(say("the same beginning: {:,} tokens", difference.same), highlight=False)
    for word, seqs in ((say("only here"), difference.entered), (say("only in call {}", other), difference.left)):
        if seqs:
            console.print(f"{word}: {_ranges(seqs)}", highlight=False)
    for old, new in sorted({(old, new) for _, old, new in difference.changed}):
        seqs = [seq for seq, *ways in difference.changed if ways == [old, new]]
        console.print(f"{say(old)} → {say(new)}: {_ranges(seqs)}", highlight=False)


def _ranges(seqs: Sequence[int]) -> str:
    """Numbers as ranges: 3-5, 9."""
    ranges: list[list[int]] = []
    for seq in sorted(seqs):
        if ranges and ranges[-1][1] == seq - 1:
            ranges[-1][1] = seq
        else:
            ranges.append([seq, seq])
    return ", ".join(_place(first, last) for first, last in ranges)
