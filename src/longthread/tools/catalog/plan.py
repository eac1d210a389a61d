"""Turns drafts into changes, which can be shown: resolves references and checks the whole catalog."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from longthread.errors import ArgumentsInvalid, ToolInvalid
from longthread.model.catalog import (
    BUILTIN,
    BY_NAME,
    LOAD_SKILL,
    Definition,
    Kind,
    Version,
    references,
    same,
    skill_tools,
    tool_of,
)
from longthread.model.ids import new_id
from longthread.store.catalog import StoredDefinition
from longthread.tools.arguments import Arguments
from longthread.tools.catalog.drafts import DefinitionDraft
from longthread.tools.catalog.fields import FieldKind, FieldProblem, near
from longthread.tools.catalog.names import DefinitionKey, Names

Action = Literal["created", "changed", "unchanged"]
_MARKS = {"created": "+", "changed": "~", "unchanged": "="}
_ABSENT = object()
_LONGEST = 160
"""Characters of a value in a line."""


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One changed field. `has_old` and `has_new` say whether there is a value."""

    path: str
    old: Any = None
    new: Any = None
    has_old: bool = True
    has_new: bool = True


@dataclass(frozen=True, slots=True)
class Change:
    """The change of a definition from `before`, None for a new one. `fields` are the changed fields, as people write
    them."""

    action: Action
    definition: Definition
    before: int | None
    fields: Sequence[FieldChange]
    where: str = ""

    @property
    def kind(self) -> Kind:
        return self.definition.kind

    @property
    def name(self) -> str:
        return self.definition.name

    def to_json(self) -> dict[str, Any]:
        """The change for a program."""
        fields = [
            {"path": each.path}
            | ({"old": each.old} if each.has_old else {})
            | ({"new": each.new} if each.has_new else {})
            for each in self.fields
        ]
        return {
            "kind": self.kind,
            "name": self.name,
            "id": self.definition.id,
            "action": self.action,
            "version": self.definition.version,
            "before": self.before,
            "changes": fields,
        }


def compare_objects(old: Mapping[str, Any], new: Mapping[str, Any], path: str = "") -> Iterator[FieldChange]:
    """The differing fields of two objects, recursively."""
    for key in [*old, *(key for key in new if key not in old)]:
        before, after, inside = old.get(key, _ABSENT), new.get(key, _ABSENT), f"{path}.{key}" if path else key
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            yield from compare_objects(before, after, inside)
        elif before is _ABSENT:
            yield FieldChange(inside, new=after, has_old=False)
        elif after is _ABSENT:
            yield FieldChange(inside, old=before, has_new=False)
        elif not same(before, after):
            yield FieldChange(inside, before, after)


def lines(change: Change) -> Iterator[str]:
    """The lines of a change, for people."""
    version = f"v{change.definition.version}"
    if change.action == "changed":
        version = f"v{change.before} → {version}"
    note = "" if change.action == "unchanged" else f"  {version}"
    yield f"{_MARKS[change.action]} {change.kind} {change.name}{note}"
    if change.action == "changed":
        for field in change.fields:
            yield from _field(field)


def _field(field: FieldChange) -> Iterator[str]:
    if _is_long(field.old) and _is_long(field.new):
        yield f"    {field.path}:"
        found = difflib.unified_diff(field.old.splitlines(), field.new.splitlines(), lineterm="", n=1)
        yield from (f"      {_cut(line)}" for line in list(found)[2:])
    elif _is_names(field.old) and _is_names(field.new) and sorted(field.old) != sorted(field.new):
        gone = [f"- {name}" for name in field.old if name not in field.new]
        come = [f"+ {name}" for name in field.new if name not in field.old]
        yield f"    {field.path}: {', '.join([*gone, *come])}"
    else:
        old = _format_value(field.old) if field.has_old else "nothing"
        new = _format_value(field.new) if field.has_new else "nothing"
        yield f"    {field.path}: {old} → {new}"


def _is_long(value: Any) -> bool:
    return isinstance(value, str) and "\n" in value


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _format_value(value: Any) -> str:
    return _cut(json.dumps(value, ensure_ascii=False))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


_RESERVED = {tool_of(each).function for (kind, _), each in BUILTIN.items() if kind == "tool"}
_RESERVED |= {LOAD_SKILL, "finish", "json_parse_error"}
"""Names of built-in tools, and of the JSON protocol."""
_REFERRING: Mapping[Kind, str] = {
    "agent": "config.source",
    "tool": "implementation.database",
    "route": "upstream",
}
"""The fields that name one of `BY_NAME`."""


@dataclass(frozen=True, slots=True)
class KnownCatalog:
    """The stored definitions, and the last versions of deleted ones. What drafts name for the first time must be
    `usable`; no problem names anything else."""

    stored: Sequence[StoredDefinition]
    deleted: Sequence[Version] = ()
    usable: Callable[[Definition], bool] = lambda _: True


def plan_changes(known: KnownCatalog, drafts: Sequence[DefinitionDraft], problems: list[str]) -> list[Change]:
    """The changes of drafts, in their order. Nothing may be written if there are `problems`."""
    before = Names(each.definition for each in known.stored)
    made = [_identify_definition(before, known, draft, problems) for draft in drafts]
    _expect_each_once(made, drafts, problems)
    after = Names({**before.by_key, **{(each.kind, each.id): each for each in made}}.values())
    made = [
        _resolve_names(_nameable(known, before, after, each), each, draft, problems)
        for each, draft in zip(made, drafts, strict=True)
    ]
    after = Names({**before.by_key, **{(each.kind, each.id): each for each in made}}.values())
    built_in = "the {} {} is built in and stays as it is. Give yours another name."
    problems += [
        FieldProblem("name", built_in.format(each.kind, each.name), draft.document.label)
        for each, draft in zip(made, drafts, strict=True)
        if each.is_builtin and not same(each.body, BUILTIN[each.kind, each.id].body)
    ]
    labels = {(each.kind, each.id): draft.document.label for each, draft in zip(made, drafts, strict=True)}
    _expect_names_free(after, labels, problems)
    problems += [
        FieldProblem(
            wrong.field,
            wrong.reason,
            labels.get((each.kind, each.id)) or _label_affected(known, each),
            wrong.kind,
        )
        for each in _find_affected(before, after, labels)
        for wrong in _wrong(after, _nameable(known, before, after, each), each)
    ]
    return [_change(before, after, each, labels) for each in made]


def _nameable(known: KnownCatalog, before: Names, after: Names, made: Definition) -> Names:
    """The definitions that a definition may name: usable ones, those of the drafts, and those it named before."""
    old = before.by_key.get((made.kind, made.id))
    kept = {(each.kind, each.id) for each in before.targets(old)} if old is not None else set()
    found = after.by_key.items()
    return Names(each for key, each in found if key in kept or key not in before.by_key or known.usable(each))


def _label_affected(known: KnownCatalog, each: Definition) -> str:
    return f"{each.kind} {each.name}, which is there" if known.usable(each) else f"another {each.kind} that uses it"


def _identify_definition(before: Names, known: KnownCatalog, draft: DefinitionDraft, problems: list[str]) -> Definition:
    """The definition of a draft's id or name, or a new one."""
    kind, name = draft.kind, draft.name
    if draft.id is not None:
        found = [before.by_key[kind, draft.id]] if (kind, draft.id) in before.by_key else []
    else:
        found = [each for each in before.find_definitions(kind, name) if each.name == name]
    if len(found) > 1:
        ids = ", ".join(each.id for each in found)
        reason = f"several have it ({ids}). Give the id of the one that is meant."
        problems.append(FieldProblem("name", reason, draft.document.label))
    if found:
        return replace(found[0], name=name, body=draft.body)
    # A deleted name that returns continues its version numbers.
    gone = [each for each in known.deleted if each.kind == kind and (each.id == draft.id or not draft.id)]
    past = next((each for each in reversed(gone) if draft.id or each.name == name), None)
    if past is not None:
        return Definition(kind, past.id, name, draft.body, version=past.version)
    return Definition(kind, draft.id or new_id(), name, draft.body, version=0)


def _expect_each_once(made: Sequence[Definition], drafts: Sequence[DefinitionDraft], problems: list[str]) -> None:
    places: dict[tuple[str, ...], str] = {}
    for each, draft in zip(made, drafts, strict=True):
        marks = ((each.kind, "id", each.id), (each.kind, "name", each.name))
        there = next((places[mark] for mark in marks if mark in places), None)
        if there is not None:
            problems.append(f"{draft.document.label}: it is defined twice, also in {there}.")
        places.update(dict.fromkeys(marks, draft.document.label))


def _resolve_names(there: Names, made: Definition, draft: DefinitionDraft, problems: list[str]) -> Definition:
    """Resolves names to ids."""
    body = dict(made.body)

    def resolve(kind: Kind, reference: str, field: str) -> str:
        found = there.find_definitions(kind, reference)
        if len(found) == 1:
            return found[0].id
        what: FieldKind = "other" if found else "unknown_name"
        if found:
            problem = f"several {kind}s are called {reference} ({', '.join(each.id for each in found)}). Give an id."
        else:
            problem = f"there is no {kind} {reference}.{near(reference, there.names(kind))}"
        problems.append(FieldProblem(field, problem, draft.document.label, what))
        return reference

    if made.kind == "agent":
        body["skills"] = [resolve("skill", each, f"skills[{place}]") for place, each in enumerate(body["skills"])]
        subs = enumerate(body["sub_agents"])
        body["sub_agents"] = [resolve("agent", each, f"sub_agents[{place}]") for place, each in subs]
    elif made.kind == "skill":
        body["tools"] = [
            {**item, "tool_id": resolve("tool", item["tool_id"], f"tools[{place}]")} if item.get("tool_id") else item
            for place, item in enumerate(body["tools"])
        ]
    return replace(made, body=body)


def _expect_names_free(after: Names, labels: Mapping[DefinitionKey, str], problems: list[str]) -> None:
    for key, label in labels.items():
        mine = after.by_key[key]
        others = [
            each
            for each in after.find_definitions(mine.kind, mine.name)
            if each.id != mine.id and each.name == mine.name
        ]
        if any(each.is_builtin for each in others):
            problems.append(FieldProblem("name", f"this name is that of a built-in {mine.kind}. Give another.", label))
        elif any((each.kind, each.id) not in labels for each in others):
            reason = f"there is another {mine.kind} of this name, with the id {others[0].id}."
            problems.append(FieldProblem("name", reason, label))


def _find_affected(before: Names, after: Names, labels: Mapping[DefinitionKey, str]) -> list[Definition]:
    """The changed definitions and all that refer to them, directly or not."""
    found: dict[DefinitionKey, Definition] = {key: after.by_key[key] for key in labels}
    waiting = list(found.values())
    while waiting:
        each = waiting.pop()
        for user in (*after.users(each), *before.users(each)):
            key = (user.kind, user.id)
            if key not in found:
                found[key] = after.by_key[key]
                waiting.append(found[key])
    return list(found.values())


def _wrong(after: Names, nameable: Names, each: Definition) -> Iterator[FieldProblem]:
    """The problems of a definition in its catalog: each a field and why."""
    for kind, reference in references(each.kind, each.body):
        if kind in BY_NAME and nameable.target(kind, reference) is None:
            there = near(reference, nameable.names(kind))
            yield FieldProblem(_REFERRING[each.kind], f"there is no {kind} {reference}.{there}", kind="unknown_name")
    if each.kind == "agent":
        yield from (FieldProblem(*wrong) for wrong in _cycle(after, each))
        yield from (FieldProblem(*wrong) for wrong in _calls_twice(after, each))
    elif each.kind == "skill":
        yield from (FieldProblem(*wrong) for wrong in _wrong_params(after, each))
    elif each.kind == "tool" and not each.is_builtin and tool_of(each).function in _RESERVED:
        yield FieldProblem("schema.name", f"{tool_of(each).function} is a name of Longthread's own. Give another.")


def _cycle(after: Names, agent: Definition) -> Iterator[tuple[str, str]]:
    """Circular delegation."""
    waiting = [[agent]]
    seen: set[str] = set()
    while waiting:
        path = waiting.pop()
        for sub in (each for each in after.targets(path[-1]) if each.kind == "agent"):
            if sub.id == agent.id:
                circle = " → ".join(each.name for each in [*path, agent])
                yield "sub_agents", f"{circle} is a circle, in which agents would delegate for ever. Take one out."
                return
            if sub.id not in seen:
                seen.add(sub.id)
                waiting.append([*path, sub])


def _calls_twice(after: Names, agent: Definition) -> Iterator[tuple[str, str]]:
    """Two tools of one function name."""
    tools: dict[str, Definition] = {}
    for skill in (each for each in after.targets(agent) if each.kind == "skill"):
        for tool in after.targets(skill):
            other = tools.setdefault(tool_of(tool).function, tool)
            if other is not tool:
                name = tool_of(tool).function
                both = f"{other.name} and {tool.name}"
                yield "skills", f"they bring two tools that are called {name}, {both}. Leave one out."


def _wrong_params(after: Names, skill: Definition) -> Iterator[tuple[str, str]]:
    """Invalid default arguments."""
    seen: set[str] = set()
    for place, item in enumerate(skill_tools(skill.body)):
        tool = after.target("tool", item["tool_id"])
        if item["tool_id"] in seen:
            yield f"tools[{place}]", f"{tool.name if tool else item['tool_id']} stands there twice."
        seen.add(item["tool_id"])
        given = item.get("default_params")
        if tool is not None and isinstance(given, Mapping) and given:
            yield from ((f"tools[{place}].default_params", text) for text in _not_taken(tool, given))


def _not_taken(tool: Definition, given: Mapping[str, Any]) -> Iterator[str]:
    parameters = tool_of(tool).schema.get("parameters")
    if not isinstance(parameters, Mapping):
        return  # the server has them, or Longthread
    try:
        Arguments({**parameters, "required": []}, tool=tool.name).validate(given)
    except ArgumentsInvalid as error:
        yield f"{tool.name} does not take them. {error.problem}"
    except ToolInvalid:
        return  # a problem of the tool itself


def _change(before: Names, after: Names, made: Definition, labels: Mapping[DefinitionKey, str]) -> Change:
    key = (made.kind, made.id)
    old = before.by_key.get(key)
    where = labels[key]
    if old is not None and old.name == made.name and same(old.body, made.body):
        return Change("unchanged", old, old.version, (), where)
    new = replace(made, version=made.version + 1, by=None)
    fields = tuple(compare_objects(_write_fields(after, old) if old else {}, _write_fields(after, new)))
    return Change("changed" if old else "created", new, old.version if old else None, fields, where)


def _write_fields(names: Names, definition: Definition) -> dict[str, Any]:
    written = names.write_definition(definition.kind, definition.name, definition.body)
    return {field: value for field, value in written.items() if field != "kind"}
