"""The answers about the catalog, its sources, and uploads."""

from __future__ import annotations

from typing import Any, Literal

from typing_extensions import TypedDict

from longthread.model.catalog import Kind
from longthread.server.answers import JsonObject, Timestamp
from longthread.tools.catalog.definitions import Power


class CatalogName(TypedDict):
    kind: Kind
    name: str


class CatalogItem(TypedDict):
    """A definition. `definition` is what a person writes, as `longthread apply` takes it; null in a version that
    deleted it. A built-in one cannot be changed. `by` is the user who made this version. `used_by` are those that refer
    to it. `power` is what a tool can do that only the command line may define: its implementation stays as it is."""

    id: str
    name: str
    version: int
    is_active: bool
    is_builtin: bool
    by: str | None
    updated_at: Timestamp | None
    used_by: list[CatalogName]
    power: Power | None
    definition: JsonObject | None


class CatalogList(TypedDict):
    """Definitions by name. `changeable`: callers may change them."""

    items: list[CatalogItem]
    changeable: bool


class CatalogVersion(TypedDict):
    version: int
    name: str
    at: Timestamp
    by: str | None
    deleted: bool


class CatalogVersions(TypedDict):
    versions: list[CatalogVersion]


class CatalogChange(TypedDict):
    """What a change came to: an equal definition makes no version."""

    action: Literal["created", "changed", "unchanged"]
    item: CatalogItem


class ToolTrial(TypedDict):
    """What an agent would be told: `{"ok": true, "data": …}` or `{"ok": false, "error": {"type", "message"}}`."""

    tool: str
    observation: JsonObject


class SourceView(TypedDict):
    """A source, by the name that a question may give as its `source`. `address` has no password. It is null for
    `files` that were uploaded, whose id is `upload`: the address that a conversation keeps has it as a part."""

    name: str
    origin: Literal["configured", "demo", "catalog"]
    description: str | None
    address: str | None
    upload: str | None
    files: list[str]


class SourceList(TypedDict):
    """The sources. `default` is asked where none is named. `changeable`: callers may add and remove some."""

    sources: list[SourceView]
    default: str | None
    changeable: bool


class SourceTerm(TypedDict):
    name: str
    meaning: str | None
    sql: str | None
    synonyms: list[str]


class SourceExample(TypedDict):
    question: str
    sql: str


class SourceTerms(TypedDict):
    """What a source was taught, in this version of it; `version` is 0 where nobody has taught it. `metrics` are the
    names of those that its definition has."""

    source: str
    version: int
    description: str | None
    terms: list[SourceTerm]
    examples: list[SourceExample]
    metrics: list[str]
    changeable: bool


class SourceColumn(TypedDict):
    name: str
    type: str


class TableView(TypedDict):
    """A table with its first rows; `problem` says why they cannot be read."""

    name: str
    columns: list[SourceColumn]
    rows: list[list[Any]]
    problem: str | None


class NoteView(TypedDict):
    """What is told of how a file was read: an English `text`, or what a program says by its `code` and the `values` in
    it. Without a code there is only the text. It is on a column, a table, or neither."""

    text: str
    code: str
    values: dict[str, str | int]
    table: str | None
    column: str | None


class SourcePreview(TypedDict):
    """The first tables `of` so many. `notes` say what was guessed, and which files were left out."""

    tables: list[TableView]
    of: int
    notes: list[NoteView]


class UploadView(SourcePreview):
    """A file that was uploaded. `name` is what its source would be called; `source` is the one whose file it has
    replaced, else null."""

    upload: str
    name: str
    file: str
    bytes: int
    source: SourceView | None
