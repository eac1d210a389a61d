"""Reads and writes folders of Agent Skills: a SKILL.md with other files.

A SKILL.md is YAML between two lines `---`, and instructions in Markdown below. Keywords, tools and other config are
under `metadata`, which other programs ignore. The YAML is stored as written.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from longthread.errors import CatalogInvalid, InvalidInput
from longthread.model.catalog import same
from longthread.tools.skills import (
    MOST_BYTES,
    MOST_FILES,
    PAGE,
    TOO_LARGE,
    File,
    bundle_problems,
    files_in,
    path_problem,
)
from longthread.tools.yamltext import as_yaml, expect_unique, nodes_as_yaml, yaml_loader, yaml_problem

LONGEST_FRONT = 100_000
"""Characters of the YAML."""
KEYWORDS, TOOLS, CONFIG = "longthread-trigger-keywords", "longthread-tools", "longthread-config"
"""Our keys under `metadata`. Their values are texts, as Agent Skills require."""
OWN_CONFIG = ("instructions", "front_matter", "files")
"""Keys of a skill's `config` that come from its folder."""
_FENCE = re.compile(r"---[ \t]*(\r?\n|$)")
_COMMAS = re.compile(r"[,，、;；\n]")
_TEXT = "tag:yaml.org,2002:str"
_NULL = "tag:yaml.org,2002:null"


class PageInvalid(ValueError):
    """A SKILL.md is invalid; the message says why."""


@dataclass(frozen=True, slots=True)
class Page:
    """The two parts of a SKILL.md."""

    front: str
    body: str

    @classmethod
    def of(cls, text: str) -> Page:
        """Parses a text. Raises PageInvalid."""
        text = text.removeprefix("\ufeff")
        first = _FENCE.match(text)
        if first is None:
            raise PageInvalid("it does not begin with a line `---`, and YAML with name and description below it.")
        place = first.end()
        while place < len(text):
            line = text.find("\n", place) + 1 or len(text)
            fence = _FENCE.match(text, place)
            if fence is not None and fence.end() >= line:
                return cls(text[first.end() : place], text[line:])
            place = line
        raise PageInvalid("its YAML does not end: below it stands no line `---`.")

    @property
    def text(self) -> str:
        """The whole text, with the line breaks of the YAML."""
        line = "\r\n" if "\r\n" in self.front else "\n"
        end = "" if self.front.endswith("\n") or not self.front else line
        return f"---{line}{self.front}{end}---{line}{self.body}"


def definition(page: Page) -> dict[str, Any]:
    """The definition of a skill with names of tools, without files. Raises PageInvalid."""
    data = _parse_front(page.front)
    config = {key: value for key, value in data.pop("config").items() if key not in OWN_CONFIG}
    if page.body.strip():
        config["instructions"] = page.body
    # YAML that the definition implies is not stored.
    if page.front != _write_front({**data, "config": config}):
        config["front_matter"] = page.front
    return {key: value for key, value in {**data, "config": config}.items() if value not in ([], {})}


def page_of(skill: Mapping[str, Any]) -> Page:
    """The SKILL.md of a definition with names of tools, and its original YAML where still valid. Raises PageInvalid."""
    config = skill.get("config") or {}
    body = str(config.get("instructions") or "")
    if not str(skill.get("description") or "").strip():
        raise PageInvalid("it has no description, and a SKILL.md needs one: what it does, and when it is to be used.")
    front = config.get("front_matter")
    if not isinstance(front, str):
        return Page(_write_front(skill), body)
    try:
        now = _parse_front(front)
    except PageInvalid:  # another program wrote it
        return Page(_write_front(skill), body)
    wanted = _select_front_fields(skill)
    return Page(front if same(now, wanted) else _update_front(front, skill), body)


def front_problems(front: str) -> Iterator[tuple[str, str]]:
    """Problems of a `config.front_matter`, with the field."""
    try:
        _parse_front(front)
    except PageInvalid as error:
        yield "front_matter", str(error)


def _parse_front(front: str) -> dict[str, Any]:
    """The skill that the YAML describes, with `config` except the keys of the folder."""
    root = _root(front)
    values = _values(root)
    metadata = values.get("metadata")
    if metadata is not None and metadata.tag != _NULL and not isinstance(metadata, yaml.MappingNode):
        raise PageInvalid("metadata: it must be an object.")
    ours = _values(metadata)
    found = {
        "name": _text(values, "name"),
        "description": _text(values, "description"),
        "trigger_keywords": _list(ours, KEYWORDS),
        "tools": _list(ours, TOOLS),
        "config": _value(ours, CONFIG) or {},
    }
    if not isinstance(found["config"], dict):
        raise PageInvalid(f"metadata.{CONFIG}: it must be an object.")
    return found


def _root(front: str) -> Any:
    if len(front) > LONGEST_FRONT:
        raise PageInvalid(f"its YAML has {len(front):,} characters, and the limit is {LONGEST_FRONT:,}.")
    try:
        root = yaml_loader(front).get_single_node()
        expect_unique(root)
    except yaml.YAMLError as error:
        raise PageInvalid(f"{yaml_problem(error, above=1)} A text that holds `: ` or `#` is put into quotes.") from None
    except (ValueError, RecursionError) as error:
        raise PageInvalid(f"its YAML cannot be read: {' '.join(str(error).split())[:200]}.") from None
    if not isinstance(root, yaml.MappingNode):
        raise PageInvalid("its YAML must be an object with name and description.")
    return root


def _values(node: Any) -> dict[str, Any]:
    """The nodes of an object by key; empty for another node."""
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    return {key.value: value for key, value in pairs if isinstance(key, yaml.ScalarNode)}


def _text(values: Mapping[str, Any], key: str) -> str:
    node = values.get(key)
    if node is None or node.tag == _NULL or not str(node.value).strip():
        raise PageInvalid(f"{key}: it is missing. Give a text.")
    if not isinstance(node, yaml.ScalarNode) or node.tag != _TEXT:
        raise PageInvalid(f"{key}: it must be a text. Put it into quotes.")
    return str(node.value).strip()


def _list(values: Mapping[str, Any], key: str) -> list[Any]:
    """A list: in YAML, in JSON, or separated by commas."""
    value = _value(values, key)
    if isinstance(value, str):
        value = [part.strip() for part in _COMMAS.split(value) if part.strip()]
    if value is None:
        return []
    if not isinstance(value, list):
        raise PageInvalid(f"metadata.{key}: it must be a list, or a text with commas.")
    return value


def _value(values: Mapping[str, Any], key: str) -> Any:
    node = values.get(key)
    if node is None:
        return None
    try:
        _expect_tree(node)
        value = yaml_loader("").construct_document(node)
        json.dumps(value)
    except (yaml.YAMLError, TypeError, ValueError, RecursionError):
        raise PageInvalid(f"metadata.{key}: it cannot be read. Put texts into quotes, and use no aliases.") from None
    if isinstance(value, str) and value.strip()[:1] in ("[", "{"):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            raise PageInvalid(f"metadata.{key}: it begins like JSON, and is none.") from None
    return value


def _expect_tree(root: Any) -> None:
    """Refuses aliases: a few lines of them can expand to millions of values."""
    waiting, seen = [root], set[int]()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            raise ValueError("an alias")
        seen.add(id(node))
        if isinstance(node, yaml.CollectionNode):
            waiting += [each for one in node.value for each in (one if isinstance(one, tuple) else (one,))]


def _select_front_fields(skill: Mapping[str, Any]) -> dict[str, Any]:
    """The skill that a definition's YAML must describe, in the form of `_parse_front`."""
    config = skill.get("config") or {}
    return {
        "name": str(skill["name"]),
        "description": str(skill.get("description") or "").strip(),
        "trigger_keywords": list(skill.get("trigger_keywords") or ()),
        "tools": list(skill.get("tools") or ()),
        "config": {key: value for key, value in config.items() if key not in OWN_CONFIG},
    }


def _metadata(skill: Mapping[str, Any]) -> dict[str, str]:
    wanted = _select_front_fields(skill)
    words, tools = wanted["trigger_keywords"], wanted["tools"]
    texts_by_key = {KEYWORDS: _join_items(words), TOOLS: _join_items(tools), CONFIG: _json(wanted["config"])}
    return {key: text for key, text in texts_by_key.items() if text not in ("", "{}")}


def _join_items(items: list[Any]) -> str:
    plain = all(isinstance(each, str) and each and each == each.strip() and not _COMMAS.search(each) for each in items)
    return ", ".join(items) if plain and not any(each[0] in "[{" for each in items) else _json(items)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _write_front(skill: Mapping[str, Any]) -> str:
    """New YAML for a definition."""
    wanted, metadata = _select_front_fields(skill), _metadata(skill)
    data = {"name": wanted["name"], "description": wanted["description"]}
    return as_yaml(data | ({"metadata": metadata} if metadata else {}))


def _update_front(front: str, skill: Mapping[str, Any]) -> str:
    """Updates the YAML. Everything else stays, except comments."""
    root, now, wanted = _root(front), _parse_front(front), _select_front_fields(skill)
    for key in ("name", "description"):
        if now[key] != wanted[key]:
            _set(root, key, _node(wanted[key]))
    if not all(same(now[key], wanted[key]) for key in ("trigger_keywords", "tools", "config")):
        old = _values(root).get("metadata")
        others = old.value if isinstance(old, yaml.MappingNode) else []
        pairs = [(key, value) for key, value in others if key.value not in (KEYWORDS, TOOLS, CONFIG)]
        made = _node(_metadata(skill))
        _set(root, "metadata", yaml.MappingNode("tag:yaml.org,2002:map", [*pairs, *made.value], flow_style=False))
    return nodes_as_yaml(root)


def _set(root: Any, key: str, node: Any) -> None:
    there = [place for place, (name, _) in enumerate(root.value) if name.value == key]
    if there:
        root.value[there[0]] = (root.value[there[0]][0], node)
    else:
        root.value.append((_node(key), node))


def _node(value: Any) -> Any:
    return yaml.compose(as_yaml({"of": value}), Loader=yaml.SafeLoader).value[0][1]


NOT_OURS = frozenset({".git", ".hg", ".svn", "__pycache__", ".DS_Store"})
"""Files of other programs, which are skipped."""
_LONGEST_NAME = 180
"""Bytes of a folder's name; file systems allow 255."""
_NAMES = (PAGE, PAGE.lower())
_PLAIN = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def skill_folders(path: Path) -> list[Path]:
    """The skill folders of a path: itself, or those in it. A SKILL.md means its folder. Raises InvalidInput."""
    try:
        if path.name in _NAMES and path.is_file():
            return [path.parent]
        if not path.is_dir():
            return []
        if _page_in(path) is not None:
            return [path]
        inside = sorted(each for each in path.iterdir() if not each.name.startswith("."))
        found = [each for each in inside if each.is_dir() and _page_in(each) is not None]
    except OSError as error:
        raise InvalidInput(reason=f"{path} cannot be read: {error.strerror or error}.") from None
    for each in found:
        if each.is_symlink():
            raise _invalid(each, "it is a link. Name the folder that it leads to, if you mean it.")
    return found


def read_skill(folder: Path) -> dict[str, Any]:
    """The definition of a folder's skill. Raises CatalogInvalid (also for links and size); InvalidInput: unreadable."""
    try:
        name = _page_in(folder)
        if name is None:
            raise InvalidInput(reason=f"{folder} is no skill: there is no {PAGE} in it.")
        content = _content(folder, folder / name, MOST_BYTES + LONGEST_FRONT)
        files = list(_files(folder, name))
    except OSError as error:
        raise InvalidInput(reason=f"{error.filename or folder} cannot be read: {error.strerror or error}.") from None
    try:
        page = Page.of(content.decode("utf-8"))
        found = definition(page)
    except UnicodeDecodeError:
        raise _invalid(folder / name, "it is not text in UTF-8.") from None
    except PageInvalid as error:
        raise _invalid(folder / name, str(error)) from None
    if files:
        found["config"] = {**found.get("config", {}), "files": {file.path: file.stored_form for file in files}}
    problems = [f"{folder}: {problem}" for _, problem in bundle_problems(found.get("config", {}))]
    if problems:
        raise CatalogInvalid(problems=problems)
    return found


def _page_in(folder: Path) -> str | None:
    names = {each.name for each in folder.iterdir()}  # exact, also in a case-insensitive file system
    return next((name for name in _NAMES if name in names), None)


def _invalid(path: Path, problem: str) -> CatalogInvalid:
    return CatalogInvalid(problems=[f"{path}: {problem}"])


def _files(folder: Path, page: str) -> Iterator[File]:
    """The files of a folder without its SKILL.md, by path."""
    left, count = MOST_BYTES, 0
    waiting = [folder]
    while waiting:
        entries = sorted(os.scandir(waiting.pop()), key=lambda each: each.name)
        # Folders go on top of the stack, so that files are in the order of paths.
        folders: list[Path] = []
        for entry in entries:
            path = Path(entry.path)
            if entry.name in NOT_OURS or path == folder / page:
                continue
            problem = path_problem(path.relative_to(folder).as_posix())
            if problem is not None:
                raise _invalid(path, problem)
            if entry.is_dir(follow_symlinks=False):
                folders.append(path)
                continue
            count += 1
            if count > MOST_FILES:
                raise _invalid(folder, f"it has more than {MOST_FILES} files. Leave out what no model has to read.")
            content = _content(folder, path, left)
            left -= len(content)
            runs = os.name == "posix" and bool(entry.stat(follow_symlinks=False).st_mode & 0o111)
            yield File(path.relative_to(folder).as_posix(), content, runs)
        waiting += reversed(folders)


def _content(folder: Path, path: Path, most: int) -> bytes:
    """Reads a regular file, not a link."""
    if stat.S_ISLNK(path.lstat().st_mode):
        raise _invalid(path, "it is a link. A skill's files are its own: put the file itself there.")
    if not stat.S_ISREG(path.lstat().st_mode):
        raise _invalid(path, "it is no file.")
    with os.fdopen(os.open(path, os.O_RDONLY | _PLAIN), "rb") as file:
        # It may have been replaced.
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise _invalid(path, "it is no file.")
        content = file.read(most + 1)
    if len(content) > most:
        raise _invalid(folder, TOO_LARGE)
    return content


def export_files(skill: Mapping[str, Any]) -> list[File]:
    """The files of a skill's folder from its definition, with names of tools. Raises InvalidInput."""
    config = skill.get("config") or {}
    problems = [f"{field}: {problem}" for field, problem in bundle_problems(config)]
    try:
        page = File(PAGE, page_of(skill).text.encode("utf-8"))
    except (PageInvalid, UnicodeEncodeError) as error:
        problems.append(str(error) if isinstance(error, PageInvalid) else "it holds characters that are no text.")
    if problems:
        raise InvalidInput(reason=f"The skill {skill['name']} cannot be exported: {' '.join(problems)}")
    return [page, *files_in(config).values()]


def write_skill(name: str, files: Sequence[File], to: Path, *, force: bool) -> Path:
    """Writes a skill's folder into `to`, atomically. `force` replaces the folder of a skill. Raises InvalidInput."""
    to = to.expanduser()
    target = to / folder_name(name)
    part, old = (to / f".{target.name}.{os.getpid()}.{end}" for end in ("part", "old"))
    try:
        to.mkdir(parents=True, exist_ok=True)
        _expect_free(target, force=force)
        try:
            _write(part, files)
            _put(part, target, old)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    except OSError as error:
        raise InvalidInput(reason=f"{target} cannot be written: {error.strerror or error}.") from error
    return target


def folder_name(name: str) -> str:
    """A skill's name without characters that file names may not have."""
    plain = "".join(character if path_problem(f"x{character}x") is None else "-" for character in name)
    plain = plain.replace("/", "-").encode()[:_LONGEST_NAME].decode("utf-8", "ignore").strip(" .-") or "skill"
    return plain if path_problem(plain) is None else f"skill-{plain}"


def _expect_free(target: Path, *, force: bool) -> None:
    if not os.path.lexists(target):
        return
    if target.is_symlink() or not target.is_dir() or _page_in(target) is None:
        raise InvalidInput(reason=f"{target} is there already, and is no skill's folder. Give another folder.")
    if not force:
        raise InvalidInput(reason=f"{target} is there already. Give another folder, or --force to replace it.")


def _put(part: Path, target: Path, old: Path) -> None:
    """Moves a folder to its place, and then deletes the one it replaces."""
    if not target.exists():
        part.rename(target)
        return
    target.rename(old)
    try:
        part.rename(target)
    except OSError:
        old.rename(target)
        raise
    shutil.rmtree(old)


def _write(folder: Path, files: Sequence[File]) -> None:
    folder.mkdir()
    for file in files:
        path = folder.joinpath(*PurePosixPath(file.path).parts)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as written:  # fails if the file system ignores case and two paths are equal
            written.write(file.content)
        if file.executable:
            path.chmod(path.stat().st_mode | 0o111)
