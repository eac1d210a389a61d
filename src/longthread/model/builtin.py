"""The built-in definitions of every catalog: two agents, two skills, and their tools.

Agents and skills have rows, which are equal in all stores. To change one, increase `SCHEMA_VERSION`: each upgrade
writes their rows again.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import UTC, datetime

from longthread.model.catalog import Body, Definition, Kind
from longthread.model.memory import ANALYST

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
