"""Questions about the schema itself: which tables there are, which columns a table has."""

from __future__ import annotations

import re
from dataclasses import dataclass

from longthread_demo.schema import DemoSchema
from longthread_demo.words.chunks import chunks_of
from longthread_demo.words.vocabulary import vocabulary

_WHOLE = re.compile(
    r"^\W*(what (data|information|kind of data) (do you|is|does)|"
    r"what('s| is) (in|inside) (this|the|my) (database|db|data)|"
    r"what can (i|you)|describe (the|this) (database|schema|data)\W*$|help\W*$|你(能|可以|会)(做|干|回答)什么|"
    r"(这个)?(数据库|数据|库)(里|中|里面)?(都)?有(什么|哪些)(数据|内容|信息|东西)?\W*$|有什么数据|我(能|可以)问(什么|你什么))",
    re.I,
)


_LONGEST = 400
"""Characters in which a question about the schema is said; longer ones are about something else."""


@dataclass(frozen=True)
class SchemaQuestion:
    """What is asked: the columns of `table`, or all tables when it is empty; `counted` when only how many."""

    table: str = ""
    counted: bool = False


def schema_question(question: str, schema: DemoSchema) -> SchemaQuestion | None:
    """The question about the schema that this is, else None."""
    if _WHOLE.match(question.strip()):
        return SchemaQuestion()
    question = question[:_LONGEST]
    text = question.lower()
    if not any(
        word in text
        for word in (
            "table",
            "column",
            "field",
            "describe",
            "schema",
            "attribute",
            "structure",
            "表",
            "字段",
            "列",
            "结构",
            "属性",
        )
    ):
        return None
    chunks = chunks_of(question, vocabulary(tuple(schema.tables.values())))
    table = next(
        (chunk.of("table")[0].ref.table for chunk in chunks if chunk.of("table") and chunk.of("table")[0].score >= 0.6),
        "",
    )
    asks = any(chunk.op("which", "list", "count", "have") for chunk in chunks)
    columns = any(chunk.op("colword") and chunk.noun < 0.9 for chunk in chunks)
    described = re.match(r"^\W*(please )?(describe|explain|介绍|描述)", text) is not None
    if table and (columns or (described and not any(chunk.of("value") for chunk in chunks))):
        return SchemaQuestion(table)
    if columns and asks and len(schema.tables) == 1 and not any(chunk.of("column", "value") for chunk in chunks):
        return SchemaQuestion(next(iter(schema.tables)))
    named = any(chunk.op("tableword") and chunk.noun < 0.9 for chunk in chunks)
    if named and (asks or len(chunks) <= 3) and not table:
        return SchemaQuestion(counted=any(chunk.op("count") for chunk in chunks))
    return None
