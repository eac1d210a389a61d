"""The tables that a conversation may be about, where there are very many."""

from __future__ import annotations

from collections.abc import Iterable

from longthread.tools.analysis.schema_linking import Linker, document
from longthread_demo.glossary import glossary
from longthread_demo.question.parse import LONGEST
from longthread_demo.schema import DemoSchema

_MOST_LINKED = 40


def near(schema: DemoSchema, questions: Iterable[str]) -> DemoSchema:
    """The schema, cut to the tables that the questions may be about when there are very many."""
    if len(schema.tables) <= _MOST_LINKED:
        return schema
    documents = {
        table.name: document(table.name, columns=[c.name for c in table.columns], texts=[table.comment])
        for table in schema.tables.values()
    }
    linker = Linker(documents, expand=glossary().expand)
    keep = {name for question in questions for name, _ in linker.rank(question[:LONGEST], 12)}
    keep |= {name for name, table in schema.tables.items() if table.described}
    for link in schema.links:
        if link.table in keep and len(keep) < _MOST_LINKED:
            keep.add(link.target)
    tables = {name: table for name, table in schema.tables.items() if name in keep}
    links = tuple(link for link in schema.links if link.table in keep and link.target in keep)
    return DemoSchema(schema.source, schema.dialect, True, tables, links)
