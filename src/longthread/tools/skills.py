"""Skills: their files, and their disclosure: which a prompt holds in full, and which by name and description.

Keywords of a question choose them. The tool `load_skill` reads the others, and their files.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate, takewhile
from pathlib import PurePosixPath
from typing import Any

from longthread.errors import InvalidInput
from longthread.model.catalog import LOAD_SKILL, Skill
from longthread.tools.catalog.fields import near
from longthread.tools.tool import Tool, as_observation
from longthread.view.tokens import estimate

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


_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff]"
)
"""Scripts without blanks between words, or whose words take endings, such as Chinese and Korean."""
_PLURAL = re.compile(r"[a-z]{3}$")


def triggers(keywords: Sequence[str], question: str) -> bool:
    """Whether a question has one of the keywords, in any case and width: a Chinese one anywhere, any other as whole
    words in singular or plural."""
    text = _fold_text(question)
    words = _UNSPACED.sub(" ", text)
    return any(_is_in(_fold_text(keyword), text, words) for keyword in keywords if keyword.strip())


def _is_in(keyword: str, text: str, words: str) -> bool:
    return keyword in text if _UNSPACED.search(keyword) else _pattern(keyword).search(words) is not None


def _fold_text(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


@lru_cache(maxsize=4096)
def _pattern(keyword: str) -> re.Pattern[str]:
    """Return a pattern with word boundaries, except next to a mark as in `c++`."""
    begin = r"(?<![^\W_])" if keyword[0].isalnum() else ""
    end = r"(?![^\W_])" if keyword[-1].isalnum() else ""
    return re.compile(f"{begin}{re.escape(keyword)}{'(?:e?s)?' if _PLURAL.search(keyword) else ''}{end}")


SHORT = 1024
"""Characters of instructions that a prompt always holds: the limit of Agent Skills for a description."""
SHARE = 0.2
"""Share of the context window for the texts of skills. The model loads the others."""
_SHARE_OF_DESCRIPTIONS = 0.05
"""Share for names with descriptions."""
SHARE_OF_NAMES = 0.1
"""Share for names alone, here and in the tool `load_skill`."""
_DESCRIPTIONS = (SHORT, 200, 60, 0)
"""Characters of descriptions; the first that fits is used."""
_HEAD = f"""\
# Skills

When one of these fits what is asked, first call `{LOAD_SKILL}` with its name, and do as it says. One whose text \
follows below is loaded. When a text that you have loaded is no longer shown in full, load it again.
"""


@dataclass(frozen=True, slots=True)
class Disclosure:
    """A prompt with the agent's skills, and the skills that `load_skill` offers."""

    prompt: str
    loadable: Sequence[Skill]


def is_always_shown(skill: Skill) -> bool:
    """Whether the prompt always holds a skill's instructions: as `config.always` says, else where they are short and
    the skill has neither keywords nor files."""
    setting = skill.config.get("always")
    if isinstance(setting, bool):
        return setting
    return not skill.trigger_keywords and not skill.config.get("files") and len(skill.instructions) <= SHORT


def select_triggered(skills: Iterable[Skill], question: str) -> list[str]:
    """The ids of the skills whose keywords a question has."""
    wanted = (each for each in skills if has_text(each) and not is_always_shown(each))
    return [each.id for each in wanted if triggers(each.trigger_keywords, question)]


def has_text(skill: Skill) -> bool:
    """Whether a skill has instructions or files. Others only have tools."""
    return bool(skill.instructions.strip() or skill.config.get("files"))


def disclose(prompt: str, skills: Sequence[Skill], opened: Sequence[str], *, window: int) -> Disclosure:
    """Adds skills to an agent's prompt. What changes least comes first, for the provider's cache.

    `opened` are the ids of skills shown in full, in order; `window` is the model's context window in tokens.
    """
    texts = [each for each in skills if has_text(each)]
    by_id = {each.id: each for each in texts}
    always = [each for each in texts if is_always_shown(each)]
    opened_skills = [by_id[id_] for id_ in opened if id_ in by_id and by_id[id_] not in always]
    left, shown = int(window * SHARE), set[str]()
    for each in (*always, *opened_skills):
        cost = estimate(_whole(each))
        if cost <= left:
            left -= cost
            shown.add(each.id)
    named = [each for each in texts if each not in always or each.id not in shown]
    parts = [prompt, *(_whole(each) for each in always if each.id in shown)]
    parts += [_HEAD + "\n" + _list(named, window)] if named else []
    parts += [_whole(each) for each in opened_skills if each.id in shown]
    loads = bool(named) or any(files_in(each.config) for each in always)
    return Disclosure("\n\n".join(parts), texts if loads else ())


def _whole(skill: Skill) -> str:
    text = f"# {skill.name}\n\n{skill.instructions.strip()}".rstrip()
    files = files_in(skill.config)
    if not files:
        return text
    listed = ", ".join(f"{path} ({len(file.content):,} bytes)" for path, file in files.items())
    return f"{text}\n\nFiles of this skill, which `{LOAD_SKILL}` reads: {listed}"


def _list(skills: Sequence[Skill], window: int) -> str:
    for longest in _DESCRIPTIONS:
        text = "\n".join(_line(each, longest) for each in skills)
        if estimate(text) <= window * (_SHARE_OF_DESCRIPTIONS if longest else SHARE_OF_NAMES):
            return text
    lines = [_line(each, 0) for each in skills]
    room = takewhile(
        lambda total: total <= window * SHARE_OF_NAMES, accumulate(estimate(f"{line}\n") for line in lines)
    )
    count = sum(1 for _ in room)
    more = f"- and {len(lines) - count} more. Give `{LOAD_SKILL}` a name that may fit: it says which are like it."
    return "\n".join([*lines[:count], more])


def _line(skill: Skill, longest: int) -> str:
    about = " ".join((skill.description or "").split())
    about = about if len(about) <= longest else f"{about[: max(0, longest - 1)]}…" if longest else ""
    return f"- {skill.name}: {about}" if about else f"- {skill.name}"


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
        return _load_skill(by_name, arguments, most)

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


def _load_skill(skills: Mapping[str, Skill], arguments: Mapping[str, Any], most: int) -> dict[str, Any]:
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
