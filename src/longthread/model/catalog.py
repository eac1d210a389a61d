"""The catalog's definitions: agents, skills, tools and sources, with document 002's columns, and the gateway's
upstreams and routes; and the definitions that every catalog has. References are ids.

Built in are two agents, two skills, and their tools. Agents and skills have rows, which are equal in all stores. To
change one, increase `SCHEMA_VERSION`: each upgrade writes their rows again.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, get_args

from longthread.model.memory import ANALYST

Kind = Literal["agent", "skill", "tool", "source", "upstream", "route"]

KINDS: tuple[Kind, ...] = get_args(Kind)
BY_NAME: frozenset[Kind] = frozenset({"source", "upstream"})
"""Kinds that others refer to by name."""
Body = Mapping[str, Any]
Reference = tuple[Kind, str]
"""The kind and the id of a definition; for one of `BY_NAME` its name."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A definition of any kind. `body` has the columns of its kind. `version` counts from 1; `by` is the user who made
    it, None for another program. A built-in one cannot be changed."""

    kind: Kind
    id: str
    name: str
    body: Body
    version: int = 1
    by: str | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    is_builtin: bool = False

    @property
    def is_active(self) -> bool:
        return bool(self.body.get("is_active", True))


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a definition. `body` is None for a deletion."""

    kind: Kind
    id: str
    version: int
    name: str
    body: Body | None
    at: datetime
    by: str | None = None


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent (document 002 §2.1). The settings are the defaults of its `config`."""

    id: str
    name: str
    system_prompt: str
    description: str | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    skills: Sequence[str] = ()
    sub_agents: Sequence[str] = ()
    is_active: bool = True
    version: int = 1


@dataclass(frozen=True, slots=True)
class SkillTool:
    """A tool of a skill. `default_params` are default arguments; a skill needs its `required` tools."""

    tool_id: str
    required: bool = False
    default_params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Skill:
    """A skill: instructions and tools that belong together (document 002 §2.2)."""

    id: str
    name: str
    description: str | None = None
    trigger_keywords: Sequence[str] = ()
    tools: Sequence[SkillTool] = ()
    config: Mapping[str, Any] = field(default_factory=dict)
    is_builtin: bool = False
    version: int = 1

    @property
    def instructions(self) -> str:
        return str(self.config.get("instructions", ""))


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool (document 002 §2.3). `type` is one of the types in `tools/types`, or `builtin` for Longthread's own tools.
    `schema` is for models: `{"name", "description", "parameters"}`."""

    id: str
    name: str
    type: str
    schema: Mapping[str, Any]
    implementation: Mapping[str, Any]
    description: str | None = None
    is_active: bool = True
    version: int = 1

    @property
    def function(self) -> str:
        """The name by which a model calls it."""
        return str(self.schema.get("name") or self.name)

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The JSON Schema of its arguments."""
        found = self.schema.get("parameters")
        return found if isinstance(found, Mapping) else {"type": "object", "properties": {}}


@dataclass(frozen=True, slots=True)
class Term:
    """A business term. `sql` is a statement, or a part of one such as `sum(amount)`."""

    name: str
    meaning: str | None = None
    sql: str | None = None
    synonyms: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Example:
    """A question with its SQL."""

    question: str
    sql: str


@dataclass(frozen=True, slots=True)
class SourceDefinition:
    """A source. Its `address` is for `open_source`, with `${NAME}` in place of passwords."""

    id: str
    name: str
    address: str = field(repr=False)
    description: str | None = None
    is_active: bool = True
    version: int = 1
    terms: Sequence[Term] = ()
    examples: Sequence[Example] = ()
    semantics: Mapping[str, Any] = field(default_factory=dict)
    """Its metrics, dimensions and joins, as JSON (`model/semantics.py`)."""


@dataclass(frozen=True, slots=True)
class UpstreamDefinition:
    """A provider that the gateway asks. `api_key` is the name of a secret, `${NAME}`; None: clients have keys of their
    own."""

    name: str
    base_url: str
    dialects: Sequence[str]
    api_key: str | None = field(default=None, repr=False)
    holds_state: bool = False
    id: str = ""


@dataclass(frozen=True, slots=True)
class RouteDefinition:
    """The models, by name or by a pattern, for which the gateway asks an upstream, as `model` or by the same name."""

    name: str
    models: str
    upstream: str
    model: str | None = None
    id: str = ""


def agent_of(found: Definition) -> Agent:
    body = found.body
    return Agent(
        id=found.id,
        name=found.name,
        system_prompt=str(body.get("system_prompt") or ""),
        description=body.get("description"),
        config=_object(body.get("config")),
        skills=_texts(body.get("skills")),
        sub_agents=_texts(body.get("sub_agents")),
        is_active=found.is_active,
        version=found.version,
    )


def skill_of(found: Definition) -> Skill:
    body = found.body
    return Skill(
        id=found.id,
        name=found.name,
        description=body.get("description"),
        trigger_keywords=_texts(body.get("trigger_keywords")),
        tools=tuple(
            SkillTool(str(each["tool_id"]), bool(each.get("required")), _object(each.get("default_params")))
            for each in skill_tools(body)
        ),
        config=_object(body.get("config")),
        is_builtin=found.is_builtin,
        version=found.version,
    )


def tool_of(found: Definition) -> ToolDefinition:
    body = found.body
    return ToolDefinition(
        id=found.id,
        name=found.name,
        type=body["type"],
        schema=_object(body.get("schema")),
        implementation=_object(body.get("implementation")),
        description=body.get("description"),
        is_active=found.is_active,
        version=found.version,
    )


def source_of(found: Definition) -> SourceDefinition:
    body = found.body
    address, description = str(body.get("address") or ""), body.get("description")
    terms = [
        Term(str(each["name"]), each.get("meaning"), each.get("sql"), _texts(each.get("synonyms")))
        for each in _objects(body.get("terms"), "name")
    ]
    asked = _objects(body.get("examples"), "question")
    examples = [Example(str(each["question"]), str(each.get("sql") or "")) for each in asked]
    taught = (tuple(terms), tuple(examples))
    about = (found.id, found.name, address, description, found.is_active, found.version)
    return SourceDefinition(*about, *taught, semantics=_object(body.get("semantics")))


def references(kind: Kind, body: Body) -> Iterator[Reference]:
    """The references of a definition, in order, without malformed ones of other programs."""
    if kind == "agent":
        yield from (("skill", each) for each in _texts(body.get("skills")))
        yield from (("agent", each) for each in _texts(body.get("sub_agents")))
        yield from _source(body.get("config"), "source")
    elif kind == "skill":
        yield from (("tool", str(each["tool_id"])) for each in skill_tools(body))
    elif kind == "tool" and body.get("type") == "query":
        yield from _source(body.get("implementation"), "database")
    elif kind == "route" and isinstance(name := body.get("upstream"), str):
        yield "upstream", name


def skill_tools(body: Body) -> list[Mapping[str, Any]]:
    """The valid items of a skill's `tools`."""
    tools = body.get("tools")
    if not isinstance(tools, Sequence) or isinstance(tools, str):
        return []
    return [each for each in tools if isinstance(each, Mapping) and isinstance(each.get("tool_id"), str)]


def _source(value: Any, key: str) -> Iterator[Reference]:
    if isinstance(name := _object(value).get(key), str):
        yield "source", name


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        return ()
    return tuple(each for each in value if isinstance(each, str))


def _objects(value: Any, name: str) -> list[Mapping[str, Any]]:
    """The objects of a list that have this field."""
    items = value if isinstance(value, list | tuple) else ()
    return [each for each in items if isinstance(each, Mapping) and each.get(name)]


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal, in any order of keys; 1 equals 1.0."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


ASSISTANT = "6c6f6e67-7468-5265-8161-737369737400"
DATA = "6c6f6e67-7468-5265-8164-617461000000"
MEMORY = "6c6f6e67-7468-5265-816d-656d6f727900"
ASSISTANT_PROMPT = """\
You are Longthread's assistant. You help with whatever the user asks, in a lasting conversation.

- Answer in the user's language. Say so when you do not know something.
- What is to be true beyond this conversation (who the user is, what they prefer, how something is done) you \
`remember`; what the user no longer wants you to know you `forget`.
- Parts of a long conversation may not be shown to you: `recall_memory` finds what was said."""

_NAMESPACE = uuid.UUID("6c6f6e67-7468-5265-8174-6f6f6c730000")
_MADE = datetime(2026, 1, 1, tzinfo=UTC)


def tool_id(function: str) -> str:
    """The id of a built-in tool."""
    return str(uuid.uuid5(_NAMESPACE, function))


_TOOLS = {
    "list_tables": "Lists the tables and views of the source.",
    "describe_table": "Describes one table of the source.",
    "sample_rows": "Shows a few rows of one table of the source.",
    "run_sql": "Runs one read-only SELECT on the source.",
    "query_metric": "Computes metrics of the source by dimensions.",
    "chart": "Shows a result as a chart.",
    "recall_memory": "Finds earlier messages, by what they say.",
    "remember": "Remembers something of the user beyond the conversation.",
    "forget": "Forgets what is remembered of the user.",
}
DATA_TOOLS = ("list_tables", "describe_table", "sample_rows", "run_sql", "query_metric")
MEMORY_TOOLS = ("recall_memory", "remember", "forget")
RUN_SQL, CHART = "run_sql", "chart"
"""An agent with the first also has the second."""
QUERY_METRIC = "query_metric"
"""The tool of a source that has metrics."""
QUERIES = frozenset({RUN_SQL, QUERY_METRIC})
"""The tools whose results are those of queries, with a label and SQL."""
RECALL_TOOL = "recall_memory"
LOAD_SKILL = "load_skill"
"""The tool of an agent with loadable skills."""


def _make_definition(kind: Kind, id_: str, name: str, **body: object) -> Definition:
    return Definition(kind, id_, name, body, created_at=_MADE, updated_at=_MADE, is_builtin=True)


def _skill(id_: str, name: str, description: str, keywords: list[str], tools: tuple[str, ...]) -> Definition:
    items = [{"tool_id": tool_id(tool), "required": False, "default_params": {}} for tool in tools]
    return _make_definition(
        "skill", id_, name, description=description, trigger_keywords=keywords, tools=items, config={}
    )


def _agent(id_: str, name: str, description: str, prompt: str, skills: list[str]) -> Definition:
    body: Body = {
        "description": description,
        "system_prompt": prompt,
        "config": {},
        "skills": skills,
        "sub_agents": [],
        "is_active": True,
    }
    return _make_definition("agent", id_, name, **body)


def _tool(function: str, description: str) -> Definition:
    schema = {"name": function, "description": description}
    about = {"type": "builtin", "description": description, "schema": schema, "implementation": {}, "is_active": True}
    return _make_definition("tool", tool_id(function), function, **about)


BUILTIN: Mapping[tuple[Kind, str], Definition] = {
    (each.kind, each.id): each
    for each in (
        _agent(
            ANALYST,
            "analyst",
            "Answers questions about a database.",
            "You are Longthread's analyst. You answer questions about a database with its tools, in a lasting "
            "conversation.",
            [DATA, MEMORY],
        ),
        _agent(ASSISTANT, "assistant", "Helps with whatever it is asked.", ASSISTANT_PROMPT, [MEMORY]),
        _skill(
            DATA, "data", "Explores a database and asks it.", ["database", "table", "SQL", "数据库", "查询"], DATA_TOOLS
        ),
        _skill(
            MEMORY,
            "memory",
            "Recalls what was said, remembers and forgets.",
            ["remember", "forget", "记住", "忘记"],
            MEMORY_TOOLS,
        ),
        *(_tool(function, description) for function, description in _TOOLS.items()),
    )
}
"""By kind and id. Their names are reserved."""
