"""The analyst's system prompt. It stays the same for a whole run, so that a provider may cache it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from longthread.model.facts import Facts
from longthread.view.tier1 import digest_of
from longthread.view.tokens import ANY, estimate

KNOWLEDGE = "longthread-knowledge"
"""Info string of the fenced block that holds the known facts as JSON."""

_RULES = """\
You are Longthread's analyst. You answer questions about a database with its tools, in a lasting conversation.

- Look before you query: `list_tables`, then `describe_table` for the tables you need. What is listed under \
"Known facts" is already known: use it directly, and do not list or describe it again.
- Ask the database with `run_sql`: one read-only SELECT in the {dialect} dialect. Each result has a label, such as q3.
- When a tool returns an error, read it, mend the call and try again.
- Answer in the user's language, from rows you have seen, never from memory. Behind each number name the query it came \
from, like this: 59 [q3]. If rows were cut ("100 of 275"), say so.
- A short follow-up ("and by country?", "只看2020年以后的") goes on from the question before it.
- Parts of a long conversation may not be shown to you; the database can be asked again."""

_CONTINUED = """\
The user wants you to go on with an unfinished question. Work on it, not on the word "continue":
{question}"""


_DIALECT = (
    "`run_sql` takes one read-only SELECT in the {dialect} dialect. Behind each number name the query it came from, \
like this: 59 [q3]."
)


def system_prompt(
    facts: Facts,
    *,
    dialect: str | None,
    continues: str | None,
    budget: int,
    instructions: str | None = None,
    most: int | None = None,
) -> str:
    """The instructions, the known facts in at most `budget` tokens, and what is being continued.

    Args:
        dialect: that of the source; None where none is asked.
        budget: where not even the names of some tables have room in it, there are no known facts.
        instructions: an agent's own; None: the analyst's.
        most: tokens that the rest may have: the continued question is cut to a quarter of it, and the instructions to
            what that leaves, both in the middle. None: as many as they are.
    """
    head = _RULES.format(dialect=dialect) if instructions is None else instructions
    if most is not None:
        continues = continues and digest_of(continues, most // 4, ANY).text
        head = digest_of(head, most - estimate(continues or ""), ANY).text
    parts = [head]
    if instructions is not None and dialect is not None:
        parts.append(_DIALECT.format(dialect=dialect))
    if facts.tables and dialect is not None and (known := _knowledge(facts, budget)):
        parts.append(f"# Known facts\n\n```json {KNOWLEDGE}\n{known}\n```")
    if continues is not None:
        parts.append(_CONTINUED.format(question=continues[:2000]))
    return "\n\n".join(parts)


def _knowledge(facts: Facts, budget: int) -> str:
    for data in _ever_less(facts):
        text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), default=str)
        if estimate(text) <= budget:
            return text
    return ""


def _ever_less(facts: Facts) -> Iterator[dict[str, Any]]:
    """The facts, then the facts with ever more left out: samples first, names of tables last."""
    data: dict[str, Any] = {
        "dialect": facts.dialect,
        "tables": facts.tables,
        "about": facts.about,
        "columns": facts.columns,
        "schemas": facts.schemas,
        "samples": facts.samples,
    }
    yield data
    yield data | {"samples": {}}
    lean = {name: _lean(schema) for name, schema in facts.schemas.items()}
    yield data | {"samples": {}, "schemas": lean}
    while lean:
        lean = dict(list(lean.items())[len(lean) // 2 + 1 :])  # the newest half
        yield data | {"samples": {}, "schemas": lean}
    names = {"dialect": facts.dialect}
    shown = len(facts.tables)
    while shown:
        yield names | {"tables": facts.tables[:shown], "shown": f"{shown} of {len(facts.tables)}"}
        shown //= 2


def _lean(schema: dict[str, Any]) -> dict[str, Any]:
    columns = [
        {key: column[key] for key in ("name", "type", "comment", "primary_key") if column.get(key)}
        for column in schema.get("columns", [])
    ]
    return {key: value for key, value in schema.items() if key != "referenced_by"} | {"columns": columns}
