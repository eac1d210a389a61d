"""What a contributor meets is true: `make help`, the files of CONTRIBUTING's recipes, the hooks, the one version."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]


def test_make_help_lists_every_target() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = re.findall(r"^\.PHONY: (.+)$", makefile, re.MULTILINE)[0].split()
    printed = subprocess.run(
        ["make", "--no-print-directory", "help"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    lines = [line.split(maxsplit=1) for line in printed.splitlines()]
    assert sorted(target for target, _ in lines) == sorted(targets)
    assert all(what.endswith(".") and len(what) <= 80 for _, what in lines)


def test_the_five_recipes_name_files_and_tests_that_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    recipes = text.partition("## Your first change")[2].partition("\n## ")[0].split("\n### ")[1:]
    assert len(recipes) == 5
    for recipe in recipes:
        rows = [line.split("|")[1] for line in recipe.splitlines() if line.startswith("|")][2:]
        paths = re.findall(
            r"`((?:src|docs|tests|web)/[\w./-]+|\w+\.toml)`", " ".join(rows) + recipe.partition("Tests:")[2]
        )
        assert len(rows) <= 6 and len(paths) >= 4, recipe
        assert [path for path in paths if not (ROOT / path).exists()] == []


@pytest.mark.parametrize(
    ("subject", "is_good"),
    [
        ("Refuse a source that is a folder without files", True),
        ("Embed the page", True),
        ("Merge branch 'main' into mine, however long the name of this branch may be, as Git says", True),
        ("Fixed a bug", False),
        ("Adding a test", False),
        ("Add a test.", False),
        ("add a test", False),
        ("Add " + "a" * 69, False),
        ("", False),
    ],
)
def test_the_hook_refuses_subjects_that_are_no_short_orders(subject: str, is_good: bool, tmp_path: Path) -> None:
    message = tmp_path / "message"
    message.write_text(f"# a comment\n{subject}\n\nWhy.\n" if subject else "")
    done = subprocess.run([sys.executable, ROOT / ".ci/subject.py", message], capture_output=True, text=True)
    assert (done.returncode == 0) == is_good, done.stderr
    assert done.stderr.startswith("The subject of the commit: ") != is_good


def test_hooks_run_tools_that_the_clone_installs() -> None:
    repositories = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))["repos"]
    assert [each["repo"] for each in repositories] == ["local"]
    pinned = (ROOT / "requirements/dev.txt").read_text("utf-8")
    for hook in repositories[0]["hooks"]:
        command, *arguments = hook["entry"].split()
        assert command.startswith(".venv/bin/")
        assert Path(command).name == "python" or f"{Path(command).name}==" in pinned
        assert all((ROOT / each).exists() for each in arguments if "/" in each)


def test_forms_and_workflows_can_be_read() -> None:
    files = [*ROOT.glob(".github/*/*.yml")]
    assert len(files) == 7
    read = {file.name: yaml.safe_load(file.read_text("utf-8")) for file in files}
    for name in ("bug.yml", "feature.yml", "question.yml"):
        fields = [field["id"] for field in read[name]["body"] if field["type"] != "markdown"]
        assert read[name]["name"] and len(fields) == len(set(fields))
    steps = [step.get("run", "") for name in ("ci.yml", "release.yml") for job in read[name]["jobs"].values()
             for step in job["steps"]]  # fmt: skip
    assert "bash .ci/run" in steps and any(step.startswith("make release-check") for step in steps)
    container = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text("utf-8"))
    assert container["postCreateCommand"] == "make .venv/.dev"


def test_all_packages_take_their_version_from_one_file() -> None:
    projects = [ROOT / "pyproject.toml", ROOT / "evals/pyproject.toml", *ROOT.glob("packages/*/pyproject.toml")]
    assert len(projects) == 4
    for project in projects:
        read = tomllib.loads(project.read_text("utf-8"))
        assert "version" not in read["project"] and "version" in read["project"]["dynamic"]
        source = project.parent / read["tool"]["hatch"]["version"]["path"]
        assert source.resolve() == ROOT / "src/longthread/__init__.py"


@pytest.mark.parametrize("file", ["run.txt", "dev.txt"])
def test_what_a_clone_installs_has_all_that_running_needs(file: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    needed = [Requirement(each) for each in [*project["dependencies"], *project["optional-dependencies"]["app"]]]
    pinned = dict(line.split("==") for line in (ROOT / "requirements" / file).read_text("utf-8").splitlines())
    found = {canonicalize_name(name): version for name, version in pinned.items()}
    here = [each for each in needed if each.marker is None or each.marker.evaluate()]
    assert len(here) > 20
    assert [str(each) for each in here if found.get(canonicalize_name(each.name), "0") not in each.specifier] == []


def test_each_package_has_the_license_in_it() -> None:
    projects = [ROOT / "pyproject.toml", *ROOT.glob("packages/*/pyproject.toml")]
    assert len(projects) == 3
    for project in projects:
        assert tomllib.loads(project.read_text("utf-8"))["project"]["license-files"] == ["LICENSE"]
        assert (project.parent / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
