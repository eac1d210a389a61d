"""Writes `src/api/schema.ts`: the answers, bodies and events of the server's API as TypeScript, from its OpenAPI
description: `python web/schema.py`. A test fails while the file is stale."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from longthread.server.app import create_app
from longthread.settings import Settings

FILE = Path(__file__).resolve().parent / "src" / "api" / "schema.ts"
HEAD = """\
// The answers, bodies and events of the server's API. `python web/schema.py` writes this from its OpenAPI description.

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type JsonObject = { [name: string]: Json };
/** A text of JSON: parsed, it is such a value. */
export type JsonText<Value> = string & { readonly json?: Value };
"""
ROOTS = ("ServerSentEvent", "Problem")
"""Schemas that the page reads besides the answers and bodies of its routes."""
OTHER_ROUTES = "/ag-ui/"
"""The prefix of routes that the page does not use."""
_REF = "#/components/schemas/"
_PLAIN = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}


def main() -> None:
    """Write the file."""
    FILE.write_text(render(create_app(Settings.load(env_file=None)).openapi()))


def render(description: Mapping[str, Any]) -> str:
    """Return the TypeScript of the schemas that the page's routes refer to, in alphabetical order."""
    schemas = description["components"]["schemas"]
    paths = [methods for path, methods in description["paths"].items() if not path.startswith(OTHER_ROUTES)]
    operations = [operation for methods in paths for operation in methods.values()]
    wanted = {*ROOTS, *(name for operation in operations for name in _names(_bodies(operation)))}
    waiting = list(wanted)
    while waiting:
        new = set(_names(schemas[waiting.pop()])) - wanted
        wanted |= new
        waiting += new
    return "\n".join([HEAD, *(_declaration(name, schemas[name]) for name in sorted(wanted))])


def _bodies(operation: Mapping[str, Any]) -> list[Any]:
    """The body that an operation takes, and those that it answers with unless it fails."""
    answers = [answer for status, answer in operation["responses"].items() if status < "400"]
    return [operation.get("requestBody"), *answers]


def _names(node: Any) -> Iterator[str]:
    """The schemas that a part of the description refers to."""
    yield from re.findall(rf'"{re.escape(_REF)}([^"]+)"', json.dumps(node))


def _declaration(name: str, schema: Mapping[str, Any]) -> str:
    words = " ".join(schema.get("description", "").split())
    comment = _comment(words) if words else ""
    if "properties" not in schema:
        return f"{comment}export type {name} = {_type(schema)};\n"
    return f"{comment}export interface {name} {_object(schema, '')}\n"


def _comment(words: str) -> str:
    lines = textwrap.wrap(words, 117, break_long_words=False, break_on_hyphens=False)
    return (
        f"/** {lines[0]} */\n" if len(words) < 110 else "\n".join(["/**", *(f" * {line}" for line in lines), " */", ""])
    )


def _object(schema: Mapping[str, Any], indent: str) -> str:
    required = schema.get("required", ())
    fields = [
        f"{indent}  {_key(name)}{'' if name in required else '?'}: {_type(each, f'{indent}  ')};\n"
        for name, each in schema["properties"].items()
    ]
    return f"{{\n{''.join(fields)}{indent}}}"


def _key(name: str) -> str:
    return name if name.isidentifier() else json.dumps(name)


def _type(schema: Mapping[str, Any], indent: str = "") -> str:
    """The TypeScript type of values that a schema allows."""
    if "$ref" in schema:
        return str(schema["$ref"]).removeprefix(_REF)
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return _union(_type(each, indent) for each in schema[key])
    if "contentSchema" in schema:
        return f"JsonText<{_type(schema['contentSchema'], indent)}>"
    if "enum" in schema or "const" in schema:
        return _union(json.dumps(each) for each in schema.get("enum", [schema.get("const")]))
    kind = schema.get("type")
    if isinstance(kind, list):
        return _union(_PLAIN[each] for each in kind)
    if kind == "array":
        item = _type(schema.get("items", {}), indent)
        return f"({item})[]" if " | " in item else f"{item}[]"
    if kind == "object":
        return _object(schema, indent) if "properties" in schema else _record(schema, indent)
    return _PLAIN[kind] if kind else "Json"


def _record(schema: Mapping[str, Any], indent: str) -> str:
    """The type of an object whose keys are not known before."""
    values = [*schema.get("patternProperties", {}).values(), schema.get("additionalProperties")]
    value = next((each for each in values if isinstance(each, dict)), None)
    return "JsonObject" if value is None else f"Record<string, {_type(value, indent)}>"


def _union(types: Iterable[str]) -> str:
    """The types, each once; null last."""
    parts = dict.fromkeys(part for each in types for part in ([each] if each.startswith("{") else each.split(" | ")))
    return " | ".join(sorted(parts, key=lambda each: each == "null"))


if __name__ == "__main__":
    main()
