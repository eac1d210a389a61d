"""Business terms and examples of a source: reads, checks, adds and removes them."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from longthread.errors import InvalidInput, SqlRefused
from longthread.tools.analysis.address import is_url, parse_url
from longthread.tools.analysis.guard import Guard
from longthread.tools.analysis.open import dialect_of
from longthread.tools.catalog.fields import LONGEST_NAME, FieldReader, short

LONGEST_MEANING = 2_000
LONGEST_SQL = 10_000


Items = Sequence[Mapping[str, Any]]
"""Terms or examples of a definition."""


def read_terms(fields: FieldReader, address: str) -> list[dict[str, Any]]:
    """Reads the terms of a source: name, meaning, sql, synonyms."""
    found: list[dict[str, Any]] = []
    for inside in fields.objects("terms"):
        sql = inside.text("sql", longest=LONGEST_SQL)
        term: dict[str, Any] = {
            "name": inside.text("name", required=True, longest=LONGEST_NAME) or "",
            "meaning": inside.text("meaning", longest=LONGEST_MEANING),
            "sql": sql,
            "synonyms": inside.texts("synonyms"),
        }
        if term["meaning"] is None and sql is None:
            inside.problem("meaning", "it is missing, and so is sql. Give one of them.")
        _check_sql(inside, sql, address, is_part=True)
        inside.finish()
        if any(_same(each["name"], term["name"]) for each in found):
            inside.problem("name", f"{short(term['name'])} stands there twice.")
        found.append({name: value for name, value in term.items() if value})
    return found


def read_examples(fields: FieldReader, address: str) -> list[dict[str, Any]]:
    """Reads the examples of a source: question and sql."""
    found: list[dict[str, Any]] = []
    for inside in fields.objects("examples"):
        example = {
            "question": inside.text("question", required=True, longest=LONGEST_MEANING) or "",
            "sql": inside.text("sql", required=True, longest=LONGEST_SQL) or "",
        }
        _check_sql(inside, example["sql"], address, is_part=False)
        inside.finish()
        if any(_same(each["question"], example["question"]) for each in found):
            inside.problem("question", "it stands there twice.")
        found.append(example)
    return found


def taught(body: Mapping[str, Any], *, terms: Items, examples: Items) -> dict[str, Any]:
    """Adds or replaces terms and examples, by name and question."""
    return {
        **body,
        "terms": _merge_items(body.get("terms") or [], terms, "name"),
        "examples": _merge_items(body.get("examples") or [], examples, "question"),
    }


def untaught(body: Mapping[str, Any], *, terms: Sequence[str], examples: Sequence[str]) -> dict[str, Any]:
    """Removes terms by name and examples by question. Raises InvalidInput: one is missing."""
    return {
        **body,
        "terms": _without(body.get("terms") or [], terms, "name", "term"),
        "examples": _without(body.get("examples") or [], examples, "question", "example"),
    }


def with_semantics(body: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Adds or replaces metrics and dimensions, by name, and adds joins."""
    there = body.get("semantics") or {}
    made = {
        kind: _merge_items(there.get(kind) or [], given.get(kind) or [], "name") for kind in ("metrics", "dimensions")
    }
    joins = [
        *(there.get("joins") or []),
        *(each for each in given.get("joins") or [] if each not in there.get("joins", [])),
    ]
    return {**body, "semantics": {**made, "joins": joins}}


def name_of(address: str) -> str:
    """A name for a source from its address: its file or database."""
    if is_url(address):
        url = parse_url(address)
        return PurePath(url.database or url.host or "source").stem[:LONGEST_NAME]
    return (PurePath(address).stem or address)[:LONGEST_NAME]


def _check_sql(fields: FieldReader, sql: str | None, address: str, *, is_part: bool) -> None:
    """Checks that SQL only reads. A term may have a part of a statement, such as `sum(amount)`."""
    if not sql:
        return
    guard = Guard(dialect_of(address))
    try:
        try:
            guard.check(sql)
        except SqlRefused:
            if not is_part:
                raise
            guard.check(f"SELECT {sql}")
    except SqlRefused as error:
        fields.problem("sql", str(error))


def _same(one: Any, other: Any) -> bool:
    return _key(one) == _key(other)


def _key(text: Any) -> str:
    return " ".join(unicodedata.normalize("NFKC", str(text)).casefold().split())


def _merge_items(there: Items, given: Items, name: str) -> list[Mapping[str, Any]]:
    found = {_key(each[name]): each for each in there}
    return list((found | {_key(each[name]): each for each in given}).values())


def _without(there: Items, names: Sequence[str], name: str, kind: str) -> list[Mapping[str, Any]]:
    known = {_key(each[name]) for each in there}
    for given in names:
        if _key(given) not in known:
            hint = "`longthread sources teach SOURCE` lists those there are."
            raise InvalidInput(reason=f"There is no {kind} {short(given)}: {hint}")
    gone = {_key(each) for each in names}
    return [each for each in there if _key(each[name]) not in gone]
