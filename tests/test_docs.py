"""The code blocks of the README and the guides run as they stand."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from longthread.store.schema import SCHEMA_VERSION
from longthread.store.transfer.archive import FORMAT, VERSION

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    str(page.relative_to(ROOT)) for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "evals/README.md"]
)
TRANSLATED = "docs/zh/"
"""Pages with the code blocks of the English ones, which run: see test_translation.py."""
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def blocks(language: str) -> list[tuple[str, str]]:
    pages = [page for page in PAGES if not page.startswith(TRANSLATED)]
    found = [(page, block) for page in pages for block in BLOCK.findall((ROOT / page).read_text("utf-8"))]
    return [(page, code) for page, (name, code) in found if name == language]


AS_INSTALLED = {"docs/how-to/ask.md python", "docs/how-to/tools.md sh"}
"""Blocks that start the interpreter and the command as they are; for all to do so would take minutes."""


@pytest.fixture
def commands(request: pytest.FixtureRequest) -> Path:
    """The folder with the commands that the block of a test starts."""
    page, language = request.node.callspec.params["page"], request.node.callspec.params["language"]
    if f"{page} {language}" in AS_INSTALLED:
        return Path(sys.executable).parent
    found: Path = request.getfixturevalue("warmed")
    return found


def environment(folder: Path, commands: Path) -> dict[str, str]:
    """Only what a new user's shell has, and the command on its path."""
    return {
        "PATH": f"{commands}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(folder),
        "LONGTHREAD_DATA_DIR": str(folder / "data"),
        "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache")),
        "PYTHONUTF8": "1",
    }


def test_the_guide_to_exports_shows_the_schema_that_this_build_writes() -> None:
    shown = json.loads((ROOT / "docs/how-to/export.md").read_text("utf-8").split("```json\n")[1].splitlines()[0])
    assert shown == {FORMAT: VERSION, "schema": SCHEMA_VERSION, "threads": 1}


@pytest.mark.parametrize("language", ["sh"])
@pytest.mark.parametrize(("page", "script"), blocks("sh"), ids=[page for page, _ in blocks("sh")])
def test_a_shell_block_runs(page: str, language: str, script: str, tmp_path: Path, commands: Path) -> None:
    # Where a reader's clone has its environment, the README's first block begins.
    (tmp_path / ".venv/bin").mkdir(parents=True)
    (tmp_path / ".venv/bin/activate").write_text(f'PATH="{commands}:$PATH"\n')
    # 10 is a pause, which a block may show on purpose.
    strict = "set -e\n" + script.replace("| tail -n 1", "| tail -n 1 || true")
    done = subprocess.run(
        ["bash", "-c", strict],
        cwd=tmp_path,
        env=environment(tmp_path, commands),
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, f"{page}:\n{done.stdout}\n{done.stderr}"
    assert "cannot answer" not in done.stdout, f"{page}:\n{done.stdout}"
    if page == "README.md":  # it ends with a search
        found = [line for line in done.stdout.splitlines() if line.endswith("How many launches were there per year?")]
        assert len(found) == 1, done.stdout


@pytest.mark.parametrize("language", ["python"])
@pytest.mark.parametrize(("page", "code"), blocks("python"), ids=[page for page, _ in blocks("python")])
def test_a_python_block_runs(page: str, language: str, code: str, tmp_path: Path, commands: Path) -> None:
    done = subprocess.run(
        [str(commands / "python"), "-c", code],
        cwd=tmp_path,
        env=environment(tmp_path, commands),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, f"{page}:\n{done.stdout}\n{done.stderr}"


def test_links_lead_somewhere() -> None:
    broken = []
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", (ROOT / page).read_text("utf-8")):
            if "://" not in target and not (ROOT / page).parent.joinpath(target).exists():
                broken.append(f"{page}: {target}")
    assert broken == []


def test_the_readmes_start_with_the_two_commands() -> None:
    for page in ("README.md", "README.zh-CN.md"):
        first = BLOCK.search((ROOT / page).read_text("utf-8"))
        assert first is not None
        assert [line.split()[:2] for line in first[2].splitlines()] == [["make", "demo"], ["make", "test"]]


def test_an_extra_is_installed_as_it_can_be_from_a_clone() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    for page in PAGES:
        text = (ROOT / page).read_text("utf-8")
        assert "pip install 'longthread" not in text, page
        if 'pip install "longthread' in text:
            assert re.search(r"not published yet|not on PyPI yet|还没有发布", text), page
        assert set(re.findall(r"pip install\s-e '\.\[(\w+)\]'", text)) <= declared.keys(), page


def test_what_running_needs_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    declared = project["dependencies"] + project["optional-dependencies"]["app"]
    pinned = (ROOT / "requirements/run.txt").read_text("utf-8").lower().replace("_", "-").splitlines()
    names = {line.split("==")[0].replace(".", "-") for line in pinned}
    names |= {folder.name for folder in (ROOT / "packages").iterdir()}  # which are installed from the clone
    assert {re.split(r"[\[<>=]", each)[0].lower() for each in declared} - names == set()
    assert set(pinned) <= set((ROOT / "requirements/dev.txt").read_text("utf-8").lower().replace("_", "-").splitlines())


def test_no_lock_file_holds_an_address() -> None:
    for file in (ROOT / "requirements").glob("*.txt"):
        assert re.findall(r"https?://|@ |file:", file.read_text("utf-8")) == []
