"""The files of a skill, by path in `config.files`: plain text, or an object for scripts and binary files."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any

MOST_BYTES = 2_000_000
"""Bytes of a skill: instructions and files."""
MOST_FILES = 200
TOO_LARGE = f"the skill has more than {MOST_BYTES:,} bytes. Leave out what no model has to read."
LONGEST_PATH = 200
PAGE = "SKILL.md"
_FORM = 'it must be a text, or an object as {"base64": "…"} or {"text": "…", "executable": true}.'


@dataclass(frozen=True)
class File:
    """One file. Its path is relative to the skill's folder."""

    path: str
    content: bytes
    executable: bool = False

    @cached_property
    def text(self) -> str | None:
        """Its text; None for a binary file."""
        try:
            text = self.content.decode("utf-8")
        except UnicodeDecodeError:
            return None
        return None if "\x00" in text else text

    @property
    def stored_form(self) -> str | dict[str, Any]:
        """The form in a definition."""
        if self.text is not None:
            return {"text": self.text, "executable": True} if self.executable else self.text
        stored_files = {"base64": base64.b64encode(self.content).decode("ascii")}
        return stored_files | ({"executable": True} if self.executable else {})


def files_in(config: Mapping[str, Any]) -> dict[str, File]:
    """The files of a skill's `config`, by path, without malformed ones."""
    stored_files = config.get("files")
    found = [_read(path, value) for path, value in stored_files.items()] if isinstance(stored_files, Mapping) else []
    return {file.path: file for file in found if isinstance(file, File)}


def bundle_problems(config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Problems of the files in a skill's `config`, with their fields."""
    stored_files = config.get("files")
    if stored_files is not None and not isinstance(stored_files, Mapping):
        yield "files", "it must be an object of paths and contents."
        return
    files = [(path, _read(path, value)) for path, value in (stored_files or {}).items()]
    if len(files) > MOST_FILES:
        yield "files", f"there are {len(files)}, and the limit is {MOST_FILES}."
    folders = {str(folder) for path, _ in files for folder in PurePosixPath(path).parents}
    for path, file in files:
        problem = path_problem(path) or (file if isinstance(file, str) else None)
        if problem is None and path in folders:
            problem = "it is a file, and a folder of other files too."
        if problem is not None:
            yield f"files.{path}", problem
    size = sum(len(file.content) for _, file in files if isinstance(file, File))
    size += len(str(config.get("instructions") or "").encode("utf-8", "replace"))
    if size > MOST_BYTES:
        yield "files" if files else "instructions", TOO_LARGE


def path_problem(path: str) -> str | None:
    """The reason why a path is invalid, or None."""
    parts = path.split("/")
    if len(path) > LONGEST_PATH:
        return f"the path has {len(path)} characters, and the limit is {LONGEST_PATH}."
    if not path.isprintable() or any(character in path for character in '\\:*?"<>|'):
        return 'the path has a character that not every system allows: a control character or one of \\ : * ? " < > |.'
    if any(part in ("", ".", "..") or part != part.strip() or part.endswith(".") for part in parts):
        return "the path must lead into the skill's folder: relative, by plain names with / between them."
    if len(parts) == 1 and path.lower() == PAGE.lower():
        return f"{PAGE} is the skill itself: its text is `config.instructions`."
    return None


def _read(path: str, value: Any) -> File | str:
    """The file of a definition, or its problem."""
    if isinstance(value, str):
        return File(path, value.encode("utf-8", "surrogatepass"))
    if not isinstance(value, Mapping) or not value.keys() <= {"text", "base64", "executable"}:
        return _FORM
    text, packed, executable = value.get("text"), value.get("base64"), value.get("executable", False)
    if not isinstance(executable, bool) or isinstance(text, str) == isinstance(packed, str):
        return _FORM
    if isinstance(text, str):
        return File(path, text.encode("utf-8", "surrogatepass"), executable)
    try:
        return File(path, base64.b64decode("".join(str(packed).split()), validate=True), executable)
    except (binascii.Error, ValueError):
        return "its base64 cannot be read."
