"""Answers, compared with what the server's OpenAPI description says of them."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import httpx
from jsonschema import Draft202012Validator

from longthread.server.app import create_app
from longthread.settings import Settings


@cache
def description() -> dict[str, Any]:
    return create_app(Settings.load(env_file=None)).openapi()


@cache
def _paths() -> list[tuple[re.Pattern[str], str]]:
    """The paths of the API as patterns; those with fewer placeholders first."""
    paths = sorted(description()["paths"], key=lambda path: path.count("{"))
    return [(re.compile(re.sub(r"\{\w+\}", "[^/]+", path)), path) for path in paths]


@cache
def _schema(path: str, method: str, status: str, kind: str) -> Draft202012Validator:
    operation = description()["paths"][path][method]
    declared = operation["responses"].get(status)
    assert declared is not None, f"{method} {path} answers {status}, and its description says nothing of that"
    content = declared.get("content", {})
    assert kind in content or (not content and not kind), f"{method} {path} answers {status} as {kind or 'nothing'}"
    schema = content[kind]["schema"] if content else {}
    return Draft202012Validator({**schema, "components": description()["components"]})


@cache
def _event_schema(kind: str, name: str) -> Draft202012Validator:
    """The schema of a run's events of a kind; of AG-UI's custom events, of that name."""
    components = description()["components"]
    schema = components["schemas"]["Event"]["discriminator"]["mapping"][kind]
    if kind == "CUSTOM":
        refs = [each["$ref"] for each in components["schemas"]["CustomEvent"]["oneOf"]]
        names = {components["schemas"][ref.rsplit("/", 1)[1]]["properties"]["name"]["const"]: ref for ref in refs}
        schema = names[name]
    return Draft202012Validator({"$ref": schema, "components": components})


def check_event(event: dict[str, Any]) -> None:
    """Fail if an event of a run's stream is not as described."""
    validator = _event_schema(event["type"], event.get("name", ""))
    wrong = [f"{error.json_path}: {error.message}" for error in validator.iter_errors(event)]
    assert not wrong, f"{event}: {wrong}"


def check(answer: httpx.Response) -> None:
    """Fail if an answer of the API is not as described. Streams are not read."""
    raw = answer.request.url.raw_path.partition(b"?")[0].decode()
    path = next((path for pattern, path in _paths() if pattern.fullmatch(raw)), None)
    method = answer.request.method.lower()
    if path is None or method not in description()["paths"][path]:
        return
    kind = answer.headers.get("content-type", "").partition(";")[0]
    validator = _schema(path, method, str(answer.status_code), kind)
    if kind.endswith("json"):
        answer.read()
        wrong = [f"{error.json_path}: {error.message}" for error in validator.iter_errors(answer.json())]
        assert not wrong, f"{method} {path} answers {answer.status_code}: {wrong}"
