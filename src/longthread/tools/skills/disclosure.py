"""Progressive disclosure of skills: which ones a prompt holds in full, and which only by name and description."""

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


def triggered(skills: Iterable[Skill], question: str) -> list[str]:
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
