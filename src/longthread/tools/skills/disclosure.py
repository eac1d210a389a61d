"""What a run's model is told of its agent's skills, and when: all of a skill, or only what it is for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, takewhile

from longthread.model.builtin import LOAD_SKILL
from longthread.model.catalog import Skill
from longthread.tools.skills.bundle import files_in
from longthread.tools.skills.keywords import triggers
from longthread.view.tokens import estimate

SHORT = 1024
"""Characters of instructions that are told in any case: no more than a description may have by Agent Skills."""
SHARE = 0.2
"""The part of the context window that the texts of skills may fill. The others are left to be loaded."""
_SHARE_OF_DESCRIPTIONS = 0.05
"""The part of it that names with descriptions may fill."""
SHARE_OF_NAMES = 0.1
"""The part that names alone may fill, here and in the tool that loads."""
_DESCRIPTIONS = (SHORT, 200, 60, 0)
"""Characters of descriptions: as many as there is room for."""
_HEAD = f"""\
# Skills

When one of these fits what is asked, first call `{LOAD_SKILL}` with its name, and do as it says. One whose text \
follows below is loaded. When a text that you have loaded is no longer shown in full, load it again.
"""


@dataclass(frozen=True, slots=True)
class Disclosed:
    """An agent's instructions with what is told of its skills, and the skills that can be loaded: none where nothing
    is left to be loaded."""

    prompt: str
    loadable: Sequence[Skill]


def is_always_told(skill: Skill) -> bool:
    """Whether a skill's instructions are told in any case: as its `config.always` says, else when they are short and
    nothing says when they are wanted."""
    said = skill.config.get("always")
    if isinstance(said, bool):
        return said
    return not skill.trigger_keywords and not skill.config.get("files") and len(skill.instructions) <= SHORT


def triggered(skills: Iterable[Skill], question: str) -> list[str]:
    """The ids of the skills that a question calls for by their keywords."""
    wanted = (each for each in skills if has_text(each) and not is_always_told(each))
    return [each.id for each in wanted if triggers(each.trigger_keywords, question)]


def has_text(skill: Skill) -> bool:
    """Whether there is anything to be told of it. Others are only tools."""
    return bool(skill.instructions.strip() or skill.config.get("files"))


def disclosed(prompt: str, skills: Sequence[Skill], opened: Sequence[str], *, window: int) -> Disclosed:
    """What a run is told. What changes least comes first, so that a provider may cache it.

    Args:
        prompt: the agent's own.
        opened: the ids of those whose text is told, the first that was first.
        window: tokens of the model's context window.
    """
    texts = [each for each in skills if has_text(each)]
    by_id = {each.id: each for each in texts}
    always = [each for each in texts if is_always_told(each)]
    asked = [by_id[id_] for id_ in opened if id_ in by_id and by_id[id_] not in always]
    left, told = int(window * SHARE), set[str]()
    for each in (*always, *asked):
        cost = estimate(_whole(each))
        if cost <= left:
            left -= cost
            told.add(each.id)
    named = [each for each in texts if each not in always or each.id not in told]
    parts = [prompt, *(_whole(each) for each in always if each.id in told)]
    parts += [_HEAD + "\n" + _list(named, window)] if named else []
    parts += [_whole(each) for each in asked if each.id in told]
    loads = bool(named) or any(files_in(each.config) for each in always)
    return Disclosed("\n\n".join(parts), texts if loads else ())


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
    shown = sum(1 for _ in room)
    more = f"- and {len(lines) - shown} more. Give `{LOAD_SKILL}` a name that may fit: it says which are like it."
    return "\n".join([*lines[:shown], more])


def _line(skill: Skill, longest: int) -> str:
    about = " ".join((skill.description or "").split())
    about = about if len(about) <= longest else f"{about[: max(0, longest - 1)]}…" if longest else ""
    return f"- {skill.name}: {about}" if about else f"- {skill.name}"
