"""Reads and writes folders of Agent Skills: a SKILL.md with other files."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from longthread.errors import CatalogInvalid, InvalidInput
from longthread.tools.skills.bundle import (
    MOST_BYTES,
    MOST_FILES,
    PAGE,
    TOO_LARGE,
    File,
    bundle_problems,
    files_in,
    path_problem,
)
from longthread.tools.skills.page import LONGEST_FRONT, Page, PageInvalid, definition, page_of

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
        found["config"] = {**found.get("config", {}), "files": {file.path: file.stored for file in files}}
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


def exported(skill: Mapping[str, Any]) -> list[File]:
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
