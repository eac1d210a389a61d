"""The tool `load_skill`, which reads a skill and its files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from longthread.errors import InvalidInput
from longthread.model.builtin import LOAD_SKILL
from longthread.model.catalog import Skill
from longthread.tools.catalog.fields import near
from longthread.tools.skills.bundle import PAGE, File, files_in
from longthread.tools.skills.disclosure import SHARE_OF_NAMES
from longthread.tools.tool import Tool, as_observation
from longthread.view.tokens import estimate

PAGE_TOKENS = 5000
"""Tokens that one call returns at most: Agent Skills' limit for a whole skill."""
_PART_OF_WINDOW = 8
_ABOUT = (
    "Loads a skill: what it says in full, and the list of its files; or one of its files. Call it before you do what "
    "a skill is for, and again when its text is no longer shown to you."
)


def load_skill_tool(skills: Sequence[Skill], *, window: int) -> Tool:
    """The tool for an agent's skills, and a context window of `window` tokens."""
    by_name: dict[str, Skill] = {}
    for skill in skills:
        by_name.setdefault(skill.name, skill)
    most = max(200, min(PAGE_TOKENS, window // _PART_OF_WINDOW))

    async def work(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        return _loaded(by_name, arguments, most)

    name: dict[str, Any] = {"type": "string", "description": "The skill."}
    if estimate(json.dumps(list(by_name), ensure_ascii=False)) <= window * SHARE_OF_NAMES:
        name["enum"] = list(by_name)
    properties = {
        "name": name,
        "file": {"type": "string", "description": "The path of one of its files, to read that."},
        "offset": {
            "type": "integer",
            "minimum": 0,
            "description": "Where to go on in a long text: what `next` said.",
        },
    }
    parameters = {"type": "object", "properties": properties, "required": ["name"]}
    return Tool(LOAD_SKILL, _ABOUT, parameters, as_observation(work), retry_safe=True, category="skill")


def _loaded(skills: Mapping[str, Skill], arguments: Mapping[str, Any], most: int) -> dict[str, Any]:
    name, path, offset = arguments.get("name"), arguments.get("file"), arguments.get("offset")
    if not isinstance(name, str) or name not in skills:
        raise InvalidInput(reason=f"There is no skill {name}.{near(str(name), list(skills))}")
    if path is not None and not isinstance(path, str):
        raise InvalidInput(reason=f"file is {path!r}; give a path.")
    if offset is not None and (not isinstance(offset, int) or isinstance(offset, bool) or offset < 0):
        raise InvalidInput(reason=f"offset is {offset!r}; give a whole number from 0 on.")
    files = files_in(skills[name].config)
    place = _plain(path or PAGE, name)
    if place.lower() != PAGE.lower():
        file = _file(files, place, name)
        return {"skill": name, "file": file.path, **_page(file.text or "", offset or 0, most, "text")}
    found = {"skill": name, **_page(skills[name].instructions.strip(), offset or 0, most, "instructions")}
    listed = [{"path": each.path, "bytes": len(each.content)} for each in files.values()]
    return found | ({"files": listed} if listed and not offset else {})


def _plain(path: str, name: str) -> str:
    """Normalizes a path that a model wrote."""
    return path.strip().replace("\\", "/").removeprefix("./").removeprefix(f"{name}/") or PAGE


def _file(files: Mapping[str, File], path: str, name: str) -> File:
    file = files.get(path)
    if file is None:
        raise InvalidInput(reason=f"The skill {name} has no file {path}.{near(path, list(files))}")
    if file.text is None:
        size = f"{len(file.content):,} bytes"
        raise InvalidInput(
            reason=f"{path} is no text ({size}), and cannot be shown. Tell the user of it if they need it."
        )
    return file


def _page(text: str, offset: int, most: int, key: str) -> dict[str, Any]:
    """A page of a text from an offset on, up to a line's end if that is near."""
    if offset and offset >= len(text):
        raise InvalidInput(reason=f"offset is {offset:,}, and the text has {len(text):,} characters.")
    part = text[offset : offset + 8 * most]
    while estimate(part) > most:
        part = part[: max(1, int(len(part) * min(0.9, most / estimate(part))))]
    if offset + len(part) >= len(text):
        return {key: part}
    line = part.rfind("\n") + 1
    part = part[:line] if line > len(part) // 2 else part
    end = offset + len(part)
    return {key: part, "shown": f"characters {offset:,} to {end:,} of {len(text):,}", "next": end}
