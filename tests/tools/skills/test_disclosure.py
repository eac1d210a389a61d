"""What is told of skills when, and what `load_skill` returns."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from longthread.model.catalog import Skill
from longthread.tools.skills import SHORT, disclose, load_skill_tool, select_triggered
from longthread.view.tokens import estimate

LONG = "Do it step by step. " * 60
WINDOW = 128_000


def skill(name: str, instructions: str = LONG, *, keywords: tuple[str, ...] = (), **config: Any) -> Skill:
    config = {"instructions": instructions, **config} if instructions else config
    return Skill(f"id of {name}", name, f"Knows\n about {name}.", keywords, (), config)


SHORT_ONE = skill("short", "Be brief.")
LONG_ONE = skill("long")
KEYED = skill("keyed", "Use keys.", keywords=("key", "钥匙"))
FILED = skill("filed", "Read.", files={"references/a.md": "# A"})
TOOLS_ONLY = skill("tools", "", keywords=("key",))
ALL = (SHORT_ONE, LONG_ONE, KEYED, FILED, TOOLS_ONLY)


def test_short_instructions_are_told_and_the_others_are_named() -> None:
    found = disclose("You help.", ALL, (), window=WINDOW)
    assert found.prompt.startswith("You help.\n\n# short\n\nBe brief.\n\n# Skills\n\n")
    assert found.prompt.endswith("- long: Knows about long.\n- keyed: Knows about keyed.\n- filed: Knows about filed.")
    assert "load_skill" in found.prompt
    assert [each.name for each in found.loadable] == ["short", "long", "keyed", "filed"]


async def test_names_are_bounded_too_and_what_is_not_named_is_found_by_what_it_is_like() -> None:
    many = [skill(f"{'the very long name of skill ' * 3}{n}") for n in range(1500)]
    found = disclose("You help.", many, (), window=32_000)
    assert estimate(found.prompt) < 0.1 * 32_000 + 200
    shown = found.prompt.count("\n- the very")
    assert 0 < shown < 1500
    assert f"- and {1500 - shown} more." in found.prompt
    tool = load_skill_tool(found.loadable, window=32_000)
    assert estimate(str(tool.parameters)) < 200
    assert (await tool.call({"name": many[1499].name}))["ok"]
    near = await tool.call({"name": f"{many[1499].name} it is"})
    assert many[1499].name in near["error"]["message"]
    few = load_skill_tool(ALL[:4], window=32_000)
    assert few.parameters["properties"]["name"]["enum"] == ["short", "long", "keyed", "filed"]


def test_where_nothing_is_left_to_be_loaded_nothing_is_said_of_it() -> None:
    found = disclose("You help.", [SHORT_ONE, TOOLS_ONLY], (), window=WINDOW)
    assert (found.prompt, found.loadable) == ("You help.\n\n# short\n\nBe brief.", ())


@pytest.mark.parametrize(
    ("one", "is_told"),
    [
        (skill("s", "x" * SHORT), True),
        (skill("s", "字" * SHORT), True),
        (skill("s", "x" * (SHORT + 1)), False),
        (skill("s", "x", keywords=("k",)), False),
        (skill("s", "x", always=False), False),
        (skill("s", LONG, keywords=("k",), always=True), True),
        (skill("s", LONG, keywords=("k",), always="yes"), False),
    ],
)
def test_what_is_always_shown(one: Skill, is_told: bool) -> None:
    prompt = disclose("", [one], (), window=WINDOW).prompt
    assert (f"# s\n\n{one.instructions.strip()}" in prompt) is is_told


def test_a_question_opens_skills_and_the_beginning_stays_the_same() -> None:
    assert select_triggered(ALL, "Where are the keys?") == [KEYED.id]
    assert select_triggered(ALL, "我的钥匙在哪里") == [KEYED.id]
    assert select_triggered(ALL, "long") == []
    prompts = [disclose("You help.", ALL, ids, window=WINDOW).prompt for ids in ((), (KEYED.id,), (KEYED.id, FILED.id))]
    for shorter, longer in pairwise(prompts):
        assert longer.startswith(shorter)
    assert prompts[1].endswith("\n\n# keyed\n\nUse keys.")
    assert prompts[2].endswith(
        "# filed\n\nRead.\n\nFiles of this skill, which `load_skill` reads: references/a.md (3 bytes)"
    )
    gone = disclose("You help.", ALL, ("id of another", SHORT_ONE.id, TOOLS_ONLY.id), window=WINDOW)
    assert gone.prompt == prompts[0]


def test_what_has_no_room_is_left_to_be_loaded() -> None:
    keyed = skill("keyed", LONG, keywords=("key",))
    small = estimate(f"# keyed\n\n{LONG.strip()}") * 5
    assert LONG.strip() in disclose("", [keyed], (keyed.id,), window=small + 5).prompt
    told = disclose("", [keyed], (keyed.id,), window=small - 5)
    assert LONG.strip() not in told.prompt
    assert [each.name for each in told.loadable] == ["keyed"]
    many = [skill(f"s{n}", "x " * 400) for n in range(100)]
    told = disclose("", many, (), window=20_000)
    assert estimate(told.prompt) < 20_000 * 0.3
    assert told.prompt.count("\n\nx x") + told.prompt.count("\n- s") == 100
    assert len(told.loadable) == 100


def test_descriptions_are_shortened_where_there_are_many() -> None:
    many = [Skill(str(n), f"skill {n}", "很长 " * 600, (), (), {"instructions": LONG}) for n in range(40)]
    told = disclose("", many, (), window=72_000).prompt
    assert told.count("\n- skill") == 40
    assert "…" in told
    assert estimate(told) < 72_000 * 0.06
    assert disclose("", many, (), window=4_000).prompt.endswith("\n- skill 38\n- skill 39")


async def load(*skills: Skill, window: int = WINDOW, **arguments: Any) -> Any:
    observation = await load_skill_tool(skills, window=window).call(arguments)
    return observation["data"] if observation["ok"] else observation["error"]["message"]


async def test_a_skill_is_loaded_with_the_list_of_its_files() -> None:
    more = skill("more", "Look.", files={"a.md": "# 一", "b.png": {"base64": "iVBORw0KGgo="}})
    assert await load(SHORT_ONE, more, name="short") == {"skill": "short", "instructions": "Be brief."}
    files = [{"path": "a.md", "bytes": 5}, {"path": "b.png", "bytes": 8}]
    assert await load(more, name="more") == {"skill": "more", "instructions": "Look.", "files": files}
    for path in ("a.md", "./a.md", "more/a.md", " a.md"):
        assert await load(more, name="more", file=path) == {"skill": "more", "file": "a.md", "text": "# 一"}
    assert (await load(more, name="more", file="SKILL.md"))["instructions"] == "Look."
    empty = skill("e", "", files={"a.md": ""})
    assert await load(empty, name="e", file="a.md") == {"skill": "e", "file": "a.md", "text": ""}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "There is no skill None. There are: filed"),
        ({"name": ["filed"]}, "There is no skill"),
        ({"name": "fild"}, "There is no skill fild. Did you mean filed?"),
        ({"name": "filed", "file": "a.md"}, "The skill filed has no file a.md. There are: b.bin, references/a.md."),
        ({"name": "filed", "file": "../../etc/passwd"}, "has no file ../../etc/passwd."),
        ({"name": "filed", "file": 7}, "give a path"),
        ({"name": "filed", "file": "b.bin"}, "b.bin is no text (1 bytes), and cannot be shown"),
        ({"name": "filed", "offset": -1}, "give a whole number"),
        ({"name": "filed", "offset": True}, "give a whole number"),
        ({"name": "filed", "offset": 99}, "offset is 99, and the text has 5 characters"),
    ],
)
async def test_what_cannot_be_loaded_is_told(arguments: dict[str, Any], said: str) -> None:
    one = skill("filed", "Read.", files={"references/a.md": "# A", "b.bin": {"base64": "/w=="}})
    assert said in await load(one, **arguments)


@pytest.mark.parametrize("text", ["A line of words.\n" * 3000, "写一行字。\n" * 6000, "x" * 50_000, "字" * 20_000])
async def test_a_long_text_comes_in_parts_that_fit(text: str) -> None:
    long = skill("long", text, files={"a.md": text})
    for arguments, key in (({"file": "a.md"}, "text"), ({}, "instructions")):
        parts, offset = [], 0
        while offset is not None:
            found = await load(long, window=16_000, name="long", offset=offset, **arguments)
            assert estimate(found[key]) <= 2000
            parts.append(found[key])
            offset = found.get("next")
        assert "".join(parts) == (text if key == "text" else text.strip())
        assert 3 < len(parts) < 60
