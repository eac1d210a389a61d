"""The page's types of the server's answers, which `web/schema.py` writes from the server's description."""

from __future__ import annotations

import json
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.server.described import check_event, description

WEB = Path(__file__).parents[2] / "web"
RECORDED = sorted((WEB / "src" / "stream" / "recorded").glob("*.json"))


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = spec_from_file_location("schema", WEB / "schema.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_pages_types_are_those_of_the_server(generator: ModuleType) -> None:
    stale = generator.FILE.read_text() != generator.render(description())
    assert not stale, "web/src/api/schema.ts is not what the server describes: run `python web/schema.py`"


@pytest.mark.parametrize(
    ("schema", "type_"),
    [
        ({"type": "string", "format": "date-time"}, "string"),
        ({"type": ["integer", "string"]}, "number | string"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}, {"type": "number"}]}, "number | null"),
        ({"anyOf": [{"type": "string", "enum": ["a", "b"]}, {"const": "c"}]}, '"a" | "b" | "c"'),
        ({"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "null"}]}}, "(string | null)[]"),
        ({"type": "array", "items": {"type": "array", "items": {}}}, "Json[][]"),
        ({"type": "object", "additionalProperties": True}, "JsonObject"),
        (
            {"type": "object", "additionalProperties": {"$ref": "#/components/schemas/StepView"}},
            "Record<string, StepView>",
        ),
        ({"type": "object", "patternProperties": {"^a$": {"type": "boolean"}}}, "Record<string, boolean>"),
        ({"type": "string", "contentSchema": {"$ref": "#/components/schemas/Event"}}, "JsonText<Event>"),
        (
            {"type": "object", "properties": {"a-b": {}, "c": {}}, "required": ["c"]},
            '{\n  "a-b"?: Json;\n  c: Json;\n}',
        ),
    ],
)
def test_a_schema_is_a_type(generator: ModuleType, schema: dict[str, Any], type_: str) -> None:
    assert generator._type(schema) == type_


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_the_events_that_the_pages_tests_read_are_as_described(path: Path) -> None:
    for each in json.loads(path.read_text())["events"]:
        check_event(each["event"])
