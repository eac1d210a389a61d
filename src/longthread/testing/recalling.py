"""The eval of recall: how many of the entries that answer a question are among the first ones found.

A file has one JSON object a line. An entry: `{"type": "entry", "collection", "id", "role", "name", "text", "time"}`,
whose role is `user`, `assistant` or `tool`. A question: `{"type": "query", "collection", "text", "relevant": [ids],
"category"}`, asked within its collection, which is one thread. The score is the mean over questions of
|first k ∩ relevant| / |relevant|.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from longthread.errors import EvalInvalid
from longthread.memory.indexing import SAID_AT, index_thread
from longthread.memory.recall import Question, Recaller
from longthread.model.entry import Draft, Role
from longthread.model.ids import new_id
from longthread.store import log
from longthread.store.driver import Driver
from longthread.store.recall import Scope
from longthread.store.transfer import Progress

USER = "eval"
_PAGE = 2000
_ROLES: Mapping[str, Role] = {"user": "user", "assistant": "assistant", "tool": "tool"}


@dataclass(slots=True)
class Collection:
    """Entries that were said one after the other, and what is asked about them."""

    entries: list[Mapping[str, Any]] = field(default_factory=list)
    questions: list[Mapping[str, Any]] = field(default_factory=list)


def read_collections(path: Path) -> dict[str, Collection]:
    """The collections of a file.

    Raises:
        EvalInvalid: a line is not as it should be; the message says which.
    """
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
    store: Driver, collections: Mapping[str, Collection], recaller: Recaller, ks: Sequence[int], progress: Progress
) -> dict[str, Any]:
    """Put the collections into a store, ask their questions, and take them out again; the measures."""
    threads = {name: f"eval-{new_id()}" for name in collections}
    asked = [(name, question) for name, collection in collections.items() for question in collection.questions]
    warnings: list[str] = []
    try:
        for done, (name, collection) in enumerate(collections.items()):
            progress(done, len(collections), f"loading {name}")
            await _load(store, threads[name], collection.entries)
            await index_thread(store, threads[name])
            warnings += await recaller.prepare(Scope(USER, threads[name]))
        found: list[tuple[Mapping[str, Any], list[str], float]] = []
        for done, (name, question) in enumerate(asked):
            progress(done, len(asked), "asking")
            started = time.perf_counter()
            wanted = Question(question["text"], Scope(USER, threads[name]), k=max(ks))
            recalled = await recaller.find(wanted)
            took = 1000 * (time.perf_counter() - started)
            found.append((question, [log.sent_id(hit.entry) for hit in recalled.hits], took))
    finally:
        await _unload(store, threads.values())
    return {
        "queries": len(asked),
        "entries": sum(len(collection.entries) for collection in collections.values()),
        **_measures(found, ks),
        "backend": {"postgres": "postgresql"}.get(store.dialect, store.dialect),
        "embedder": recaller.embedder_name,
    } | ({"warnings": sorted(set(warnings))} if warnings else {})


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


def _measures(found: Sequence[tuple[Mapping[str, Any], list[str], float]], ks: Sequence[int]) -> dict[str, Any]:
    shares: dict[str, dict[int, list[float]]] = {}
    for question, ids, _ in found:
        relevant = set(question["relevant"])
        for k in ks:
            share = len(relevant.intersection(ids[:k])) / len(relevant)
            for group in ("", question["category"]):
                shares.setdefault(group, {}).setdefault(k, []).append(share)
    means = {g: {str(k): round(sum(all_) / len(all_), 4) for k, all_ in by.items()} for g, by in shares.items()}
    times = sorted(took for _, _, took in found)
    return {
        "recall": means.pop(""),
        "by_category": dict(sorted(means.items())),
        "p50_ms": round(_quantile(times, 0.5), 2),
        "p95_ms": round(_quantile(times, 0.95), 2),
    }


def _quantile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
