"""What is known of the database: tables, columns, keys. Built from the knowledge block and from observations."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Literal

from longthread.tools.analysis.schema_linking import atoms, is_cjk, split_name
from longthread_demo.glossary import glossary
from longthread_demo.talk import Exchange

ValueKind = Literal["number", "text", "date", "bool", "unknown"]

_NUMBER = re.compile(r"int|num|dec|real|float|double|money|serial", re.I)
_DATE = re.compile(r"date|time", re.I)
_BOOL = re.compile(r"bool|^bit$|tinyint\(1\)", re.I)
_ISO = re.compile(r"^\d{4}-\d\d(-\d\d)?([ T]|$)")
_MONTH = re.compile(r"\d{4}-\d{2}")
_SQUARES = frozenset((unit, power) for unit in ("m", "km", "cm") for power in ("2", "3"))
_DATE_WORDS = frozenset(["dat", "tim", "timestamp", "datetim", "at", "on", "birthday", "dob"])
_EVENTS = frozenset(
    ["found", "establish", "built", "open", "releas", "publish", "born", "birth", "launch", "construct", "complet"]
)
_KEY_WORDS = frozenset(["id", "key", "code", "cod", "no", "uuid", "guid", "pk", "fk", "num", "ref", "number"])
_KEY_CHARS = ("编号", "序号", "编码", "号码", "代码", "标识", "号")
_LABELS = frozenset(
    [
        "phone",
        "telephone",
        "tel",
        "mobile",
        "fax",
        "zip",
        "zipcode",
        "postcode",
        "postal",
        "isbn",
        "issn",
        "ssn",
        "passport",
        "barcode",
        "sku",
        "ean",
        "imei",
        "latitude",
        "longitude",
        "lat",
        "lon",
        "lng",
    ]
)
_LABEL_STEMS = frozenset(atom for word in _LABELS if len(word) > 3 for atom in atoms(word))
_LABEL_CHARS = ("电话", "手机", "邮编", "邮政", "身份证", "工号", "学号", "卡号", "账号", "经度", "纬度", "条码")
"""What numbers are called that only tell things apart or say where they are."""
_PREFIXES = frozenset(
    ["tbl", "tb", "t", "dim", "fact", "fct", "stg", "vw", "v", "tab", "table", "src", "dw", "ods", "dwd", "app", "sys"]
)


@dataclass(frozen=True, order=True)
class Ref:
    """A column of a table."""

    table: str
    column: str


@dataclass(frozen=True)
class DemoColumn:
    """A column. `values` are its most frequent ones; `low` and `high` its range, where known."""

    name: str
    type: str = ""
    kind: ValueKind = "unknown"
    comment: str = ""
    values: tuple[Any, ...] = ()
    distinct: int | None = None
    low: Any = None
    high: Any = None
    primary: bool = False
    note: str = ""

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The atoms of the name; `m2` stays one."""
        words = atoms(split_name(self.name))
        return (*words[:-2], words[-2] + words[-1]) if words[-2:] in _SQUARES else words

    @property
    def iso(self) -> bool:
        """Whether it holds dates as ISO text (or nothing speaks against it)."""
        shown = [value for value in (self.low, self.high, *self.values[:3]) if value is not None]
        return all(isinstance(value, str) and _ISO.match(value) for value in shown)

    @property
    def has_months(self) -> bool:
        """Whether it holds months as text, such as `2024-02`."""
        shown = [value for value in (self.low, self.high, *self.values) if value is not None]
        return bool(shown) and all(isinstance(value, str) and _MONTH.fullmatch(value) for value in shown)

    @cached_property
    def keyish(self) -> bool:
        """Whether its values only tell things apart or say where they are: a key, a code, a phone number, a place."""
        words = self.words
        keyed = words[-1:] and (words[-1] in _KEY_WORDS or self.name.endswith(_KEY_CHARS) or self.primary)
        keyed = keyed or (len(words) == 1 and words[0].endswith("id") and len(words[0]) == 3)  # aid, pid
        labels = set(words) & _LABEL_STEMS or set(split_name(self.name).split()) & _LABELS
        return bool(keyed or labels) or any(word in self.name for word in _LABEL_CHARS)

    @property
    def yearish(self) -> bool:
        """Whether it is a number that means a calendar year."""
        named = (
            bool({"year", *_EVENTS} & set(self.words))
            or "年" in self.name + self.comment
            or self.name.startswith(("成立", "建"))
        )
        span = isinstance(self.low, int) and isinstance(self.high, int) and self.low >= 1000 and self.high <= 2200
        return self.kind in ("number", "unknown") and named and (span or (self.low is None and "year" in self.words))


@dataclass(frozen=True)
class Link:
    """A foreign key, declared or inferred: each row of `table` points to at most one of `target`."""

    table: str
    columns: tuple[str, ...]
    target: str
    references: tuple[str, ...]
    declared: bool = True


@dataclass(frozen=True, eq=False)
class DemoTable:
    """A table. Before it is `described`, its columns are names alone. The same description gives the same object."""

    name: str
    columns: tuple[DemoColumn, ...] = ()
    comment: str = ""
    rows: int | None = None
    described: bool = False
    primary: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()
    kind: Literal["table", "view"] = "table"
    notes: tuple[str, ...] = ()
    sql_name: str = ""
    """How the name is written in SQL, where the database says so."""
    counted: bool = True
    """Whether its rows and different values were counted, and are no estimate."""

    def column(self, name: str) -> DemoColumn:
        """The column of that name. Raises KeyError."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The atoms of the name without a technical prefix (`tbl_`, `dim_`) or 表 at the end."""
        words = atoms(split_name(self.name.rsplit(".", 1)[-1]))
        while len(words) > 1 and words[0] in _PREFIXES:
            words = words[1:]
        if len(words) > 1 and words[-1] in ("表", "tabl", "tbl"):
            words = words[:-1]
        return words


@dataclass(frozen=True)
class DemoSchema:
    """The database as far as it is known. `listed` says whether the list of tables is."""

    source: str = ""
    dialect: str = "sqlite"
    listed: bool = False
    tables: Mapping[str, DemoTable] = None  # type: ignore[assignment]  # filled by schema_of
    links: tuple[Link, ...] = ()

    def column(self, ref: Ref) -> DemoColumn:
        """The column a reference means."""
        return self.tables[ref.table].column(ref.column)

    @cached_property
    def chinese_names(self) -> tuple[str, ...]:
        """Names of tables and columns, and values, that have Chinese characters, the longest first."""
        columns = [column for table in self.tables.values() for column in table.columns]
        names = {*self.tables, *(column.name for column in columns)}
        names |= {value for column in columns for value in column.values if isinstance(value, str)}
        return tuple(sorted((name for name in names if any(map(is_cjk, name))), key=lambda name: (-len(name), name)))


def bases(tables: Iterable[DemoTable]) -> list[DemoTable]:
    """The tables without the views, which hold again what tables hold; all where there are only views."""
    every = list(tables)
    return [table for table in every if table.kind == "table"] or every


def schema_of(facts: Mapping[str, Any], exchanges: Iterable[Exchange] = ()) -> DemoSchema:
    """The schema that the facts and the observations after them tell."""
    source, dialect = str(facts.get("source") or ""), str(facts.get("dialect") or "")
    listed = "tables" in facts
    names: list[str] = list(facts.get("tables") or ())
    about: dict[str, Any] = dict(facts.get("about") or {})
    columns: dict[str, Sequence[str]] = dict(facts.get("columns") or {})
    described: dict[str, Mapping[str, Any]] = dict(facts.get("schemas") or {})
    for exchange in exchanges:
        data = exchange.data
        if exchange.call.name == "list_tables" and data and not exchange.call.args.get("pattern"):
            listed, source, dialect = True, str(data.get("source") or source), str(data.get("dialect") or dialect)
            names = list(data.get("tables") or ())
            if data.get("total") in (None, len(names)):  # what is no longer listed is gone
                columns = {name: found for name, found in columns.items() if name in names}
                described = {name: found for name, found in described.items() if name in names}
            about.update(data.get("about") or {})
            columns.update(data.get("columns") or {})
        elif exchange.call.name == "describe_table" and data.get("table_name"):
            described[str(data["table_name"])] = data
    for name in (*columns, *described):
        if name not in names:
            names.append(name)
    tables = {
        name: _table(name, json.dumps((about.get(name) or {}, columns.get(name) or (), described.get(name))))
        for name in names
    }
    return DemoSchema(source, dialect or "sqlite", listed, tables, _links(tuple(tables.values())))


@lru_cache(maxsize=4096)
def _table(name: str, description: str) -> DemoTable:
    """A table by the JSON of what the list says about it, its columns there, and its full description or null."""
    about, columns, full = json.loads(description)
    comment, rows = str(about.get("comment") or ""), about.get("rows")
    view = "view" in (about.get("kind"), (full or {}).get("kind"))
    kind: Literal["table", "view"] = "view" if view else "table"
    if full is None:
        made = (_column({"name": item} if isinstance(item, str) else item) for item in columns)
        return DemoTable(name, tuple(made), comment, rows, kind=kind)
    primary = tuple(str(key) for key in full.get("primary_key") or ())
    links = tuple(
        Link(name, tuple(key["columns"]), str(key["table"]), tuple(key.get("references") or ()))
        for key in full.get("foreign_keys") or ()
    )
    return DemoTable(
        name=name,
        columns=tuple(_column(item) for item in full.get("columns") or ()),
        comment=str(full.get("comment") or comment),
        rows=full["rows"] if full.get("rows") is not None else rows,
        described=True,
        primary=primary,
        links=links,
        kind=kind,
        notes=tuple(str(note) for note in full.get("notes") or ()),
        sql_name=str(full.get("sql_name") or ""),
        counted=not full.get("approximate"),
    )


def _column(data: Mapping[str, Any]) -> DemoColumn:
    made = DemoColumn(
        name=str(data["name"]),
        type=str(data.get("type") or ""),
        comment=str(data.get("comment") or ""),
        values=_values(data),
        distinct=data.get("distinct"),
        low=data.get("min"),
        high=data.get("max"),
        primary=bool(data.get("primary_key")),
        note=str(data.get("note") or ""),
    )
    return replace(made, kind=_kind(made))


def _values(data: Mapping[str, Any]) -> tuple[Any, ...]:
    """What a column holds, and what it may hold. A cell of a set or an array is no label, but some of them."""
    held = [value for value in data.get("values") or () if value is not None]
    type_name = str(data.get("type") or "").casefold()
    several = type_name.endswith("[]") or type_name.startswith("set(")
    return tuple(dict.fromkeys([*held, *(() if several else data.get("labels") or ())]))


def _kind(column: DemoColumn) -> ValueKind:
    dated = bool(_DATE_WORDS & set(column.words[-1:])) or column.name.endswith(("日期", "时间", "日", "生日"))
    shown = [value for value in (column.low, column.high, *column.values) if value is not None]
    type_name = column.type.partition("(")[0]  # in parentheses may be the words of an enumeration
    if _BOOL.search(type_name) or yes_no(column) is not None:
        return "bool"
    if _DATE.search(type_name):
        return "date"
    if shown and all(isinstance(value, str) and _ISO.match(value) for value in shown):
        return "date"
    if _NUMBER.search(type_name):
        if {0, 1} == set(shown) and len(column.values) == 2:
            return "bool"
        flag = column.words[:1] in (("is",), ("ha",), ("has",)) or column.name.startswith("是否")
        return "bool" if flag and set(shown) <= {0, 1} else "number"
    if not column.type:
        return "date" if dated else "unknown"
    if shown and all(isinstance(value, int | float) and not isinstance(value, bool) for value in shown):
        return "number"
    return "date" if dated and not shown else "text"


_YES = ("是", "有", "yes", "y", "true", "t")
_NO = ("否", "无", "no", "n", "false", "f")


def yes_no(column: DemoColumn) -> tuple[str, str] | None:
    """What a text column called 是否… or `is_…` writes for yes and no; None when it is no such column."""
    flag = column.words[:1] in (("is",), ("ha",), ("has",)) or column.name.startswith("是否")
    values = [value for value in column.values if isinstance(value, str)]
    if not flag or len(values) != 2 or len(column.values) != 2:
        return None
    yes = next((value for value in values if value.lower() in _YES), None)
    no = next((value for value in values if value.lower() in _NO), None)
    return (yes, no) if yes is not None and no is not None else None


@lru_cache(maxsize=64)
def _links(listed: tuple[DemoTable, ...]) -> tuple[Link, ...]:
    """The keys between tables; a view holds what they hold already and joins nothing, unless there are only views."""
    found: list[Link] = []
    tables = {table.name: table for table in bases(listed)}
    for table in tables.values():
        mine = [link for link in table.links if link.target in tables]
        taken = {link.columns[0] for link in mine if len(link.columns) == 1}
        for link in mine:
            if not link.references:
                key = _key(tables[link.target])
                link = replace(link, references=(key,)) if key else link
            if link.references:
                found.append(link)
        found += [
            link for column in table.columns if column.name not in taken for link in _inferred(tables, table, column)
        ]
    return (*found, *_equal_names(tables, found))


_COMMON = frozenset(
    [
        "id",
        "name",
        "title",
        "status",
        "type",
        "description",
        "date",
        "time",
        "year",
        "comment",
        "note",
        "email",
        "kind",
        "category",
        "homepage",
        "url",
        "website",
        "link",
        "address",
    ]
)
_COMMON_STEMS = frozenset(atom for word in _COMMON for atom in atoms(word))
_COMMON_ZH = ("名称", "姓名", "状态", "类型", "日期", "时间", "备注", "说明", "描述", "类别", "性别", "金额", "数量")


def _equal_names(tables: Mapping[str, DemoTable], known: Sequence[Link]) -> list[Link]:
    """Columns of one name join two tables that nothing else joins, where one side holds each value once.

    Declared keys come first: where they lead from one table to the other, by others, a name is no shorter way. Two
    tables' own keys of one name (编号, code, uid) number two things, unless the name says whose they are.
    """
    joined = {frozenset((link.table, link.target)) for link in known}
    group = _declared_groups(tables, known)
    found: list[Link] = []
    for table, other in itertools.permutations(tables.values(), 2):
        pair = frozenset((table.name, other.name))
        if pair in joined or group[table.name] == group[other.name]:
            continue
        names = {column.name.lower(): column for column in table.columns if _tells_apart(column)}
        for column in sorted(other.columns, key=lambda c: not c.keyish):
            mine = names.get(column.name.lower())
            unique = (
                other.rows is not None and other.rows > 1 and column.distinct == other.rows and _heads(other, column)
            )
            own = mine is not None and _own_keys(table, other, mine)
            if mine is not None and unique and not own and mine.kind == column.kind and pair not in joined:
                found.append(Link(table.name, (mine.name,), other.name, (column.name,), declared=False))
                joined.add(pair)
    return found


def _declared_groups(tables: Iterable[str], known: Iterable[Link]) -> dict[str, str]:
    """For each table one that stands for all that declared keys connect with it."""
    group = {name: name for name in tables}
    for link in known:
        if link.declared:
            old, new = group[link.table], group[link.target]
            group = {name: new if at == old else at for name, at in group.items()}
    return group


def _own_keys(table: DemoTable, other: DemoTable, column: DemoColumn) -> bool:
    """Whether a name is that of both tables' own keys, and does not say that they are the other's."""
    names = {(_key(item) or "").lower() for item in (table, other)}
    return names == {column.name.lower()} and _names(other, _base(column) or ()) < 1.0


def _heads(table: DemoTable, column: DemoColumn) -> bool:
    """Whether a column is where a key stands: it looks like one, comes first, or has the table's name in its own."""
    return column.keyish or column == table.columns[0] or bool(set(column.words) & set(table.words))


def _tells_apart(column: DemoColumn) -> bool:
    """Whether a column of this name may lead to another table: no word that any table has, no date, no amount."""
    common = (len(column.words) == 1 and set(column.words) <= _COMMON_STEMS) or _base(column) == ()
    amount = column.kind in ("date", "bool") or (column.kind == "number" and not column.keyish)
    return not (common or amount or column.name in _COMMON_ZH)


def key_of(table: DemoTable) -> str | None:
    """The column that identifies a row: the declared key, else a column named like one."""
    return _key(table)


def _key(table: DemoTable) -> str | None:
    if len(table.primary) == 1:
        return table.primary[0]
    if len(table.primary) > 1:
        return None
    primary = [column.name for column in table.columns if column.primary]
    if len(primary) == 1:
        return primary[0]
    for column in table.columns[:2]:
        base = _base(column)
        if base is not None and (not base or _names(table, base) >= 1.0) and not _repeats(table, column):
            return column.name
    first = table.columns[0] if table.columns else None
    return first.name if first is not None and _base(first) is not None and not _repeats(table, first) else None


def _repeats(table: DemoTable, column: DemoColumn) -> bool:
    """Whether a column, whatever it is called, holds a value twice or lacks one: an order's number on each line."""
    return table.counted and None not in (column.distinct, table.rows) and column.distinct != table.rows


def _base(column: DemoColumn) -> tuple[str, ...] | None:
    """The name of a key column without its key word: `artist_id` -> (artist,), `id` -> (); None when it is no key."""
    words = column.words
    for ending in _KEY_CHARS:
        if column.name.endswith(ending):
            return words[: len(words) - len(ending)]
    if words and words[-1] in _KEY_WORDS:
        return words[:-1]
    if len(words) == 1 and column.name.isascii() and words[0].endswith("id") and 2 < len(words[0]) <= 4:
        return words  # aid, pid: abbreviations, matched by name alone
    return None


def pointed_at(schema: DemoSchema, name: str) -> list[str]:
    """The tables, not known any closer, that the key columns of a table seem to name."""
    found = []
    for column in schema.tables[name].columns:
        base = _base(column)
        for other in schema.tables.values():
            if base and not other.columns and other.name != name and _names(other, base) >= 0.7:
                found.append(other.name)
    return found


def _names(table: DemoTable, base: tuple[str, ...]) -> float:
    """How well a key's base names the table: 1 the whole name, less for its end."""
    words = table.words
    if not base or not words:
        return 0.0
    if base == words or any(base == other for other in glossary().same(words)):
        return 1.0
    if len(base) > len(words) and base[-len(words) :] == words:
        return 0.9
    if len(words) > len(base) and words[-len(base) :] == base:
        return 0.7
    return 0.0


def _prefixed(base: tuple[str, ...], key: tuple[str, ...] | None) -> bool:
    """Whether a key's name is another's with a table's mark in between: `sbTxTickerId` and `sbTickerId`."""
    return bool(key) and len(base) > len(key or ()) > 1 and key is not None and (base[0], base[-1]) == (key[0], key[-1])


def _inferred(tables: Mapping[str, DemoTable], table: DemoTable, column: DemoColumn) -> list[Link]:
    base = _base(column)
    if not base or column.name == _key(table) or (table.primary == (column.name,)):
        return []
    best: tuple[float, DemoTable, str] | None = None
    for other in tables.values():
        key = _key(other)
        if key is None or (other.name == table.name and key == column.name):
            continue
        same = (
            key.lower() == column.name.lower()
            and len(column.words) + len(column.name) > 3
            and column.name.lower() != "id"
        )
        score = max(_names(other, base), 0.95 if same and other.name != table.name else 0.0)
        score = max(score, 0.75 if _prefixed(base, _base(other.column(key))) and other.name != table.name else 0.0)
        generic = column.words[-1] not in ("id", "key", "uuid") and column.name.isascii() and not same
        if score >= 0.7 and not (generic and score < 1.0) and (best is None or score > best[0]):
            best = (score, other, key)
    if best is None:
        return []
    return [Link(table.name, (column.name,), best[1].name, (best[2],), declared=False)]
