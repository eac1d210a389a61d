"""The eval of recall: how many of the entries that answer a question are among the first ones found.

A file has one JSON object a line. An entry: `{"type": "entry", "collection", "id", "role", "name", "text", "time"}`,
whose role is `user`, `assistant` or `tool`. A question: `{"type": "query", "collection", "text", "relevant": [ids],
"category"}`, asked within its collection, which is one thread. The score is the mean over questions of
|first k ∩ relevant| / |relevant|; `with_neighbours` counts the entries around the first k hits too, as a model is shown
them, and `by_role` looks at the relevant entries of one role, over the questions that have some.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from longthread.errors import EvalInvalid
from longthread.memory.index.indexer import SAID_AT, index_thread
from longthread.memory.recall import Question, Recaller
from longthread.model.entry import Draft, Role
from longthread.model.ids import new_id
from longthread.model.thread import Scope
from longthread.store import log
from longthread.store.driver import Driver
from longthread.store.transfer.threads import TransferProgress

USER = "eval"
_PAGE = 2000
_ROLES: Mapping[str, Role] = {"user": "user", "assistant": "assistant", "tool": "tool"}


@dataclass(slots=True)
class Collection:
    entries: list[Mapping[str, Any]] = field(default_factory=list)
    questions: list[Mapping[str, Any]] = field(default_factory=list)


def read_collections(path: Path) -> dict[str, Collection]:
    """Return the collections of a file. Raises EvalInvalid: a line is malformed; the message says which."""
    found: dict[str, Collection] = {}
    number = 0
    try:
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                number += 1
                if line.strip():
                    _take(found, json.loads(line))
    except KeyError as error:
        raise EvalInvalid(where=path, reason=f"line {number} has no {error}.") from None
    except UnicodeDecodeError:
        raise EvalInvalid(where=path, reason="it is no text in UTF-8.") from None
    except (ValueError, TypeError) as error:
        raise EvalInvalid(where=path, reason=f"line {number}: {error}.") from None
    except OSError as error:
        raise EvalInvalid(where=path, reason=f"{error.strerror or error}.") from None
    for name, collection in found.items():
        known = {entry["id"] for entry in collection.entries}
        if len(known) < len(collection.entries):
            twice = Counter(entry["id"] for entry in collection.entries).most_common(1)[0][0]
            reason = f"collection {name} has several entries {twice!r}. Give each an id of its own."
            raise EvalInvalid(where=path, reason=reason)
        lost = sorted({i for question in collection.questions for i in question["relevant"]} - known)
        if lost:
            raise EvalInvalid(where=path, reason=f"collection {name} has no entry {lost[0]}.")
    if not any(collection.questions for collection in found.values()):
        raise EvalInvalid(where=path, reason="it asks nothing.")
    return found


def _take(found: dict[str, Collection], row: Any) -> None:
    if not isinstance(row, Mapping):
        raise ValueError("it is no JSON object")
    collection = found.setdefault(str(row["collection"]), Collection())
    if row["type"] == "entry":
        if row["role"] not in _ROLES:
            raise ValueError(f"the role is {row['role']!r}; allowed is {', '.join(_ROLES)}")
        entry = {"id": str(row["id"]), "text": str(row["text"]).replace("\x00", "\ufffd"), "role": _ROLES[row["role"]]}
        collection.entries.append(entry | {"name": row.get("name"), "time": row.get("time")})
    elif row["type"] == "query":
        if not isinstance(row["relevant"], list) or not row["relevant"]:
            raise ValueError("a query names the entries that answer it as a list, in 'relevant'")
        relevant = [str(i) for i in row["relevant"]]
        asked = {"text": str(row["text"]), "relevant": relevant, "category": str(row.get("category"))}
        collection.questions.append(asked)
    else:
        raise ValueError(f"its type is {row['type']!r}; allowed is entry or query")


async def evaluate(
    store: Driver,
    collections: Mapping[str, Collection],
    recaller: Recaller,
    ks: Sequence[int],
    progress: TransferProgress,
) -> dict[str, Any]:
    """Store the collections, ask their questions, and delete them again; return the measures."""
    threads = {name: f"eval-{new_id()}" for name in collections}
    asked = [(name, question) for name, collection in collections.items() for question in collection.questions]
    warnings: list[str] = []
    try:
        for done, (name, collection) in enumerate(collections.items()):
            progress(done, len(collections), f"loading {name}")
            await _load(store, threads[name], collection.entries)
            await index_thread(store, threads[name])
            warnings += await recaller.prepare(Scope(USER, threads[name]))
        found: list[_Answer] = []
        for done, (name, question) in enumerate(asked):
            progress(done, len(asked), "asking")
            found.append(await _answer(recaller, name, question, Scope(USER, threads[name]), ks))
    finally:
        await _unload(store, threads.values())
    return {
        "queries": len(asked),
        "entries": sum(len(collection.entries) for collection in collections.values()),
        **_measures(found, _roles(collections), ks),
        "backend": {"postgres": "postgresql"}.get(store.dialect, store.dialect),
        "embedder": recaller.embedder_name,
    } | ({"warnings": sorted(set(warnings))} if warnings else {})


async def _answer(
    recaller: Recaller, collection: str, question: Mapping[str, Any], scope: Scope, ks: Sequence[int]
) -> _Answer:
    """Ask for the most hits, timed, and then for fewer: the entries around them depend on how many they are."""
    hits: dict[int, Sequence[Sequence[str]]] = {}
    took = 0.0
    for k in sorted(set(ks), reverse=True):
        started = time.perf_counter()
        recalled = await recaller.find(Question(question["text"], scope, k=k))
        took = took or 1000 * (time.perf_counter() - started)
        hits[k] = [[log.sent_id(entry) for entry in (hit.entry, *hit.around)] for hit in recalled.hits]
    return _Answer(collection, question, hits, took)


async def _load(store: Driver, thread_id: str, entries: Sequence[Mapping[str, Any]]) -> None:
    for start in range(0, len(entries), _PAGE):
        drafts = [_draft(entry) for entry in entries[start : start + _PAGE]]
        async with store.writing() as tx:
            await log.create_thread(tx, thread_id, user_id=USER)
            tip, size = await log.position(tx, thread_id)
            await log.append(tx, thread_id, drafts, tip=tip, size=size)


def _draft(entry: Mapping[str, Any]) -> Draft:
    role: Role = entry["role"]
    said = {SAID_AT: entry["time"]} if entry["time"] else {}
    return Draft(entry["id"], role, entry["text"], name=entry["name"], metadata=said)


async def _unload(store: Driver, thread_ids: Iterable[str]) -> None:
    for thread_id in thread_ids:
        async with store.writing() as tx:
            await tx.run("delete_thread", id=thread_id, user_id=USER)


@dataclass(frozen=True, slots=True)
class _Answer:
    """A question's hits, by k: the id of each hit, then those of the entries around it."""

    collection: str
    question: Mapping[str, Any]
    hits: Mapping[int, Sequence[Sequence[str]]]
    milliseconds: float

    def shares(self, wanted: Set[str], ks: Sequence[int], *, around: bool = False) -> dict[int, float]:
        """By k, the share of the wanted entries among the first k hits, or `around` them too."""
        found = {k: {one for hit in self.hits[k] for one in (hit if around else hit[:1])} for k in ks}
        return {k: len(wanted & found[k]) / len(wanted) for k in ks}


def _roles(collections: Mapping[str, Collection]) -> dict[str, dict[str, Role]]:
    return {name: {entry["id"]: entry["role"] for entry in c.entries} for name, c in collections.items()}


def _measures(found: Sequence[_Answer], roles: Mapping[str, Mapping[str, Role]], ks: Sequence[int]) -> dict[str, Any]:
    whole, shown = [], []
    by_category: dict[str, list[dict[int, float]]] = {}
    by_role: dict[str, tuple[list[dict[int, float]], list[dict[int, float]]]] = {}
    for answer in found:
        relevant = set(answer.question["relevant"])
        whole.append(answer.shares(relevant, ks))
        shown.append(answer.shares(relevant, ks, around=True))
        by_category.setdefault(answer.question["category"], []).append(whole[-1])
        its = roles[answer.collection]
        for role in {its[one] for one in relevant}:
            said = {one for one in relevant if its[one] == role}
            of_role, shown_of_role = by_role.setdefault(role, ([], []))
            of_role.append(answer.shares(said, ks))
            shown_of_role.append(answer.shares(said, ks, around=True))
    times = sorted(answer.milliseconds for answer in found)
    return {
        **_both(whole, shown),
        "by_role": {role: _both(*shares) for role, shares in sorted(by_role.items())},
        "by_category": {category: _means(shares) for category, shares in sorted(by_category.items())},
        "p50_ms": round(_quantile(times, 0.5), 2),
        "p95_ms": round(_quantile(times, 0.95), 2),
    }


def _both(found: Sequence[Mapping[int, float]], shown: Sequence[Mapping[int, float]]) -> dict[str, dict[str, float]]:
    return {"recall": _means(found), "with_neighbours": _means(shown)}


def _means(shares: Sequence[Mapping[int, float]]) -> dict[str, float]:
    return {str(k): round(sum(each[k] for each in shares) / len(shares), 4) for k in shares[0]}


def _quantile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
