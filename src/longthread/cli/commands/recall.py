"""`longthread recall`: what was said before, in one conversation or in all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.text import Text

from longthread.cli import options
from longthread.cli.language import say
from longthread.cli.options import find_thread, moment
from longthread.cli.server_choice import chosen_server
from longthread.cli.terminal import Console, echo, echo_data, echo_made, join_by_tabs, print_line
from longthread.cli.whole_store import existing, run
from longthread.errors import InvalidInput
from longthread.memory.index.entry_text import content_of, excerpt
from longthread.memory.index.indexer import SAID_AT
from longthread.memory.index.terms import find_telling_terms, terms
from longthread.model.entry import Entry
from longthread.model.markdown import in_line, visible
from longthread.model.thread import Scope
from longthread.settings import Settings
from longthread.store import catalog, log, vectors
from longthread.store.driver import Driver

if TYPE_CHECKING:
    from longthread.cli.remote.logins import ServerLogin
    from longthread.memory.embedder import Embedder
    from longthread.memory.recall import Hit, Question

_CHARS = 400
"""Characters of a message that are shown; in JSON more, as a model gets them."""
_JSON_CHARS = 1200
_AROUND_CHARS = 160
_ASIDE = "on another branch"


@dataclass(frozen=True, slots=True)
class _Found:
    """What was found, the titles of the conversations it is in, and what people should know about how."""

    hits: Sequence[Hit]
    titles: dict[str, str]
    warnings: Sequence[str]


def recall(
    query: Annotated[str, typer.Argument(help="What to look for, in words that were used.")] = "",
    topic: Annotated[str, typer.Option("--topic", help="Only what was said about this topic.")] = "",
    thread: Annotated[
        str | None, typer.Option("--thread", "-t", help="In this conversation: its id, the beginning of it, or last.")
    ] = None,
    agent: Annotated[
        str | None, typer.Option("--agent", "-a", help="In conversations with this agent: its name or id.")
    ] = None,
    user: Annotated[
        str | None, typer.Option("--user", help="Whose conversations; by default LONGTHREAD_USER's.")
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="WHEN", help="From this date or time on, or an age such as 30d.")
    ] = None,
    until: Annotated[
        str | None,
        typer.Option("--until", metavar="WHEN", help="To the end of this date, or before a time or an age such as 7d."),
    ] = None,
    k: Annotated[
        int | None,
        typer.Option("--k", "-k", min=1, max=100, help="How many messages; by default MEMORY_RECALL_TOP_K (5)."),
    ] = None,
    around: Annotated[int, typer.Option("--around", "-C", min=0, max=5, help="Messages on either side of each.")] = 0,
    other_branches: Annotated[
        bool, typer.Option("--other-branches", help="Also what an edit or a retry took the place of.")
    ] = False,
    as_json: options.AsJson = False,
    database: options.Database = None,
    read_only: options.ReadOnly = None,
) -> None:
    """Find what was said before, the best first: by words, and by meaning with an embedder.

    It looks in all conversations, or in those that --thread or --agent names. No model is asked.
    """
    if not (query.strip() or topic.strip()):
        raise InvalidInput(reason="There is nothing to look for. Give a query or a --topic.")
    if thread is not None and agent is not None:
        raise InvalidInput(reason="Give --thread or --agent, not both.")
    settings = Settings.load(database=database, read_only=read_only)
    # Here and not above: numpy takes time to load, and other commands do not need it.
    from longthread.memory.recall import Question

    asked = Question(
        text=query,
        topic=topic,
        scope=Scope(user or settings.user, thread, agent),
        k=k or settings.memory_recall_top_k,
        since=moment(since, "--since", ahead=False) if since else None,
        until=moment(until, "--until", ahead=False, ends=True) if until else None,
        neighbours=around,
        other_branches=other_branches,
    )
    login = chosen_server()
    found = run(_find_hits(settings, asked)) if login is None else _find_there(login, asked)
    for warning in found.warnings:
        echo_made(warning)
    if as_json:
        for hit in found.hits:
            print_line(_describe_hit(hit, found.titles, asked))
    else:
        _print_found(found, set(find_telling_terms(f"{query} {topic}")))


def _find_there(login: ServerLogin, asked: Question) -> _Found:
    """Find messages on a server."""
    from longthread.cli.remote.client import work_on_server
    from longthread.cli.remote.recall_calls import recall_messages

    return _Found(*work_on_server(login, lambda client: recall_messages(client, asked)))


async def _find_hits(settings: Settings, given: Question) -> _Found:
    # Here and not above: LangChain takes long to load, and an embedder is made by it.
    from dataclasses import replace

    from longthread.llm.embedders import embedder_of
    from longthread.memory.recall import Recaller

    async with existing(settings) as store:
        embedder = embedder_of(settings)
        recaller = Recaller(store, embedder)
        try:
            asked = replace(given, scope=await _resolve_scope(store, given.scope))
            recalled = await recaller.find(asked)
            warnings = list(recalled.warnings)
            if embedder is not None and not warnings:
                warnings = await _without_vectors(store, asked.scope, embedder)
        finally:
            await recaller.close()
        titles: dict[str, str] = {}
        async with store.reading() as tx:
            for thread_id in dict.fromkeys(hit.entry.thread_id for hit in recalled.hits):
                thread = await log.find_thread(tx, thread_id, user_id=asked.scope.user_id)
                titles[thread_id] = thread.title or ""
        return _Found(recalled.hits, titles, warnings)


async def _without_vectors(store: Driver, scope: Scope, embedder: Embedder) -> list[str]:
    """Return what a person should know of conversations that are found by keywords alone: a command is too short to
    make vectors after it."""
    from longthread.memory.index.vectors import model_of

    model = await model_of(embedder)
    async with store.reading() as tx:
        left = await vectors.behind(tx, scope, model)
    count = len(left) if scope.thread_id is None else left.count(scope.thread_id)
    if not count:
        return []
    which = "One conversation has" if count == 1 else f"{count:,} conversations have"
    return [f"{which} messages without vectors of {embedder.name}, found by keywords alone. Run `longthread db index`."]


async def _resolve_scope(store: Driver, given: Scope) -> Scope:
    """A scope by ids, of one by what people call them."""
    thread_id = await find_thread(store, given.thread_id, user=given.user_id)
    if given.agent_id is None:
        return Scope(given.user_id, thread_id)
    async with store.reading() as tx:
        known = [each.definition for each in await catalog.definitions(tx) if each.definition.kind == "agent"]
    for agent in known:
        if given.agent_id in (agent.name, agent.id):
            return Scope(given.user_id, agent_id=agent.id)
    names = ", ".join(sorted(agent.name for agent in known))
    raise InvalidInput(reason=f"There is no agent {given.agent_id}. There is {names}.")


def _print_found(found: _Found, wanted: set[str]) -> None:
    console = Console()
    if not found.hits:
        echo("Nothing was found.", err=True)
    if not console.is_terminal:
        for hit in found.hits:
            entry = hit.entry
            fields = [entry.thread_id, entry.id, entry.role, _format_time(entry), _excerpt_entry(entry, wanted, _CHARS)]
            echo_data(join_by_tabs(fields if hit.active else [*fields, _ASIDE]))
        return
    # A conversation where it is found first, with all that is found in it.
    order = list(dict.fromkeys(hit.entry.thread_id for hit in found.hits))
    hits = sorted(found.hits, key=lambda hit: order.index(hit.entry.thread_id))
    for thread_id, its in groupby(hits, key=lambda hit: hit.entry.thread_id):
        console.print(
            f"[bold]{escape(found.titles[thread_id])}[/bold]  [dim]{escape(thread_id)}[/dim]", highlight=False
        )
        _print_hits(console, list(its), wanted)


def _print_hits(console: Console, hits: Sequence[Hit], wanted: set[str]) -> None:
    """Print hits of one conversation, each with the messages around it. Hits that stand together are printed in their
    order, where the best of them is."""
    own = {hit.entry.seq: hit for hit in hits}
    for entry in _by_stretch([[hit.entry, *hit.around] for hit in hits]):
        hit = own.get(entry.seq)
        aside = f"  {say(_ASIDE)}" if hit and not hit.active else ""
        line = Text(f"  {_format_time(entry)[:16]} {in_line(entry.name or entry.role)}{aside}  ", style="dim")
        shown = visible(_excerpt_entry(entry, wanted, _CHARS if hit else _AROUND_CHARS))
        line.append_text(_mark_words(shown, wanted) if hit else Text(shown))
        console.print(line, highlight=False)


def _by_stretch(ranked: Sequence[Sequence[Entry]]) -> list[Entry]:
    """Entries by the stretches that they stand in, first that of the best, and in each in their order."""
    rank = {entry.seq: at for at, some in enumerate(ranked) for entry in some}
    entries = sorted((entry for some in ranked for entry in some), key=lambda each: each.seq)
    stretches: list[list[Entry]] = []
    for entry in entries:
        if stretches and entry.seq == stretches[-1][-1].seq + 1:
            stretches[-1].append(entry)
        else:
            stretches.append([entry])
    stretches.sort(key=lambda stretch: min(rank[entry.seq] for entry in stretch))
    return [entry for stretch in stretches for entry in stretch]


def _mark_words(text: str, wanted: set[str]) -> Text:
    """The text with the words that were looked for made plain to see."""
    found = Text()
    for word in text.split(" "):
        found.append(" " * bool(len(found)))
        found.append(word, style="bold yellow not dim" if wanted.intersection(terms(word)) else "not dim")
    return found


def _describe_hit(hit: Hit, titles: dict[str, str], asked: Question) -> dict[str, Any]:
    wanted, entry = set(find_telling_terms(f"{asked.text} {asked.topic}")), hit.entry
    data = {"thread": entry.thread_id, "title": titles[entry.thread_id], **_describe_entry(entry, wanted, _JSON_CHARS)}
    data |= {"score": round(hit.score, 3), "active": hit.active}
    around = [_describe_entry(other, wanted, _JSON_CHARS) for other in hit.around if content_of(other).strip()]
    return data | ({"around": around} if around else {})


def _describe_entry(entry: Entry, wanted: set[str], size: int) -> dict[str, Any]:
    data = {"entry": entry.id, "seq": entry.seq, "role": entry.role, "time": _format_time(entry)}
    if entry.name:
        data["name"] = entry.name
    return data | {"text": excerpt(content_of(entry), wanted, size)}


def _excerpt_entry(entry: Entry, wanted: set[str], size: int) -> str:
    return " ".join(excerpt(content_of(entry), wanted, size).split())


def _format_time(entry: Entry) -> str:
    """Return when it was said, where its sender gave the time, else when it was written."""
    told = entry.metadata.get(SAID_AT)
    at: datetime = entry.created_at
    return str(told) if told else at.isoformat(timespec="seconds")
