"""The answers about what a server is set up with: the catalog, its sources and uploads, models and keys."""

from __future__ import annotations

from typing import Any, Literal

from typing_extensions import TypedDict

from longthread.llm.model_facts import WindowOrigin
from longthread.model.catalog import Kind
from longthread.model.run import ProbedProtocol
from longthread.server.answers import JsonObject, Timestamp
from longthread.tools.tool_type import FieldInput, Power


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


class LocalText(TypedDict):
    en: str
    zh: str


class ToolFieldView(TypedDict):
    """A field of an implementation that a form shows. `none` is what an empty choice says."""

    name: str
    input: FieldInput
    title: LocalText
    hint: LocalText | None
    options: list[str]
    none: LocalText | None


class ToolTypeView(TypedDict):
    """A type of tools. `about` says what it does; a type without it is defined on the command line alone. A form shows
    `fields` of its implementation, and `more` gives examples of the others. One that `serves_tools` may have several
    for a definition, whose schemas it knows itself."""

    name: str
    title: LocalText
    about: LocalText | None
    fields: list[ToolFieldView]
    more: LocalText | None
    serves_tools: bool


class CatalogList(TypedDict):
    """Definitions by name. `changeable`: callers may change them. Where tools are listed, `types` are theirs."""

    items: list[CatalogItem]
    changeable: bool
    types: list[ToolTypeView]


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


ModelOrigin = Literal["configured", "demo", "local", "provider"]


class ModelInfo(TypedDict):
    """A model by its name in requests, and where it comes from: it is `configured`, the `demo`, of a server that was
    found on this machine (`local`), or what a provider lists for a key. `provider` is that provider, or the kind of
    that server. `protocol` is how the model speaks best, as a probe found; null: it was not probed."""

    name: str
    origin: ModelOrigin
    provider: str | None
    protocol: ProbedProtocol | None


class ModelProvider(TypedDict):
    """A provider that can be connected, or a user's own server: `own:NAME`. `name` and `chinese_name` are what it calls
    itself, `addresses` the base URLs among which one is chosen; none: its user gives one. `kind`: of a `local` server
    `addresses` says where it listens by default, and `own` connects it. `url` is where it is asked once it is
    `connected`. `key` says where its key is from, and never what it is; `set_at` is when it was stored. `problem`: it
    refuses the key, does not answer, or was stored under another LONGTHREAD_SECRET_KEY."""

    provider: str
    kind: Literal["vendor", "local", "own"]
    name: str
    chinese_name: str
    addresses: list[str]
    connected: bool
    url: str | None
    key: Literal["stored", "environment"] | None
    set_at: Timestamp | None
    problem: Literal["refused", "unreachable", "unreadable"] | None


class ModelServer(TypedDict):
    """A server on this machine, such as `ollama`."""

    kind: str
    url: str


class ModelList(TypedDict):
    """The models that can be asked. `default` is asked where none is named. `keys_allowed`: callers may enter keys."""

    default: str
    models: list[ModelInfo]
    providers: list[ModelProvider]
    servers: list[ModelServer]
    keys_allowed: bool


class KeyChecked(TypedDict):
    """The models that a provider lists for a key, and where it was asked; null: it was not asked, or has no list."""

    provider: str
    url: str
    models: list[str] | None


class ModelChecked(TypedDict):
    """A model that has answered. `window` is in tokens. Its `origin`: the `server` told it, it is `known` by the
    model's name, `measured` by a call that was refused, a `setting`, or `assumed`."""

    model: str
    window: int
    origin: WindowOrigin
