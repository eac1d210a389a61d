"""Which columns of a table a person wants to see."""

from __future__ import annotations

from longthread.tools.analysis.schema_linking import atoms
from longthread_demo.schema import DemoColumn, DemoSchema, DemoTable, Link, Ref, key_of

_FIRST = (("first", "nam"), ("given", "nam"), ("fname",), ("forenam",), ("firstnam",))
_LAST = (("last", "nam"), ("surnam",), ("lname",), ("famili", "nam"), ("lastnam",))
_NAMES = frozenset({("nam",), ("full", "nam"), ("fullnam",), ("titl",), ("label",), ("display", "nam")})
_NAMES_ZH = ("姓名", "名称", "名字", "标题", "书名", "片名", "歌名", "名")
_CODES = frozenset(["no", "number", "code", "num", "symbol", "ticker", "usernam", "login", "model", "iata"])
_FIRMS = frozenset(atoms(word) for word in ("company", "organization", "firm", "公司", "单位"))
_HOLDERS = frozenset(
    part for word in ("manager", "contact", "owner", "leader", "head", "director") for part in atoms(word)
)
_OTHER_LANGUAGE = ("_zh", "_cn", "_en")
_MOST = 5


def display_columns(table: DemoTable) -> tuple[str, ...]:
    """The columns that name a row to a person, e.g. its name, or first and last name; () when there are none.

    A name that is kept in a second language (`name`, `name_zh`) is shown in both.
    """
    found = _named(table)
    names = {column.name for column in table.columns}
    return (*found, *(name + ending for name in found for ending in _OTHER_LANGUAGE if name + ending in names))


def _named(table: DemoTable) -> tuple[str, ...]:
    texts = [column for column in table.columns if column.kind in ("text", "unknown")]
    own = table.words
    exact = [c for c in texts if c.words in _NAMES or c.words in {(*own, "nam"), (*own, "titl")} or c.name in _NAMES_ZH]
    full = [c for c in exact if c.words != ("titl",)]
    first = next((c.name for c in texts if c.words[-2:] in _FIRST or c.words in _FIRST), None)
    last = next((c.name for c in texts if c.words[-2:] in _LAST or c.words in _LAST), None)
    if full:
        return (full[0].name,)
    if first and last:
        return (first, last)
    if exact:
        return (exact[0].name,)
    ending = [
        c
        for c in texts
        if (c.words[-1:] in (("nam",), ("titl",)) or c.name.endswith(_NAMES_ZH))
        and not _foreign(table, c)
        and not set(c.words) & (_HOLDERS - set(own))
    ]
    ending += [c for c in texts if c.words in _FIRMS or c.words == own or c.words in {("cod",), (*own, "cod")}]
    if ending:
        return (ending[0].name,)
    made = next((c.name for c in texts if c.words in (("mak",), ("brand",))), None)
    model = next((c.name for c in texts if c.words == ("model",)), None)
    if made and model:
        return (made, model)
    coded = [c for c in texts if c.words and c.words[-1] in _CODES and not _foreign(table, c)]
    return (coded[0].name,) if coded and not coded[0].primary else ()


def _foreign(table: DemoTable, column: DemoColumn) -> bool:
    return any(column.name in link.columns for link in table.links)


def naming_columns(table: DemoTable) -> tuple[str, ...]:
    """The display columns, else the key, else the first column."""
    found = display_columns(table)
    if found:
        return found
    key = key_of(table)
    if key:
        return (key,)
    return tuple(column.name for column in table.columns[:1])


def listed_columns(table: DemoTable, schema: DemoSchema) -> tuple[str, ...]:
    """What a list of a table's rows shows: what names them, then other columns that are no keys, up to five."""
    names = list(naming_columns(table))
    keys = {column for link in schema.links if link.table == table.name for column in link.columns} | {key_of(table)}
    for column in table.columns:
        if len(names) >= _MOST:
            break
        if column.name not in names and column.name not in keys and "blob" not in column.type.lower():
            names.append(column.name)
    if len(names) == 1 and not display_columns(table):
        names += [column.name for column in table.columns if column.name not in names][: _MOST - 1]
    return tuple(names)


def link_of(schema: DemoSchema, ref: Ref) -> Link | None:
    """The foreign key a column is, if it is one."""
    return next((link for link in schema.links if link.table == ref.table and link.columns == (ref.column,)), None)


def amounts(table: DemoTable, schema: DemoSchema) -> list[DemoColumn]:
    """The columns that can be added up: numbers that are no keys, years or flags."""
    keys = {column for link in schema.links if link.table == table.name for column in link.columns} | {key_of(table)}
    return [c for c in table.columns if c.kind == "number" and c.name not in keys and not c.yearish and not c.keyish]


def dates(table: DemoTable) -> list[DemoColumn]:
    """The columns that hold dates or years, the likeliest to be meant first."""
    found = [column for column in table.columns if column.kind == "date" or column.yearish]
    return sorted(found, key=lambda c: (_unlikely(c), not _own(table, c)))


def _own(table: DemoTable, column: DemoColumn) -> bool:
    return bool(set(table.words) & set(column.words)) or column.words in (("dat",), ("日", "期"))


def _unlikely(column: DemoColumn) -> int:
    words = set(column.words)
    if words & {"updat", "modifi", "birth", "dob", "birthday", "delet", "expir", "due", "end"} or "生" in words:
        return 2
    return 1 if words & {"ship", "deliver", "return", "creat"} else 0
