"""`longthread apply` and `longthread agents|skills|tools|sources`, on both backends."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.one_backend

EXAMPLES = Path(__file__).parents[1] / "tools" / "catalog" / "document002.yaml"
Run = Callable[..., Any]


def lines(result: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_a_file_is_applied_shown_changed_and_deleted(run: Run, tmp_path: Path) -> None:
    told = run("apply", "-f", str(EXAMPLES), "--dry-run").stdout
    assert told.splitlines()[0] == "+ tool search_web  v1"
    assert told.splitlines()[-1] == "7 to be created. Nothing was written."
    assert run("apply", "-f", str(EXAMPLES)).stdout.splitlines()[-1] == "7 created."
    assert run("apply", "-f", str(EXAMPLES)).stdout.splitlines() == [
        *(f"= tool {name}" for name in ("search_web", "search_results", "search_data")),
        *("= source main", "= skill research", "= agent researcher", "= agent helper", "7 unchanged."),
    ]
    shown = run("agents", "show", "researcher").stdout
    assert shown.startswith("# version 1 · ")
    assert shown.splitlines()[0].endswith("by default")
    assert "skills:\n- research\n- memory\n" in shown
    (tmp_path / "r.yaml").write_text(shown.replace("temperature: 0.7", "temperature: 0.1"))
    changed = run("agents", "apply", "-f", "r.yaml").stdout
    assert changed.splitlines() == ["~ agent researcher  v1 → v2", "    config.temperature: 0.7 → 0.1", "1 changed."]
    assert "temperature: 0.7" in run("agents", "show", "researcher", "--version", "1").stdout
    assert [each["version"] for each in lines(run("agents", "show", "researcher", "--history", "--json"))] == [1, 2]
    run("tools", "delete", "search_web", "--yes", code=4)
    run("agents", "delete", "helper", "--force", text="n\n", code=1)
    gone = run("agents", "delete", "helper", "--force", "--yes").stdout
    assert gone == "Deleted: the agent helper, with its place in the agent researcher.\n"
    assert "deleted" in run("agents", "show", "helper", "--history").stdout
    assert "system_prompt: You help." in run("agents", "show", "helper", "--version", "1").stdout
    run("agents", "show", "helper", "--version", "2", code=2)


def test_what_is_shown_is_what_was_applied(run: Run) -> None:
    run("apply", "-f", str(EXAMPLES))
    for kind, name in (("agent", "researcher"), ("skill", "research"), ("tool", "search_web"), ("source", "main")):
        shown = run(f"{kind}s", "show", name).stdout
        assert f"= {kind} {name}" in run("apply", "-f", "-", text=shown).stdout
        [data] = lines(run(f"{kind}s", "show", name, "--json"))
        assert (data["name"], data["version"], data["by"]) == (name, 1, "default")


def test_the_lists(run: Run) -> None:
    run("apply", "-f", str(EXAMPLES))
    listed = run("agents", "list").stdout.splitlines()
    assert listed[0].split("\t") == ["analyst", "built in", "data, memory", "Answers questions about a database."]
    assert [line.split("\t")[0] for line in listed] == ["analyst", "assistant", "helper", "researcher"]
    types = {each["name"]: each["type"] for each in lines(run("tools", "list", "--json"))}
    assert (types["search_web"], types["search_data"], types["run_sql"]) == ("api", "query", "builtin")
    assert run("skills", "list").stdout.splitlines()[2].split("\t")[2] == "search_web, search_results, search_data"
    assert "postgresql://reader:${MAIN_PASSWORD}@db.example.com/main" in run("sources", "list").stdout


def test_a_dry_run_needs_no_store(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LONGTHREAD_DATABASE_URL", str(tmp_path / "none.db"))
    assert "7 to be created. Nothing was written." in run("apply", "-f", str(EXAMPLES), "--dry-run").stdout
    run("agents", "list", code=5)
    assert not (tmp_path / "none.db").exists()


def test_a_kind_need_not_be_said_where_one_is_meant(run: Run) -> None:
    run("sources", "apply", "-f", "-", text="{name: shop, address: demo}")
    assert "address: demo" in run("sources", "show", "shop").stdout
    run("agents", "apply", "-f", "-", text="{kind: source, name: shop, address: demo}", code=2)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{kind: agent, name: a}", "standard input, document 1 (line 1), agent a, system_prompt: it is missing"),
        ("{kind: source, name: s, address: 'postgresql://u:hunter2@h/d'}", "It holds a password"),
    ],
)
def test_what_is_wrong_is_said(run: Run, text: str, said: str) -> None:
    result = run("apply", "-f", "-", text=text, code=2)
    assert said in str(result.exception)
    assert "hunter2" not in str(result.exception)
    assert "hunter2" not in result.output


@pytest.mark.parametrize(
    "words", [["agents", "show", "none"], ["tools", "delete", "none", "-y"], ["apply", "-f", "no"]]
)
def test_what_is_not_there_is_said(run: Run, words: list[str]) -> None:
    assert run(*words, code=2).exception


def test_built_in_ones_are_shown_and_stay(run: Run) -> None:
    assert run("agents", "show", "assistant").stdout.startswith("# built in\n")
    run("agents", "delete", "assistant", "--yes", code=2)


def test_an_agent_is_asked(run: Run) -> None:
    run("apply", "-f", "-", text="{kind: agent, name: counter, system_prompt: You count., skills: [data]}")
    assert "41" in run("ask", "How many rockets are there?", "--agent", "counter", "-s", "demo", "-m", "demo").stdout
    assert "sites" in run("ask", "List the sites", "--thread", "last").output
    assert "demo model" in run("ask", "Hello", "--agent", "assistant", "-t", "mine", "-m", "demo").stdout
    run("ask", "Hello", "--agent", "none", code=2)
    listed = [json.loads(line) for line in run("threads", "list", "--json").stdout.splitlines()]
    assert listed[0]["id"] == "mine"
    [second, first] = [
        json.loads(line) for line in run("threads", "runs", listed[1]["id"], "--json").stdout.splitlines()
    ]
    assert (first["agent"]["name"], first["agent"]["version"]) == ("counter", 1)
    assert (second["question"], second["agent"]["skills"]) == ("List the sites", {"data": 1})
    assert "\tassistant v1\tdemo\tHello" in run("threads", "runs", "mine").stdout
    run("agents", "delete", "counter", "--yes", code=4)
    gone = run("agents", "delete", "counter", "--yes", "--force").stdout
    assert gone == "Deleted: the agent counter, with 1 conversation of it.\n"
