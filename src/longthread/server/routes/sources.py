"""The sources that conversations may ask: listed, added by address or as a file, looked into, removed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field, model_validator
from starlette.requests import ClientDisconnect

from longthread.access import audit
from longthread.access.grants import EVERYTHING, GrantedRights
from longthread.access.uploads import expect_own_upload, forget_uploads, note_upload
from longthread.errors import (
    CatalogInvalid,
    DefinitionAmbiguous,
    DefinitionInUse,
    DefinitionNotFound,
    ExtraMissing,
    LongthreadError,
    SecretUnusable,
    SettingsNotAllowed,
    SourceError,
    SourceTaken,
    UploadExists,
    UploadFailed,
    UploadNotFound,
    UploadRefused,
    UploadTooLarge,
)
from longthread.model.catalog import SourceDefinition, source_of
from longthread.runs.rights import granted_names
from longthread.server.answers import JsonObject
from longthread.server.catalog_answers import NoteView, SourceList, SourcePreview, SourceView, TableView, UploadView
from longthread.server.fields import Name, PathSegment, PlainText
from longthread.server.openapi import problems
from longthread.server.requests import until_gone
from longthread.server.state import (
    BUILDER_ONLY,
    DEMO,
    OWNER_ONLY,
    Caller,
    Granted,
    ProjectCaller,
    Rights,
    Served,
    ServedDep,
)
from longthread.tools.analysis.files.notes import Note
from longthread.tools.analysis.source import Source
from longthread.tools.catalog import address
from longthread.tools.catalog.definitions import Catalog
from longthread.tools.catalog.names import may_be_name
from longthread.tools.catalog.teach import name_of
from longthread.tools.sources import TablePreview, preview
from longthread.tools.upload_files import SUFFIXES, are_equal, copy_name, safe_name
from longthread.tools.uploads import MOST_FILES, Upload

router = APIRouter(prefix="/api", tags=["sources"])

_OPENS = (ExtraMissing, SecretUnusable, SourceError)
"""What may be wrong when a source is opened."""
_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}
_ANY_CASE = "|".join("".join(f"[{c}{c.upper()}]" if c.isalpha() else c for c in each[1:]) for each in SUFFIXES)
FileName = Annotated[Name, Query(max_length=500, json_schema_extra={"pattern": rf"^[^\x00]*\.({_ANY_CASE})$"})]
"""The name of a file of a kind that can be read."""
Encoding = Literal[
    "utf-8", "utf-16", "gb18030", "big5hkscs", "cp932", "euc_jp", "cp949", "cp1252", "cp1250", "cp1251", "cp437"
]
"""Of a file of text. Any other is named in the address of a file that lies where the server runs."""
OnConflict = Literal["replace", "keep_both"]
"""What becomes of a file with the name of a source's file."""


def _one_of(given: str, other: str) -> JsonObject:
    return {"required": [given], "properties": {given: {"not": {"type": "null"}}, other: {"type": "null"}}}


UploadIds = Annotated[
    list[Annotated[PlainText, Field(min_length=1, max_length=100)]], Field(min_length=1, max_length=MOST_FILES)
]


class NewSource(BaseModel):
    """A source: uploaded files, by their ids, or an address. Without a name, it is called as its files or database.
    Several files are tables that are asked and joined together."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"oneOf": [_one_of("uploads", "address"), _one_of("address", "uploads")]},
    )

    name: Annotated[Name, Field(max_length=100)] | None = None
    uploads: UploadIds | None = None
    address: Annotated[Name, Field(max_length=4096)] | None = None
    description: Annotated[PlainText, Field(max_length=2000)] | None = None

    @model_validator(mode="after")
    def _is_somewhere(self) -> Self:
        if (self.uploads is None) == (self.address is None):
            raise ValueError("give uploads or address")
        return self


class AddedFiles(BaseModel):
    """Uploaded files, by their ids."""

    model_config = ConfigDict(extra="forbid")

    uploads: UploadIds


@router.post(
    "/uploads",
    dependencies=[BUILDER_ONLY],
    status_code=201,
    responses=problems(
        *_OPENS, SettingsNotAllowed, UploadExists, UploadFailed, UploadNotFound, UploadRefused, UploadTooLarge
    ),
    openapi_extra=_BODY,
)
async def upload(
    served: ServedDep,
    user: Caller,
    granted: Granted,
    request: Request,
    name: FileName,
    encoding: Encoding | None = None,
    on_conflict: OnConflict | None = None,
) -> UploadView:
    """Upload a file, whose bytes are the body; `name` tells its kind. It is looked into and shown, and becomes a
    source with `POST /api/sources`. One that does not become one is deleted after a day. A broken upload leaves
    nothing. A file of text (CSV, TSV, JSON) whose `encoding` is named is kept in UTF-8; without, the encoding is
    found out.

    One with the name of a source's file is refused, unless `on_conflict` says what to do: `replace` puts it in the
    place of that file, and the source stays; `keep_both` gives it another name. `notes` say what was guessed of its
    tables, as `list_tables` does."""
    uploads = served.uploads
    await _forget(served, await uploads.sweep(await _list_used_uploads(served)))
    file = safe_name(name)
    there = await _of_equal_name(served, file, granted)
    if there is not None and on_conflict != "replace":
        file = await _beside(served, file, there, on_conflict)
    received = await uploads.receive(file, _pieces(request), encoding)
    shown: SourcePreview | None = None
    replaced = there if on_conflict == "replace" else None
    whole = False
    try:
        size = received.size
        with until_gone(request.receive):
            looked = await _preview(served, str(received.path), user)
            if replaced is not None:
                await _expect_replaceable(served, replaced, received, user)
            shown = looked
        if shown is None:
            raise UploadFailed(reason="the client broke off.")
        if replaced is not None:
            received = await uploads.replace(replaced.upload, replaced.file, received)
        await _note_owner(served, received, size, user, is_new=replaced is None)
        whole = True
    finally:
        if not whole:
            await uploads.discard(received)
    return {
        "upload": received.id,
        "name": received.name,
        "file": replaced.file.name if replaced is not None else received.path.name,
        "bytes": size,
        "source": await _view(served, replaced.source) if replaced is not None else None,
        **shown,
    }


@router.delete(
    "/uploads/{upload_id}",
    dependencies=[BUILDER_ONLY],
    status_code=204,
    responses=problems(SettingsNotAllowed, UploadNotFound, DefinitionInUse),
)
async def discard(served: ServedDep, user: Caller, upload_id: PathSegment) -> Response:
    """Delete an uploaded file of yours that is no source."""
    await _expect_own(served, [upload_id], user)
    with suppress(UploadNotFound):
        raise _in_use(await served.uploads.find(upload_id, of_source=True))
    found = await served.uploads.find(upload_id)
    if upload_id in await _list_used_uploads(served):
        raise _in_use(found)
    await served.uploads.discard(found)
    await _forget(served, [upload_id])
    await audit.note_alone(served.analyst.store, "upload.delete", upload_id)
    return Response(status_code=204)


@router.get("/sources", responses=problems(reads=True))
async def sources(served: ServedDep, rights: Rights, user: ProjectCaller) -> SourceList:
    """The sources by the names that a question may give, as far as the caller may use them; with `project`, also those
    of that project. Passwords are not shown.
    Where users log in, administrators alone see addresses."""
    own = rights.own_source
    granted = await served.analyst.runs.rights.of_caller(rights.principal, user_id=user)
    found: list[SourceView] = [
        {
            "name": name,
            "origin": "configured" if name == own else "demo",
            "description": None,
            "address": name,
            "upload": None,
            "files": [],
        }
        for name in dict.fromkeys([*([own] if own else []), DEMO])
        if granted.may_use("source", name)
    ]
    if rights.owner or rights.principal.via != "local":
        there = {DEMO, own}  # the demo may be defined, too, once it was taught something
        for each in await _list_definitions(served):
            if each.is_active and each.name not in there and granted.may_use("source", each.id, each.name):
                view = await _view(served, each)
                found.append(view if rights.owner else {**view, "address": None})
    return {"sources": found, "default": own, "changeable": rights.owner}


@router.post(
    "/sources",
    dependencies=[BUILDER_ONLY],
    status_code=201,
    responses=problems(
        CatalogInvalid,
        *_OPENS,
        SettingsNotAllowed,
        SourceTaken,
        UploadFailed,
        UploadNotFound,
        UploadRefused,
        body=True,
    ),
)
async def add(served: ServedDep, user: Caller, rights: Rights, granted: Granted, body: NewSource) -> SourceView:
    """Add a source to the catalog. It is opened first, and can be asked at once. No password is kept: an
    address with `${NAME}` is defined in a file. Where users log in, builders add files, and administrators alone
    addresses."""
    catalog = Catalog(served.analyst.store, user=user, rights=granted)
    if body.uploads is None:
        rights.expect_owner()
        where = await _address(served, str(body.address), user)
        return await _view_named(served, await _add(catalog, body, where, name_of(where)))
    kept = await served.uploads.keep(await _uploads(served, body.uploads, user))
    upload = kept.upload
    try:
        if kept.moved:
            await _expect_opens(served, upload, user)
        name = await _add(catalog, body, str(upload.path), upload.name)
    except LongthreadError:
        await served.uploads.give_back(kept)
        raise
    await served.uploads.settle(upload)
    await _forget(served, [each for each in body.uploads if each != upload.id])
    return await _view_named(served, name)


@router.post(
    "/sources/{name}/files",
    dependencies=[OWNER_ONLY],
    responses=problems(
        *_OPENS,
        DefinitionAmbiguous,
        DefinitionNotFound,
        SettingsNotAllowed,
        UploadFailed,
        UploadNotFound,
        UploadRefused,
        body=True,
    ),
)
async def add_files(served: ServedDep, user: Caller, name: PathSegment, body: AddedFiles) -> SourceView:
    """Add uploaded files to a source of uploaded files. Each is one more table, also for its conversations."""
    source = await Catalog(served.analyst.store).source(name)
    uploads = await _uploads(served, body.uploads, user)
    to = await served.uploads.of_address(source.address)
    if to is None:
        reason = f"the source {source.name} is none of uploaded files. Add it as a source of its own."
        raise UploadRefused(name=uploads[0].path.name, reason=reason)
    added = await served.uploads.add(to, uploads)
    try:
        await _expect_opens(served, to, user)
    except LongthreadError:
        await served.uploads.take_out(added)
        raise
    await _forget(served, body.uploads)
    return await _view(served, source)


async def _uploads(served: Served, ids: list[str], user: str) -> list[Upload]:
    await _expect_own(served, ids, user)
    return [await served.uploads.find(each) for each in dict.fromkeys(ids)]


async def _expect_own(served: Served, ids: list[str], user: str) -> None:
    async with served.analyst.store.reading() as tx:
        for each in ids:
            await expect_own_upload(tx, each, user_id=user, without_row=served.analyst.settings.user)


async def _note_owner(served: Served, upload: Upload, size: int, user: str, *, is_new: bool) -> None:
    """Note whose an upload is, where users log in. One that replaced a source's file is the source's."""
    if served.authentication.is_local:
        return
    async with served.analyst.store.writing() as tx:
        if is_new:
            await note_upload(tx, upload.id, upload.path.name, size, user_id=user)
        await audit.note(tx, "upload.add", upload.id, bytes=size)


async def _forget(served: Served, ids: Collection[str]) -> None:
    """Forget whose uploads were that are deleted, or now belong to a source of several files."""
    if served.authentication.is_local or not ids:
        return
    async with served.analyst.store.writing() as tx:
        await forget_uploads(tx, ids)


async def _expect_opens(served: Served, upload: Upload, user: str) -> None:
    """Open a source of several files: each could be read, and all of them may take too much memory or time."""
    async with await served.analyst.sources.open(str(upload.path), None, user_id=user):
        return


async def _add(catalog: Catalog, body: NewSource, where: str, default: str) -> str:
    taken = {each.name for each in await catalog.definitions("source")}
    name = (body.name or _free(default, taken)).strip()
    if name == DEMO:
        raise SourceTaken(name=name)
    if not may_be_name(name):
        raise CatalogInvalid(problems=[f"{name!r} is no name: it has no . / \\ or :, and is not `demo`."])
    item = {"kind": "source", "name": name, "address": where}
    await catalog.add_source(item | ({"description": body.description} if body.description else {}))
    return name


async def _view_named(served: Served, name: str) -> SourceView:
    return await _view(served, await Catalog(served.analyst.store).source(name))


@router.get(
    "/sources/{name}/preview",
    responses=problems(*_OPENS, DefinitionAmbiguous, DefinitionNotFound, SettingsNotAllowed, reads=True),
)
async def look(served: ServedDep, user: Caller, rights: Rights, granted: Granted, name: PathSegment) -> SourcePreview:
    """A source's first tables, with the types of their columns and first rows."""
    if name in {DEMO, rights.own_source}:
        return await _preview(served, rights.source(name) or name, user, granted)
    rights.expect_known()
    if not granted.is_unbounded:
        name = (await granted_names(served.analyst.store, granted)).one("source", name).id
    return await _preview(served, await Catalog(served.analyst.store).address(name), user, granted)


@router.delete(
    "/sources/{name}",
    dependencies=[OWNER_ONLY],
    status_code=204,
    responses=problems(DefinitionAmbiguous, DefinitionInUse, DefinitionNotFound, SettingsNotAllowed),
)
async def remove(served: ServedDep, user: Caller, name: PathSegment) -> Response:
    """Remove a source from the catalog, and its file if it was uploaded. Its conversations stay, and cannot ask it.
    409 while an agent or a tool uses it."""
    catalog = Catalog(served.analyst.store, user=user)
    found = await catalog.source(name)
    uploaded = await served.uploads.of_address(found.address)
    if uploaded is not None:
        with suppress(UploadNotFound):  # the file is gone
            await served.uploads.unsettle(uploaded)
    await catalog.delete("source", found.id)
    if uploaded is not None:
        if uploaded.id in await _list_used_uploads(served):
            await served.uploads.settle(uploaded)
        else:
            await served.uploads.discard(uploaded)
            await _forget(served, [uploaded.id])
    return Response(status_code=204)


async def _pieces(request: Request) -> AsyncIterator[bytes]:
    try:
        async for piece in request.stream():
            if piece:
                yield piece
    except ClientDisconnect as error:
        raise UploadFailed(reason="the client broke off.") from error


def _in_use(found: Upload) -> DefinitionInUse:
    remedy = "Remove the source, and its file goes with it."
    return DefinitionInUse(kind="file", name=found.path.name, users="a source", remedy=remedy)


@dataclass(frozen=True, slots=True)
class _SourceFile:
    source: SourceDefinition
    upload: Upload
    file: Path
    received_at: datetime


async def _of_equal_name(served: Served, file: str, granted: GrantedRights) -> _SourceFile | None:
    """The source with an uploaded file of this name that the caller may change; of several, the one with the newest
    file."""
    found: list[_SourceFile] = []
    for each in await _list_definitions(served):
        upload = await served.uploads.of_address(each.address)
        if upload is None or not each.is_active or not granted.may_edit("source", each.id, each.name):
            continue
        for path in upload.files:
            if are_equal(path.name, file) and (received_at := await served.uploads.received_at(path)):
                found.append(_SourceFile(each, upload, path, received_at))
    return max(found, key=lambda each: each.received_at, default=None)


async def _expect_replaceable(served: Served, there: _SourceFile, received: Upload, user: str) -> None:
    """Open the source with a new file in the place of the old one, which stays until then."""
    staged = await served.uploads.stage(there.upload, there.file, received)
    if staged is not None:
        await _expect_opens(served, staged, user)


async def _beside(served: Served, file: str, there: _SourceFile, on_conflict: OnConflict | None) -> str:
    """Return another name for a file, to store it next to the one that is there. Raises UploadExists: the user has not
    chosen that."""
    defined = await _list_definitions(served)
    uploads = [await served.uploads.of_address(each.address) for each in defined]
    files = [path.name for each in uploads if each for path in each.files]
    other = copy_name(file, files, {each.name for each in defined})
    if on_conflict == "keep_both":
        return other
    at = there.received_at.isoformat(timespec="seconds")
    raise UploadExists(name=there.file.name, uploaded_at=at, source=there.source.name, other=other)


async def _list_used_uploads(served: Served) -> set[str]:
    """The uploads that sources read."""
    return served.uploads.of_addresses(each.address for each in await _list_definitions(served))


async def _list_definitions(served: Served) -> list[SourceDefinition]:
    return [source_of(each) for each in await Catalog(served.analyst.store).definitions("source")]


async def _address(served: Served, given: str, user: str) -> str:
    """The address of a new source, which can be opened. Raises CatalogInvalid, SourceError, InvalidInput."""
    where = address.normalize_address(given)
    if "${" in where:  # else a user who may add sources could send any secret to any server
        raise CatalogInvalid(
            problems=["Secrets are not filled in here. Define this source in a file, with `longthread apply`."]
        )
    if served.uploads.holds(where):  # else two sources have one file, which goes with the first that is removed
        raise CatalogInvalid(problems=["An uploaded file is the file of one source. Upload it again for another one."])
    async with await served.analyst.sources.open(where, None, user_id=user):
        return where


def _free(name: str, taken: set[str]) -> str:
    name = "".join(each for each in name if each not in "./\\:").strip() or "data"
    return next(
        each for each in (name, *(f"{name}-{n}" for n in range(2, len(taken) + 3))) if each not in taken | {DEMO}
    )


async def _view(served: Served, found: SourceDefinition) -> SourceView:
    uploaded: Upload | None = await served.uploads.of_address(found.address)
    return {
        "name": found.name,
        "origin": "catalog",
        "description": found.description,
        "address": None if uploaded is not None else address.public(found.address),
        "upload": uploaded.id if uploaded is not None else None,
        "files": [each.name for each in uploaded.files] if uploaded is not None else [],
    }


async def _preview(served: Served, spec: str, user: str, rights: GrantedRights = EVERYTHING) -> SourcePreview:
    async with await served.analyst.sources.open(spec, None, user_id=user, rights=rights) as source:
        tables = await preview(source)
        return {
            "tables": [_table(each) for each in tables],
            "of": len(await source.schema()),
            "notes": _notes(source, [each.table.label for each in tables]),
        }


def _notes(source: Source, labels: list[str]) -> list[NoteView]:
    """Notes on files, then on these tables. Some of those on tables are among those on files too."""
    on_tables = [(label, note) for label in labels for note in source.notes_on(label)]
    again = {f"{label}: {note}" for label, note in on_tables}
    return [_note(*each) for each in [*((None, note) for note in source.notes if note not in again), *on_tables]]


def _note(table: str | None, told: str) -> NoteView:
    note = told if isinstance(told, Note) else Note(told)
    return {"text": note.bare, "code": note.code, "values": note.values, "table": table, "column": note.column}


def _table(found: TablePreview) -> TableView:
    return {
        "name": found.table.label,
        "columns": [{"name": each.name, "type": each.type} for each in found.columns],
        "rows": [list(row) for row in found.rows],
        "problem": found.problem,
    }
