"""Validates the fields of documents. References are resolved later."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from longthread.errors import InvalidInput, ToolInvalid
from longthread.model.catalog import Body, Kind
from longthread.tools.arguments import Arguments
from longthread.tools.catalog import address
from longthread.tools.catalog.documents import DefinitionDocument
from longthread.tools.catalog.fields import LONGEST_NAME, FieldProblem, FieldReader, read_route, read_upstream, short
from longthread.tools.catalog.teach import read_examples, read_terms
from longthread.tools.semantic.expressions import read_semantics
from longthread.tools.skill_folder import LONGEST_FRONT, front_problems
from longthread.tools.skills import bundle_problems
from longthread.tools.tool_type import ToolType, find_type, list_types, type_errors

FUNCTION = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""Valid names of tools for models."""
_SECONDS = 86_400


@dataclass(frozen=True, slots=True)
class DefinitionDraft:
    """A definition whose references in `body` are still names or ids."""

    document: DefinitionDocument
    name: str
    body: Body
    id: str | None = None

    @property
    def kind(self) -> Kind:
        return self.document.kind


def draft_of(document: DefinitionDocument, problems: list[str]) -> DefinitionDraft:
    """Reads a document, and adds its `problems`."""
    found: list[FieldProblem] = []
    fields = FieldReader(document.data, found)
    id_ = _id(fields)
    name, body = _READERS[document.kind](fields, document)
    fields.finish()
    problems += [FieldProblem(each.field, each.reason, document.label, each.kind) for each in found]
    return DefinitionDraft(document, name, body, id_)


def _id(fields: FieldReader) -> str | None:
    text = fields.text("id")
    if text is None:
        return None
    try:
        return str(uuid.UUID(text))
    except ValueError:
        fields.problem("id", f"it must be a UUID, and is {short(text)}. Leave it out: the name says which is meant.")
        return None


def _name(fields: FieldReader, given: str | None = None) -> str:
    """The name, by default `given`."""
    name = fields.text("name", required=given is None, longest=LONGEST_NAME) or given
    if name is None:
        return ""
    if fields.expect_line("name", name) and _is_id(name):
        fields.problem("name", "it looks like an id. Give a name.")
    return name


def _is_id(text: str) -> bool:
    try:
        uuid.UUID(text)
    except ValueError:
        return False
    return True


def _agent(fields: FieldReader, document: DefinitionDocument) -> tuple[str, Body]:
    name = _name(fields)
    given = fields.object("config")
    body = {
        "description": fields.text("description"),
        "system_prompt": fields.text("system_prompt", required=True) or "",
        "config": given,
        "skills": fields.texts("skills"),
        "sub_agents": fields.texts("sub_agents"),
        "is_active": fields.flag("is_active", default=True),
    }
    config = fields.within("config", given)
    for model in ("model", "fallback_model", "source"):
        config.text(model, longest=500)
    config.number("temperature", least=0, most=2)
    config.number("max_tokens", least=1, most=10_000_000, whole=True)
    config.number("timeout_seconds", least=0, most=_SECONDS, above=True)
    config.number("retry_attempts", least=0, most=20, whole=True)
    config.number("max_steps", least=1, most=1000, whole=True)
    config.finish()
    return name, body


def _skill(fields: FieldReader, document: DefinitionDocument) -> tuple[str, Body]:
    name = _name(fields)
    if fields.flag("is_builtin", default=False):
        fields.problem("is_builtin", "only Longthread's own skills are built in. Leave it out.")
    config = fields.object("config")
    inside = fields.within("config", config)
    inside.text("instructions")
    inside.flag("always", default=False)
    front = inside.text("front_matter", longest=LONGEST_FRONT)
    for field, problem in (*bundle_problems(config), *(front_problems(front) if front else ())):
        inside.problem(field, problem)
    return name, {
        "description": fields.text("description"),
        "trigger_keywords": fields.texts("trigger_keywords"),
        "tools": [_skill_tool(fields, place, item) for place, item in enumerate(fields.items("tools"))],
        "config": config,
    }


def _skill_tool(fields: FieldReader, place: int, item: Any) -> dict[str, Any]:
    """A tool of a skill: a name, or document 002's object with `tool` or `tool_id`."""
    if isinstance(item, str) and item.strip():
        return {"tool_id": item, "required": False, "default_params": {}}
    if not isinstance(item, Mapping):
        fields.problem(f"tools[{place}]", f"it must be the name of a tool, or an object, and is {short(item)}.")
        return {}
    inside = fields.within(f"tools[{place}]", item)
    named = inside.text("tool")
    tool = inside.text("tool_id", required=named is None)
    if named is not None and tool is not None:
        inside.problem("tool", "there is a tool_id too. Give one of them.")
    found = {
        "tool_id": named or tool or "",
        "required": inside.flag("required", default=False),
        "default_params": inside.object("default_params"),
    }
    inside.finish()
    return found


def _tool(fields: FieldReader, document: DefinitionDocument) -> tuple[str, Body]:
    raw = fields.object("schema")
    raw = raw["function"] if raw.get("type") == "function" and isinstance(raw.get("function"), Mapping) else raw
    schema = fields.within("schema", raw)
    function = schema.text("name")
    name = _name(fields, function)
    implementation = fields.object("implementation", required=True)
    kind = _tool_type(fields, implementation)
    description = fields.text("description") or schema.text("description")
    body = {
        "type": kind,
        "description": description,
        "schema": _schema(fields, schema, raw, kind, name, description),
        "implementation": {"type": kind, **implementation},
        "is_active": fields.flag("is_active", default=True),
    }
    if (tool_type := find_type(kind)) is not None:
        for field in tool_type.fields:
            if field.input == "source":
                fields.within("implementation", implementation).text(field.name, required=True)
        _check_tool(fields, name, tool_type, body)
    return name, body


def _tool_type(fields: FieldReader, implementation: Mapping[str, Any]) -> str:
    """The type, which may be given in the implementation too."""
    inside = implementation.get("type")
    kind = fields.text("type", required=inside is None) or inside
    if kind is not None and kind not in list_types():
        fields.problem("type", f"it must be one of {', '.join(list_types())}, and is {short(kind)}.")
    elif inside is not None and inside != kind:
        fields.problem("implementation.type", f"it is {short(inside)}, and the tool's type is {short(kind)}.")
    return str(kind or "")


def _schema(
    fields: FieldReader, schema: FieldReader, raw: Mapping[str, Any], kind: str, name: str, description: str | None
) -> dict[str, Any]:
    """The schema for models, in OpenAI's form of a function."""
    tool_type = find_type(kind)
    is_required = tool_type is None or not tool_type.serves_tools
    if not fields.has("schema") and is_required:
        fields.problem("schema", "it is missing. Give an object with name, description and parameters.")
    function = schema.text("name") or name
    if function and not FUNCTION.fullmatch(function):
        problem = (
            f"a model can call a tool only by letters, digits, _ and -, at most 64, and this is {short(function)}."
        )
        schema.problem("name", problem)
    found: dict[str, Any] = {"name": function, "description": schema.text("description") or description or ""}
    parameters = schema.object("parameters")
    if "parameters" in raw or is_required:
        found["parameters"] = parameters or {"type": "object", "properties": {}}
    if schema.flag("strict", default=False):
        found["strict"] = True
    schema.finish()
    return found


def _check_tool(fields: FieldReader, name: str, tool_type: ToolType, body: Body) -> None:
    parameters = body["schema"].get("parameters", {})
    try:
        Arguments(parameters, tool=name)
    except ToolInvalid as error:
        fields.problem("schema.parameters", error.problem)
        return
    try:
        with type_errors(str(body["type"]), "check it"):
            tool_type.check(body["implementation"], parameters)
    except ToolInvalid as error:
        fields.problem("implementation", error.problem)


def _source(fields: FieldReader, document: DefinitionDocument) -> tuple[str, Body]:
    name = _name(fields)
    given = fields.text("address", required=True) or ""
    if given:
        try:
            given = address.normalize_address(given, document.folder)
        except InvalidInput as error:
            fields.problem("address", str(error))
    body = {
        "description": fields.text("description"),
        "address": given,
        "is_active": fields.flag("is_active", default=True),
    }
    taught = {
        "terms": read_terms(fields, given),
        "examples": read_examples(fields, given),
        "semantics": read_semantics(fields, given),
    }
    return name, body | {field: value for field, value in taught.items() if value}


def _upstream(fields: FieldReader, document: DefinitionDocument) -> tuple[str, Body]:
    return _name(fields), read_upstream(fields)


def _route(fields: FieldReader, document: DefinitionDocument) -> tuple[str, Body]:
    return _name(fields), read_route(fields)


_READERS = {
    "agent": _agent,
    "skill": _skill,
    "tool": _tool,
    "source": _source,
    "upstream": _upstream,
    "route": _route,
}
