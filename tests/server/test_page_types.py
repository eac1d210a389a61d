"""The page's types of the server's answers, against the server's own description."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.server.described import description

API = Path(__file__).parents[2] / "web" / "src" / "api"
INTERFACE = re.compile(r"^export interface (\w+)(?: extends ([\w, ]+))? \{\n(.*?)^\}", re.M | re.S)
ALIAS = re.compile(r"^export type (\w+) = ([^;{]+);", re.M)
FIELD = re.compile(r"^  (?:readonly )?(\w+)(\?)?: (.+);", re.M)
SOURCES = [path.read_text() for path in sorted(API.glob("*.ts")) if path.name != "client.ts"]
ALIASES = {name: value for text in SOURCES for name, value in ALIAS.findall(text)}
"""The literal types, which fields name."""
OTHERS = {"Asked", "Attributes", "BoardChange", "CardChange", "Lineage", "Observation", "PageAsked", "Stretch"}
"""What the page asks with, and what several answers have in common."""

Fields = dict[str, dict[str, Any]]


def interfaces() -> dict[str, tuple[list[str], Fields]]:
    """Each interface of the page: those that it extends, and its own fields."""
    found = {}
    for text in SOURCES:
        for name, extends, body in INTERFACE.findall(text):
            bases = [each.strip() for each in extends.split(",") if each.strip()]
            found[name] = bases, {field: of_page(kind, optional) for field, optional, kind in FIELD.findall(body)}
    return found


def of_page(kind: str, optional: str) -> dict[str, Any]:
    kind = re.sub(r"\{.*\}", "", kind)  # what is inside an object is not looked at
    for _ in range(3):  # an alias may name another
        kind = re.sub(r"\b\w+\b", lambda word: ALIASES.get(word[0], word[0]), kind)
    words = set(re.findall(r'"([^"]*)"', kind)) if "[" not in kind and "Record" not in kind else set()
    return {"optional": bool(optional), "null": re.search(r"\bnull\b", kind) is not None, "words": words}


def whole(name: str, found: dict[str, tuple[list[str], Fields]]) -> Fields:
    bases, own = found[name]
    return {field: each for base in bases for field, each in whole(base, found).items()} | own


def of_server(schema: dict[str, Any], schemas: dict[str, Any]) -> Fields:
    required = set(schema.get("required", ()))
    return {
        field: {"optional": field not in required, **kind_of(each, schemas)}
        for field, each in schema["properties"].items()
    }


def kind_of(schema: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    parts = list(parts_of(schema, schemas))
    words = {word for part in parts for word in part.get("enum", [part["const"]] if "const" in part else ())}
    return {"null": any(part.get("type") == "null" for part in parts), "words": words}


def parts_of(schema: dict[str, Any], schemas: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if "$ref" in schema:
        yield from parts_of(schemas[schema["$ref"].rsplit("/", 1)[1]], schemas)
    elif "anyOf" in schema:
        for each in schema["anyOf"]:
            yield from parts_of(each, schemas)
    else:
        yield schema


PAGE = interfaces()


@pytest.fixture(scope="module")
def schemas() -> dict[str, Any]:
    found: dict[str, Any] = description()["components"]["schemas"]
    return found


def test_each_type_of_the_page_is_one_of_the_server(schemas: dict[str, Any]) -> None:
    assert len(PAGE) > 50
    assert {name for name in PAGE if name not in schemas} == OTHERS


@pytest.mark.parametrize("name", sorted(PAGE.keys() - OTHERS))
def test_a_type_of_the_page_has_the_fields_of_the_server(name: str, schemas: dict[str, Any]) -> None:
    page, server = whole(name, PAGE), of_server(schemas[name], schemas)
    for field in page.keys() & server.keys():
        if not page[field]["words"]:  # text, as far as the page knows
            server[field]["words"] = set()
    assert page == server
