"""Words that only say what a database is about: `fire stations` in one of firefighters, `chess players`, 消防站."""

from __future__ import annotations

from longthread.tools.analysis.schema_linking import atoms, split_name
from longthread_demo.glossary import glossary
from longthread_demo.question.reading import QuestionReading

_SHORTEST = 4


def says_domain(r: QuestionReading, at: int) -> bool:
    """Whether an unknown word right before a table's noun restricts no rows: all of the database is of its kind.

    The name of the source says so, or that of another table.
    """
    chunk = r.chunks[at]
    if not chunk.unknown or chunk.quoted or chunk.proper or at + 1 >= len(r):
        return False
    tables = {sense.ref.table for sense in r.chunks[at + 1].of("table") if sense.score >= 0.85}
    if len(tables) != 1 or r.table_at(at + 1) is None:
        return False
    word = "".join(chunk.key)
    if word in atoms(split_name(r.schema.source)):
        return True
    if chunk.text.isascii():
        return len(word) >= _SHORTEST and any(
            name not in tables and "".join(table.words).startswith(word) for name, table in r.schema.tables.items()
        )
    return len(word) >= 2 and any(
        "".join(form).startswith(word)
        for name, table in r.schema.tables.items()
        if name not in tables
        for form in (table.words, *glossary().same(table.words))
    )
