"""`longthread skills import` and `export`, on both backends."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.one_backend

Run = Callable[..., Any]
PAGE = "---\nname: forms\ndescription: Fills forms. # a note\nlicense: MIT\n---\n# 表单\n\nAsk first.\n"


def made(folder: Path, page: str = PAGE) -> Path:
    (folder / "assets").mkdir(parents=True)
    (folder / "SKILL.md").write_bytes(page.encode())
    (folder / "assets" / "logo.png").write_bytes(b"\x89PNG\x00")
    (folder / "notes.md").write_bytes("一\r\n二".encode())
    return folder


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_folders_are_imported_and_exported(run: Run, tmp_path: Path) -> None:
    folder = made(tmp_path / "skills" / "forms")
    assert "Nothing was written." in run("skills", "import", str(folder), "--dry-run").stdout
    assert run("skills", "import", str(folder)).stdout.splitlines() == ["+ skill forms  v1", "1 created."]
    assert run("skills", "import", "skills").stdout.splitlines() == ["= skill forms", "1 unchanged."]
    assert run("apply", "-f", "skills/forms").stdout.splitlines() == ["= skill forms", "1 unchanged."]
    shown = run("skills", "show", "forms").stdout
    assert run("skills", "apply", "-f", "-", text=shown).stdout.splitlines() == ["= skill forms", "1 unchanged."]
    assert run("skills", "export", "forms", "--to", "out").stdout == f"Written: {Path('out') / 'forms'}\n"
    assert files(tmp_path / "out" / "forms") == files(folder)
    run("skills", "export", "forms", "--to", "out", code=2)
    told = json.loads(run("skills", "export", "forms", "--to", "out", "--force", "--json").stdout)
    assert told == {"name": "forms", "folder": str(Path("out") / "forms")}
    (folder / "notes.md").write_bytes("一\r\n三".encode())
    changed = run("skills", "import", str(folder)).stdout
    assert changed.splitlines()[0] == "~ skill forms  v1 → v2"
    assert "config.files.notes.md" in changed
    versions = run("skills", "show", "forms", "--history").stdout.splitlines()
    assert [line.split("\t")[0] for line in versions] == ["v1", "v2"]


def test_a_skill_of_yaml_comes_back_with_its_tools_and_keywords(run: Run, tmp_path: Path) -> None:
    examples = Path(__file__).parents[1] / "tools" / "catalog" / "document002.yaml"
    run("apply", "-f", str(examples))
    run("skills", "export", "research", "--to", ".")
    assert "longthread-trigger-keywords" in (tmp_path / "research" / "SKILL.md").read_text("utf-8")
    assert run("skills", "import", "research").stdout.splitlines() == ["= skill research", "1 unchanged."]


def test_what_a_question_has_opened_is_told(run: Run, tmp_path: Path) -> None:
    folder = made(tmp_path / "forms", PAGE.replace("license: MIT", "metadata: {longthread-trigger-keywords: rockets}"))
    agent = "{kind: agent, name: clerk, system_prompt: You count., skills: [forms, data]}"
    run("skills", "import", str(folder))
    run("apply", "-f", "-", text=agent)
    run("ask", "How many rockets are there?", "--agent", "clerk", "-s", "demo", "-m", "demo")
    assert "# forms\n\n# 表单\n\nAsk first.\n\nFiles of this skill" in run("view", "last", "--prompt").stdout
    [ran] = [json.loads(line) for line in run("threads", "runs", "last", "--json").stdout.splitlines()]
    assert (ran["agent"]["skills"], ran["agent"]["opened"]) == ({"forms": 1, "data": 1}, ["forms"])


def test_what_is_refused(run: Run, tmp_path: Path) -> None:
    folder = made(tmp_path / "forms")
    (folder / "secret").symlink_to("/etc/passwd")
    refused = run("skills", "import", str(folder), code=2)
    assert "secret: it is a link" in str(refused.exception)
    run("skills", "import", str(tmp_path / "nothing"), code=2)
    run("skills", "export", "nothing", "--to", ".", code=2)
    assert "built in" in str(run("skills", "export", "data", "--to", ".", code=2).exception)
    files_ = {"../../x": "y"}
    row = {"kind": "skill", "name": "s", "description": "d", "config": {"files": files_}}
    refused = run("apply", "-f", "-", text=json.dumps(row), code=2)
    assert "config.files.../../x: the path must lead into the skill's folder" in str(refused.exception)
    row["config"] = {"files": {"a": {"base64": "?"}}, "front_matter": "name: 7", "always": 1}
    refused = run("apply", "-f", "-", text=json.dumps(row), code=2)
    for said in ("config.files.a: its base64", "config.front_matter: name: it must be a text", "config.always"):
        assert said in str(refused.exception)
    row["config"] = {"files": {"a": "x" * 2_000_001}}
    assert "more than 2,000,000 bytes" in str(run("apply", "-f", "-", text=json.dumps(row), code=2).exception)
