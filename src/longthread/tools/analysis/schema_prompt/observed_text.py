"""Results of `list_tables` and `describe_table` as a model reads them, in a third of the tokens of their JSON. Pure.

A listing is a line for each table, a description a CREATE statement with a line for each column. Names of columns that
a listing has, and all of a column's values, are left to `describe_table` and its argument `column`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from longthread.tools.analysis.quoting import literal, quoted_if_needed, quoted_label

_VALUE = 30
"""Characters of one value of a column."""
_LABELS, _ALL, _SOME = 20, 8, 3
"""Allowed values that are shown; values up to which all of a column are shown; values that are shown of more."""
_ALL_CHARACTERS = 120
"""Characters of all values of a column, where all are shown."""
_Data = Mapping[str, Any]


def observed_text(action: str, observation: _Data) -> str | None:
    """Return a listing or a description of tables as text; None for any other result, also for a part of a description
    (one column, or a page of a comment), which the model sees whole."""
    data = observation.get("data") if observation.get("ok") is True else None
    if not isinstance(data, Mapping):
        return None
    try:
        if action == "list_tables" and {"fingerprint", "tables", "about", "shown"} <= data.keys():
            return "\n".join(_listing(data))
        if action == "describe_table" and {"columns", "columns_shown"} <= data.keys():
            return "\n".join(_description(data))
    except (AttributeError, KeyError, TypeError, ValueError):  # another program's, in the same names
        return None
    return None


def _listing(data: _Data) -> Iterator[str]:
    yield f"{data['shown']} tables, with their rows:"
    for name in data["tables"]:
        about = data["about"].get(name, {})
        kind = " (view)" if about.get("kind") == "view" else ""
        rows, comment = _rows(about), about.get("comment")
        about_it = f" -- {_line(comment)}" if comment else ""
        yield f"{_line(name)}{kind}{f': {rows}' if rows else ''}{about_it}"
    if "next" in data:
        yield f"-- More from `offset` {data['next']} on."
    yield from _notes(data)


def _description(data: _Data) -> Iterator[str]:
    dialect, keys = str(data.get("dialect") or ""), data.get("foreign_keys") or ()
    label = str(data.get("table_name") or data["table"])
    name = quoted_label(label, str(data.get("sql_name") or ""), dialect)
    rows, comment = _rows(data), data.get("comment")
    head = " ".join(filter(None, [f"{rows} rows." if rows else "", _line(comment or "")]))
    yield f"CREATE {str(data.get('kind') or 'table').upper()} {name} ({f' -- {head}' if head else ''}"
    primary = [str(each) for each in data.get("primary_key") or ()]
    single = {key["columns"][0]: key for key in keys if len(key["columns"]) == 1}
    for column in data["columns"]:
        yield _column(column, primary, single.get(column["name"]), dialect)
    if len(primary) > 1:
        yield f"PRIMARY KEY ({_names(primary, dialect)}),"
    for key in keys:
        if len(key["columns"]) > 1:
            yield f"FOREIGN KEY ({_names(key['columns'], dialect)}) {_references(key, dialect)},"
    yield ");"
    yield from _beside(data, primary, dialect)


def _beside(data: _Data, primary: Sequence[str], dialect: str) -> Iterator[str]:
    """Yield what a description says after the columns: what refers to them, what is cut, and its notes."""
    others = data.get("referenced_by") or ()
    if others:
        yield f"-- Referenced by: {', '.join(_reference(each, primary, dialect) for each in others)}"
    shown, _, total = str(data["columns_shown"]).partition(" of ")
    cuts = [f"{data['columns_shown']} columns"] if shown != total or "next" in data else []
    cuts += [f"more from `offset` {data['next']} on"] if "next" in data else []
    cuts += [f"{data[name]} {name.removesuffix('_shown')}" for name in _PARTS if name in data]
    cuts += [f"comment from `comment_from` {data['comment_next']} on"] if "comment_next" in data else []
    if cuts:
        yield f"-- Shown: {', '.join(cuts)}."
    statistics = [str(data[name]) for name in ("statistics", "statistics_shown") if name in data]
    if statistics:
        yield f"-- Values: {', '.join(statistics)}."
    if data.get("in_short") or any("…" in _about(column) for column in data["columns"]):
        yield "-- `column` shows all that is known of one."
    yield from _notes(data)


_PARTS = ("foreign_keys_shown", "referenced_by_shown")


def _column(column: _Data, primary: Sequence[str], key: _Data | None, dialect: str) -> str:
    words = [quoted_if_needed(column["name"], dialect), str(column["type"])]
    words += ["PRIMARY KEY"] if primary == [column["name"]] else []
    words += [_references(key, dialect)] if key is not None else []
    is_key = key is not None or column["name"] in primary
    about = _about(column, is_key=is_key)
    return f"{' '.join(filter(None, words))},{f' -- {about}' if about else ''}"


def _about(column: _Data, *, is_key: bool = False) -> str:
    """What is known of a column: its comment, and what it holds; of a key, which joins alone use, its comment."""
    comment = [_line(column["comment"])] if column.get("comment") else []
    note = [_line(column["note"])] if column.get("note") else []
    return "; ".join(filter(None, [*comment, "" if is_key else _held(column), *note]))


def _held(column: _Data) -> str:
    """The allowed values of a column; all that it holds, if they are few; its range; or the most frequent ones."""
    if labels := column.get("labels"):
        more = [f"… ({len(labels)})"] if len(labels) > _LABELS or "labels_shown" in column else []
        return ", ".join([*(_value(label) for label in labels[:_LABELS]), *more])
    values, distinct = column.get("values") or (), column.get("distinct")
    texts = [_value(value) for value in values]
    if len(texts) == distinct and len(texts) <= _ALL and sum(map(len, texts)) <= _ALL_CHARACTERS:
        return ", ".join(texts)
    if "min" in column:
        least, most = _value(column["min"]), _value(column["max"])
        return least if least == most else f"{least} to {most}"
    if texts:
        return ", ".join([*texts[:_SOME], f"… ({distinct})"])
    return f"{distinct} values" if distinct else ""


def _value(value: Any) -> str:
    return literal(_cut(_line(value), _VALUE)) if isinstance(value, str) else str(value)


def _references(key: _Data, dialect: str) -> str:
    return f"REFERENCES {key['table']} ({_names(key['references'], dialect)})"


def _reference(key: _Data, primary: Sequence[str], dialect: str) -> str:
    target = "" if list(key["references"]) == list(primary) else f" to ({_names(key['references'], dialect)})"
    return f"{key['table']} ({_names(key['columns'], dialect)}){target}"


def _names(names: Sequence[str], dialect: str) -> str:
    return ", ".join(quoted_if_needed(name, dialect) for name in names)


def _rows(about: _Data) -> str:
    count = about.get("rows")
    return "" if count is None else f"{'about ' if about.get('approximate') else ''}{count}"


def _notes(data: _Data) -> Iterator[str]:
    for note in data.get("notes") or ():
        yield f"-- {_line(note)}"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _line(text: Any) -> str:
    return " ".join(str(text).split())
