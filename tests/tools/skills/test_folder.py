"""Skills as folders: what is read, what is refused, and that nothing is lost on the way there and back."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from longthread.errors import CatalogInvalid, InvalidInput
from longthread.tools.catalog.documents import read_paths, read_skills, read_text
from longthread.tools.skill_folder import Page, export_files, folder_name, read_skill, write_skill
from longthread.tools.skills import MOST_BYTES, File, files_in, path_problem
from longthread.tools.yamltext import as_yaml

PAGE = """\
---
# Who wrote this knows YAML.
name: pdf-forms
description: >
  Fills forms in PDF files.
  Use it when a form is to be filled.
license: Apache-2.0
compatibility: Needs a PDF library
metadata:
  author: example-org
  version: 1.10
  longthread-trigger-keywords: form, PDF，表单
allowed-tools: Bash(pdf:*) Read
since: 2026-01-31
x-own: {a: [1, 2.50, null]}
---

# Forms

填写表单。See `references/fields.md`.
"""
PNG = b"\x89PNG\r\n\x1a\n\x00\x00"


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "in" / "pdf-forms"
    (path / "references" / "more").mkdir(parents=True)
    (path / "scripts").mkdir()
    (path / "assets").mkdir()
    (path / ".git").mkdir()
    (path / ".git" / "config").write_text("not of the skill")
    (path / "SKILL.md").write_bytes(PAGE.encode())
    (path / "references" / "fields.md").write_bytes("# 字段\r\nname\r\n\ttab  \x85 end".encode())
    (path / "references" / "more" / "empty.txt").write_bytes(b"")
    (path / "references" / "bom.txt").write_bytes(b"\xef\xbb\xbfmarked")
    (path / "scripts" / "fill.py").write_bytes(b"#!/usr/bin/env python3\nprint('filled')\n")
    (path / "scripts" / "fill.py").chmod(0o755)
    (path / "assets" / "logo.png").write_bytes(PNG)
    (path / "assets" / "latin.txt").write_bytes("café".encode("latin-1"))
    (path / "assets" / "nul.txt").write_bytes(b"a\x00b")
    return path


def test_a_folder_is_a_definition(folder: Path) -> None:
    found = read_skill(folder)
    assert found["name"] == "pdf-forms"
    assert found["description"] == "Fills forms in PDF files. Use it when a form is to be filled."
    assert found["trigger_keywords"] == ["form", "PDF", "表单"]
    assert found["config"]["instructions"].startswith("\n# Forms\n\n填写")
    held = found["config"]["files"]
    assert sorted(held) == sorted(set(files(folder)) - {"SKILL.md", ".git/config"})
    assert held["references/more/empty.txt"] == ""
    assert held["scripts/fill.py"] == {"text": "#!/usr/bin/env python3\nprint('filled')\n", "executable": True}
    assert set(held["assets/logo.png"]) == set(held["assets/nul.txt"]) == set(held["assets/latin.txt"]) == {"base64"}


def through_json(data: dict[str, Any]) -> dict[str, Any]:
    return dict(json.loads(json.dumps(data)))


def through_yaml(data: dict[str, Any]) -> dict[str, Any]:
    [document] = read_text(as_yaml({"kind": "skill", **data}), "x")
    return dict(document.data)


@pytest.mark.parametrize("through", [through_json, through_yaml])
def test_a_folder_comes_back_as_it_was(
    folder: Path, tmp_path: Path, through: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    found = through(read_skill(folder))
    written = write_skill(found["name"], export_files(found), tmp_path / "out", force=False)
    before = files(folder)
    del before[".git/config"]
    assert files(written) == before
    assert os.access(written / "scripts" / "fill.py", os.X_OK)
    assert not os.access(written / "references" / "fields.md", os.X_OK)
    assert read_skill(written) == found


def test_a_definition_comes_back_as_it_was(tmp_path: Path) -> None:
    skill = {
        "name": "Forms 表单",
        "description": "true: fills forms",
        "trigger_keywords": ["a, b", "true", "7"],
        "tools": ["search", {"tool": "mean", "required": True, "default_params": {"n": 1.5}}],
        "config": {"instructions": "Do it.", "always": False, "own": {"x": [1, "二"]}, "files": {"a.txt": "\u2028"}},
    }
    written = write_skill("Forms 表单", export_files(skill), tmp_path, force=False)
    assert written.name == "Forms 表单"
    assert read_skill(written) == skill
    [other] = read_skills([tmp_path])
    assert other.data == skill
    short = {"name": "x", "description": "y"}
    assert read_skill(write_skill("x", export_files(short), tmp_path, force=False)) == short


def test_what_has_changed_since_is_written_and_the_rest_stays(folder: Path, tmp_path: Path) -> None:
    found = read_skill(folder)
    found |= {"name": "forms", "description": "Other.", "trigger_keywords": ["form"], "tools": ["mean"]}
    written = write_skill("forms", export_files(found), tmp_path / "out", force=False)
    page = Page.of((written / "SKILL.md").read_text("utf-8"))
    assert "name: forms\ndescription: Other.\nlicense: Apache-2.0\n" in page.front
    for kept in ("version: 1.10\n", "since: 2026-01-31", "x-own: {a: [1, 2.50, null]}", "author: example-org"):
        assert kept in page.front
    again = read_skill(written)
    assert {key: again[key] for key in ("name", "description", "trigger_keywords", "tools")} == {
        "name": "forms",
        "description": "Other.",
        "trigger_keywords": ["form"],
        "tools": ["mean"],
    }
    cleared = {key: value for key, value in again.items() if key not in ("tools", "trigger_keywords")}
    assert "trigger" not in Page.of(export_files(cleared)[0].content.decode()).front


def test_line_breaks_of_windows_stay(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    content = b"---\r\nname: s\r\ndescription: d\r\n---\r\nDo it.\r\n"
    (tmp_path / "s" / "SKILL.md").write_bytes(content)
    assert export_files(read_skill(tmp_path / "s"))[0].content == content


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("# no front", "does not begin with a line `---`"),
        ("---\nname: a\n", "its YAML does not end"),
        ("---\n---\nDo.", "an object with name and description"),
        ("---\nname: a\n---\nDo.", "description: it is missing"),
        ("---\ndescription: a\n---\nDo.", "name: it is missing"),
        ("---\nname: 7\ndescription: a\n---\n", "name: it must be a text. Put it into quotes"),
        ("---\nname: a\nname: b\ndescription: c\n---\n", "line 2, column 1: the key 'name' stands there twice"),
        ("---\nname: a\ndescription: Use: always\n---\n", "line 3, column 17.* put into quotes"),
        ("---\nname: a\ndescription: b\nmetadata: [1]\n---\n", "metadata: it must be an object"),
        ("---\nname: a\ndescription: b\nmetadata: {longthread-tools: 7}\n---\n", "longthread-tools: it must be a list"),
        ("---\nname: a\ndescription: b\nmetadata: {longthread-tools: '[x'}\n---\n", "begins like JSON"),
        (
            "---\nname: a\ndescription: b\nmetadata: {longthread-config: a}\n---\n",
            "longthread-config: it must be an ob",
        ),
        ("---\nname: a\ndescription: b\nmetadata: {longthread-config: {x: !!bool y}}\n---\n", "cannot be read"),
        ("---\nname: a\ndescription: b\nmetadata: {longthread-config: {x: 2026-01-01}}\n---\n", "cannot be read"),
        ("---\nname: a\nx: &x [1]\ndescription: b\nmetadata: {longthread-tools: [*x, *x]}\n---\n", "no aliases"),
        ("---\nname: a\ndescription: b\nx: " + "[" * 1000 + "\n---\n", "cannot be read|line"),
        ("---\nname: a\ndescription: b\nx: " + "y" * 100_000 + "\n---\n", "the limit is 100,000"),
        ("---\nname: a\ndescription: b\x1b[2J\n---\n", r"line 3, column 15: the character U\+001B may not stand"),
        (b"---\nname: caf\xe9\n---\n", "not text in UTF-8"),
    ],
)
def test_a_page_that_is_none_is_refused(page: str | bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / "SKILL.md").write_bytes(page if isinstance(page, bytes) else page.encode())
    with pytest.raises(CatalogInvalid, match=said) as refused:
        read_skill(tmp_path)
    assert str(tmp_path / "SKILL.md") in str(refused.value)


def linked(folder: Path) -> None:
    (folder / "a.md").symlink_to("/etc/passwd")


def linked_folder(folder: Path) -> None:
    (folder / "a").symlink_to("/etc")


def linked_page(folder: Path) -> None:
    (folder / "SKILL.md").rename(folder.parent / "other.md")
    (folder / "SKILL.md").symlink_to("../other.md")


def piped(folder: Path) -> None:
    os.mkfifo(folder / "pipe")


def too_large(folder: Path) -> None:
    for n in range(3):
        (folder / f"{n}.bin").write_bytes(b"x" * (MOST_BYTES // 3 + 1))


def too_large_with_its_page(folder: Path) -> None:
    (folder / "a.bin").write_bytes(b"x" * (MOST_BYTES - 10))


def page_too_large(folder: Path) -> None:
    (folder / "SKILL.md").write_bytes(PAGE.encode() + b"x" * (MOST_BYTES + 200_000))


def too_many(folder: Path) -> None:
    for n in range(201):
        (folder / f"{n}.md").write_bytes(b"")


def too_deep(folder: Path) -> None:
    folder.joinpath(*["d" * 50] * 5).mkdir(parents=True)


def ill_named(folder: Path) -> None:
    (folder / "a\nb.md").write_text("x")


def two_pages(folder: Path) -> None:
    (folder / "Skill.md").write_text("x")


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (linked, r"a\.md: it is a link"),
        (linked_folder, "a: it is a link"),
        (linked_page, r"SKILL\.md: it is a link"),
        (piped, "pipe: it is no file"),
        (too_large, "in/pdf-forms: the skill has more than 2,000,000 bytes"),
        (too_large_with_its_page, "more than 2,000,000 bytes"),
        (page_too_large, "more than 2,000,000 bytes"),
        (too_many, "more than 200 files"),
        (too_deep, "the limit is 200"),
        (ill_named, "not every system allows"),
        (two_pages, "SKILL.md is the skill itself"),
    ],
)
def test_what_no_skill_may_hold_is_refused(spoil: Callable[[Path], None], said: str, folder: Path) -> None:
    spoil(folder)
    with pytest.raises(CatalogInvalid, match=said):
        read_paths([folder])


PATHS = [
    "../a",
    "a/../../b",
    "/etc/passwd",
    "a//b",
    "./a",
    "a/",
    "..",
    "",
    "C:/a",
    "a\\b",
    "a\x00",
    "a./b",
    " a",
    "skill.md",
]


@pytest.mark.parametrize("path", PATHS)
def test_no_path_leads_out_of_a_folder(path: str, tmp_path: Path) -> None:
    """Whoever wrote the row: it is refused when it is applied, and when it is exported."""
    assert path_problem(path)
    skill = {"name": "s", "description": "d", "config": {"files": {path: "x"}}}
    with pytest.raises(InvalidInput, match="cannot be exported: files"):
        export_files(skill)


def test_a_row_that_another_program_wrote_is_exported_as_far_as_it_can_be() -> None:
    broken = {"instructions": "Do.", "front_matter": "name: [", "files": None}
    [page] = export_files({"name": "s", "description": "d", "tools": None, "config": broken})
    assert page.content == b"---\nname: s\ndescription: d\n---\nDo."
    for skill, said in (
        ({"name": "s"}, "has no description"),
        ({"name": "s", "description": "d", "config": {"files": {"a": 7}}}, "must be a text, or an object"),
        ({"name": "s", "description": "d", "config": {"instructions": "\ud800"}}, "characters that are no text"),
    ):
        with pytest.raises(InvalidInput, match=said):
            export_files(skill)
    odd = {"files": {"a": {"base64": "!"}, "b": 7, "c": "\ud800", "d": "ok"}}
    assert {path: file.text for path, file in files_in(odd).items()} == {"c": None, "d": "ok"}


def test_nothing_else_is_overwritten(tmp_path: Path) -> None:
    page = [File("SKILL.md", b"1"), File("a/b.md", b"x")]
    target = write_skill("s", page, tmp_path / "new", force=False)
    with pytest.raises(InvalidInput, match="is there already. .* --force"):
        write_skill("s", page, tmp_path / "new", force=False)
    assert write_skill("s", [File("SKILL.md", b"2")], tmp_path / "new", force=True) == target
    assert files(target) == {"SKILL.md": b"2"}
    assert [each.name for each in (tmp_path / "new").iterdir()] == ["s"]
    (tmp_path / "t").mkdir()
    (tmp_path / "u").symlink_to(target)
    (tmp_path / "v").write_text("a file")
    for name in "tuv":
        with pytest.raises(InvalidInput, match="is no skill's folder"):
            write_skill(name, page, tmp_path, force=True)
    with pytest.raises(InvalidInput, match="cannot be written"):
        write_skill("w", page, tmp_path / "v", force=False)
    with pytest.raises(InvalidInput, match="cannot be written"):
        write_skill("w", [*page, *page], tmp_path, force=False)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["new", "t", "u", "v"]


@pytest.mark.parametrize(
    ("name", "folder"),
    [("a b", "a b"), ("../../etc", "etc"), ("a/b\\c:d", "a-b-c-d"), ("..", "skill"), ("SKILL.md", "skill-SKILL.md")],
)
def test_a_folders_name(name: str, folder: str) -> None:
    assert folder_name(name) == folder


def test_long_names_fit_into_file_systems() -> None:
    assert len(folder_name("字" * 100).encode()) <= 180


def test_folders_are_found(folder: Path, tmp_path: Path) -> None:
    (folder / "more.yaml").write_text("kind: agent")  # which is the skill's
    definitions = folder.parent / "catalog.yaml"
    definitions.write_text("kind: tool\nname: t\n")
    (folder.parent / "other").mkdir()
    for path in (folder, folder / "SKILL.md"):
        [found] = read_paths([path])
        assert (found.kind, found.data["name"], found.where) == ("skill", "pdf-forms", str(folder))
    assert [each.kind for each in read_paths([folder.parent])] == ["skill", "tool"]
    assert [each.kind for each in read_skills([folder.parent])] == ["skill"]
    with pytest.raises(CatalogInvalid, match="here agents are expected"):
        read_paths([folder], kind="agent")
    with pytest.raises(InvalidInput, match="there is no SKILL.md"):
        read_skills([definitions])
    (folder.parent / "link").symlink_to(folder)
    with pytest.raises(CatalogInvalid, match="it is a link"):
        read_paths([folder.parent])
    assert len(read_paths([folder.parent / "link"])) == 1  # which was named
    (folder / "SKILL.md").rename(folder / "skill.md")
    assert len(read_paths([folder])) == 1
    with pytest.raises(InvalidInput, match="and no SKILL.md"):
        read_paths([tmp_path / "in" / "other"])


def test_any_bytes_come_back(tmp_path: Path) -> None:
    chance = random.Random(7)
    pieces = [
        "\r",
        "\n",
        "\x85",
        "\u2028",
        "\t",
        " ",
        "---",
        ": ",
        "#",
        "'",
        '"',
        "\\",
        "字",
        "🚀",
        "\ufeff",
        "\x1b",
        "a",
    ]
    for n in range(60):
        text = "".join(chance.choices(pieces, k=chance.randrange(12)))
        made = {"name": "s", "description": "d", "config": {"files": {"a": File("a", text.encode()).stored_form}}}
        assert through_yaml(made) == made == through_json(made)
        target = write_skill(f"s{n}", export_files(made), tmp_path, force=False)
        assert (target / "a").read_bytes() == text.encode()
