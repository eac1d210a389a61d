"""Documents: YAML and JSON, one or many, and what is wrong with them told with its place."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from longthread.errors import CatalogInvalid, InvalidInput
from longthread.model.catalog import Kind
from longthread.tools.catalog.documents import read_data, read_paths, read_text

BOMB = "a: &a [1,1,1,1,1,1,1,1,1]\n" + "".join(
    f"{name}: &{name} [{','.join([f'*{before}'] * 9)}]\n" for before, name in pairwise("abcdefgh")
)
"""A few lines that stand for forty million values."""
MERGING = "a: &a {x: 1}\n" + "".join(
    f"{name}: &{name} {{<<: [{','.join([f'*{before}'] * 9)}]}}\n" for before, name in pairwise("abcdefghijk")
)
"""The same for keys of objects: they would be put together before any is counted."""


@pytest.mark.parametrize(
    "text",
    [
        "kind: agent\nname: a\n---\n---\nkind: tool\nname: t\n",
        "agents: [{name: a}]\ntools: [{name: t}]",
        "- {kind: Agent, name: a}\n- {kind: tools, name: t}",
        '{"kind": "agent", "name": "a"}\n{"kind": "tool", "name": "t"}\n',
        '[{"kind": "agent", "name": "a"},\t{"kind": "tool", "name": "t"}]',
        "{kind: agent, name: a}\n---\n{kind: tool, name: t}",
        "\ufeffkind: agent\nname: a\n---\nkind: tool\nname: t\n",
    ],
)
def test_one_or_many_in_any_form(text: str, tmp_path: Path) -> None:
    (tmp_path / "x.yml").write_text(text, "utf-8")
    assert [(each.kind, each.data["name"]) for each in read_paths([tmp_path])] == [("agent", "a"), ("tool", "t")]


def test_the_place_is_told() -> None:
    first, second = read_text("kind: agent\nname: a\n---\n\nskills:\n- {name: s}\n", "x.yaml")
    assert first.label == "x.yaml, document 1 (line 1), agent a"
    assert second.label == "x.yaml, document 2 (line 5), skills[1], skill s"
    [tool] = read_text('{"type": "code", "schema": {"name": "f"}}', "-", kind="tool")
    assert tool.label.endswith("tool f")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("kind: agent\nname: [", r"x.yaml: line 2, column 8"),
        ("kind: agent\nname: a\x1b", r"x.yaml: line 2, column 8: the character U\+001B may not stand in YAML"),
        ("kind: agent\nname: a\nname: b\n", r"x.yaml: line 1, column 1: the key 'name' stands there twice"),
        ('{"kind": "agent", "name": "a", "name": "b"}', r"the key 'name' stands there twice"),
        ("name: a", r"document 1 \(line 1\): a definition does not say its `kind`"),
        ("kind: agents2", r"has the kind 'agents2'"),
        ("a text", r"this is no definition but 'a text'"),
        ("agents: {name: a}", r"`agents` must be a list of agents, and is an object"),
        ("agents: [x]", r"agents\[1\]: this is no definition"),
        ("", r"there is no definition in it"),
        ("# nothing\n---\n", r"there is no definition in it"),
        ("kind: agent\nname: 2026-01-01\n", r"name is '2026-01-01'\. Put it into quotes"),
        ("kind: tool\nschema: {on: 1}\n", r"schema has the key True"),
        ("kind: tool\nschema: {a: .inf}\n", r"schema\.a is 'inf'"),
        ("kind: agent\nname: !!python/object:os.system x\n", r"line 2.*could not determine a constructor"),
        ('kind: agent\nname: !!int ""\n', r"x.yaml: line 2, column 7: this is no int"),
        ("kind: agent\nname: [!!bool x]\n", r"line 2, column 8: this is no bool"),
        ("kind: agent\nname: !!timestamp x\n", r"line 2, column 7: this is no timestamp"),
        ('kind: agent\nname: "a\\0"\n', r"name holds a character that is no text"),
        ("kind: agent\nname: &a [*a]\n", r"too large, or nested too deeply"),
        (BOMB, r"too large, or nested too deeply"),
        (MERGING, r"too much is merged by <<"),
        ("a: &a {<<: *a}\n", r"does not say its `kind`"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told(text: str, said: str) -> None:
    with pytest.raises(CatalogInvalid, match=said):
        read_text(text, "x.yaml")


def test_objects_may_be_merged() -> None:
    text = "- &a {kind: agent, system_prompt: x}\n- &b {config: {max_steps: 3}}\n- {<<: [*a, *b], name: c}\n"
    found = read_text(text.replace("- &b {", "- &b {kind: tool, "), "x.yaml")[-1]
    assert (found.kind, found.data["name"], found.data["config"]) == ("agent", "c", {"max_steps": 3})


def test_a_kind_that_is_expected_may_be_left_out() -> None:
    [found] = read_text("name: a", "x", kind="agent")
    assert found.kind == "agent"
    with pytest.raises(CatalogInvalid, match="of kind tool, and here agents are expected"):
        read_text("kind: tool", "x", kind="agent")


def test_a_folders_files_in_order(tmp_path: Path) -> None:
    for name, text in (
        ("b.yaml", "{kind: agent, name: b}"),
        ("a.json", '{"kind": "tool"}'),
        (".c.yaml", "["),
        ("d", "["),
    ):
        (tmp_path / name).write_text(text)
    (tmp_path / "e.yaml").mkdir()
    assert [each.kind for each in read_paths([tmp_path])] == ["tool", "agent"]
    assert read_paths([tmp_path / "b.yaml"])[0].folder == tmp_path


@pytest.mark.parametrize("name", ["missing.yaml", "empty", "latin.yaml"])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "latin.yaml").write_bytes("name: ä".encode("latin-1"))
    with pytest.raises(InvalidInput, match=name):
        read_paths([tmp_path / name])


def test_standard_input_and_files_together(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("{kind: agent}")
    found = read_paths(["-", tmp_path / "a.yaml"], "{kind: tool}")
    assert [each.where.split(",")[0] for each in found] == ["standard input", str(tmp_path / "a.yaml")]


@pytest.mark.parametrize("kind", ["agent", "tool"])
def test_programs_give_mappings(kind: Kind) -> None:
    [found] = read_data([{"name": "x", "tools": ({"a": 1},)}], kind=kind)
    assert (found.kind, found.data) == (kind, {"name": "x", "tools": [{"a": 1}]})
    with pytest.raises(CatalogInvalid, match="item 1"):
        read_data([{"name": b"x"}], kind=kind)
