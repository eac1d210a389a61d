"""Documents of definitions: YAML or JSON, one or many in a text.

A document is one definition with its `kind`, or lists of them under `agents`, `skills`, `tools`, `sources`,
`upstreams` and `routes`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from longthread.errors import CatalogInvalid, InvalidInput
from longthread.model.catalog import KINDS, Kind
from longthread.tools.skill_folder import read_skill, skill_folders
from longthread.tools.yamltext import expect_unique, yaml_loader, yaml_problem

STDIN = "-"
SUFFIXES = frozenset({".yaml", ".yml", ".json"})
"""The files that are read of a folder."""
_LISTS: Mapping[str, Kind] = {f"{kind}s": kind for kind in KINDS}
_MOST_VALUES = 200_000
"""Values of one document, against aliases that multiply."""
_DEEPEST = 60


@dataclass(frozen=True, slots=True)
class DefinitionDocument:
    """One definition as it was written. `where` is its place, for people; `folder` is the base of its paths."""

    kind: Kind
    data: Mapping[str, Any]
    where: str
    folder: Path | None = None

    @property
    def label(self) -> str:
        """The place and the definition's name, for a message."""
        name = self.data.get("name") or _schema_name(self.data)
        kind_and_name = f"{self.kind} {name}" if isinstance(name, str) and name else self.kind
        return f"{self.where}, {kind_and_name}" if self.where else kind_and_name


def read_paths(paths: Iterable[str | Path], stdin: str = "", *, kind: Kind | None = None) -> list[DefinitionDocument]:
    """The definitions of files, of folders' files and, for `-`, of standard input. A folder with a SKILL.md is a skill.
    `kind` is the default kind. Raises CatalogInvalid; InvalidInput: a file cannot be read."""
    found: list[DefinitionDocument] = []
    for path in paths:
        if str(path) == STDIN:
            found += read_text(stdin, "standard input", kind=kind)
            continue
        place = Path(path).expanduser()
        folders = skill_folders(place)
        found += [_skill(folder, kind) for folder in folders]
        if folders and (folders[0] in (place, place.parent)):
            continue  # other files belong to the skill
        for file in _files(place, alone=not folders):
            found += read_text(_text_of(file), str(file), kind=kind, folder=file.absolute().parent)
    return found


def read_mappings(paths: Iterable[str | Path]) -> list[Mapping[str, Any]]:
    """The objects of YAML and JSON files that are no definitions of ours, also of files deep in folders. Raises
    CatalogInvalid; InvalidInput: a file cannot be read."""
    found: list[Mapping[str, Any]] = []
    for path in paths:
        place = Path(path).expanduser()
        files = sorted(each for each in place.rglob("*") if each.suffix in SUFFIXES) if place.is_dir() else [place]
        for file in files:
            found += [data for _, data in _parse_documents(_text_of(file), str(file)) if isinstance(data, Mapping)]
    return found


def read_skills(paths: Iterable[str | Path]) -> list[DefinitionDocument]:
    """The skills that folders are or have. Raises CatalogInvalid; InvalidInput: a folder has no skill."""
    found: list[DefinitionDocument] = []
    for path in paths:
        folders = skill_folders(Path(path).expanduser())
        if not folders:
            raise InvalidInput(reason=f"{path} is no skill's folder, and has none in it: there is no SKILL.md.")
        found += [_skill(folder, None) for folder in folders]
    return found


def _skill(folder: Path, kind: Kind | None) -> DefinitionDocument:
    where = str(folder)
    data = _plain({"kind": "skill", **read_skill(folder)}, where)
    return _definition(data, where, kind, folder.absolute())


def read_text(
    text: str, name: str, *, kind: Kind | None = None, folder: Path | None = None
) -> list[DefinitionDocument]:
    """The definitions of a YAML or JSON text. Raises CatalogInvalid."""
    documents: list[DefinitionDocument] = []
    for number, (line, data) in enumerate(_parse_documents(text, name), start=1):
        where = f"{name}, document {number} (line {line})"
        documents += _definitions(data, where, kind, folder)
    if not documents:
        raise CatalogInvalid(problems=[f"{name}: there is no definition in it."])
    return documents


def read_data(
    items: Iterable[Any], *, kind: Kind | None = None, folder: Path | None = None
) -> list[DefinitionDocument]:
    """Definitions from mappings. Raises CatalogInvalid."""
    documents: list[DefinitionDocument] = []
    for number, item in enumerate(items, start=1):
        where = f"item {number}"
        documents += _definitions(_plain(item, where), where, kind, folder)
    return documents


def _definitions(data: Any, where: str, kind: Kind | None, folder: Path | None) -> Iterator[DefinitionDocument]:
    if isinstance(data, list):
        for number, one in enumerate(data, start=1):
            yield from _definitions(one, f"{where}, item {number}", kind, folder)
    elif not isinstance(data, dict):
        raise CatalogInvalid(problems=[f"{where}: this is no definition but {_describe_value(data)}."])
    elif "kind" not in data and data and data.keys() <= _LISTS.keys():
        for key, items in data.items():
            if not isinstance(items, list):
                raise CatalogInvalid(
                    problems=[f"{where}: `{key}` must be a list of {key}, and is {_describe_value(items)}."]
                )
            for number, one in enumerate(items, start=1):
                yield from _definitions(one, f"{where}, {key}[{number}]", _LISTS[key], folder)
    else:
        yield _definition(data, where, kind, folder)


def _definition(data: dict[str, Any], where: str, kind: Kind | None, folder: Path | None) -> DefinitionDocument:
    given = data.get("kind", kind)
    chosen = next((each for each in KINDS if isinstance(given, str) and given.lower() in (each, f"{each}s")), None)
    if chosen is None:
        problem = "does not say its `kind`" if given is None else f"has the kind {_describe_value(given)}"
        raise CatalogInvalid(
            problems=[f"{where}: a definition {problem}. Write kind: {', '.join(KINDS[:-1])} or {KINDS[-1]}."]
        )
    if kind is not None and chosen != kind:
        raise CatalogInvalid(
            problems=[f"{where}: this is a definition of kind {chosen}, and here {kind}s are expected."]
        )
    return DefinitionDocument(chosen, {key: value for key, value in data.items() if key != "kind"}, where, folder)


def _files(path: Path, *, alone: bool) -> list[Path]:
    """The files of a path. `alone`: there must be one."""
    try:
        if not path.is_dir():
            return [path]
        found = [each for each in path.iterdir() if each.suffix.lower() in SUFFIXES and not each.name.startswith(".")]
        files = sorted(each for each in found if each.is_file())
    except OSError as error:
        raise InvalidInput(reason=f"{path} cannot be read: {error.strerror or error}.") from None
    if not files and alone:
        raise InvalidInput(reason=f"The folder {path} has no .yaml, .yml or .json files, and no SKILL.md.")
    return files


def _text_of(file: Path) -> str:
    try:
        return file.read_text("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInput(reason=f"{file} is not text in UTF-8.") from None
    except OSError as error:
        raise InvalidInput(reason=f"{file} cannot be read: {error.strerror or error}.") from None


def _parse_documents(text: str, name: str) -> Iterator[tuple[int, Any]]:
    """Each document with its first line, without empty ones."""
    if text.lstrip()[:1] in ("{", "["):
        found = _json(text)
        if found is not None:
            yield from ((line, _plain(data, f"{name} (line {line})")) for line, data in found)
            return
    loader = None
    try:
        loader = yaml_loader(text)
        while loader.check_node():
            node = loader.get_node()
            expect_unique(node)
            data = loader.construct_document(node)
            line = node.start_mark.line + 1
            if data is not None:
                yield line, _plain(data, f"{name} (line {line})")
    except yaml.YAMLError as error:
        raise CatalogInvalid(problems=[f"{name}: {yaml_problem(error)}"]) from None
    except (ValueError, RecursionError) as error:
        raise CatalogInvalid(problems=[f"{name}: this cannot be read: {' '.join(str(error).split())[:200]}."]) from None
    finally:
        if loader is not None:
            loader.dispose()


def _json(text: str) -> list[tuple[int, Any]] | None:
    """The JSON values of a text; None for other text."""
    decoder = json.JSONDecoder(object_pairs_hook=_unique)
    found, place = [], 0
    try:
        while place < len(text):
            rest = text[place:]
            place += len(rest) - len(rest.lstrip())
            if place < len(text):
                line = text.count("\n", 0, place) + 1
                data, place = decoder.raw_decode(text, place)
                found.append((line, data))
    except (ValueError, RecursionError):
        return None  # the YAML parser reports the error, and reads what is nearly JSON
    return found


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) != len(pairs):
        raise ValueError("a key stands there twice")
    return data


def _plain(value: Any, where: str) -> Any:
    """A value as plain JSON. Raises CatalogInvalid: it has a date or another type, or is too large."""
    left = _MOST_VALUES

    def plain(one: Any, path: str, depth: int) -> Any:
        nonlocal left
        left -= 1
        if left < 0 or depth > _DEEPEST:
            raise CatalogInvalid(problems=[f"{where}: it is too large, or nested too deeply."])
        if isinstance(one, Mapping):
            for key in one:
                if not isinstance(key, str):
                    raise CatalogInvalid(problems=[f"{where}: {path or 'it'} has the key {key!r}. Put it into quotes."])
            return {
                plain(key, path, depth + 1): plain(each, f"{path}.{key}" if path else key, depth + 1)
                for key, each in one.items()
            }
        if isinstance(one, list | tuple):
            return [plain(each, f"{path}[{number}]", depth + 1) for number, each in enumerate(one)]
        if isinstance(one, str):
            if "\x00" in one or any("\ud800" <= each <= "\udfff" for each in one if not each.isascii()):
                raise CatalogInvalid(problems=[f"{where}: {path or 'it'} holds a character that is no text."])
            return one
        if one is None or isinstance(one, bool | int) or (isinstance(one, float) and math.isfinite(one)):
            return one
        raise CatalogInvalid(
            problems=[f"{where}: {path or 'it'} is {_describe_value(one)}. Put it into quotes if it is a text."]
        )

    return plain(value, "", 0)


def _describe_value(value: Any) -> str:
    if value is None:
        return "empty"
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    text = str(value)
    return repr(text if len(text) <= 60 else f"{text[:59]}…")


def _schema_name(data: Mapping[str, Any]) -> Any:
    """The name in a tool's schema."""
    schema = data.get("schema")
    schema = schema.get("function", schema) if isinstance(schema, dict) else None
    return schema.get("name") if isinstance(schema, dict) else None
