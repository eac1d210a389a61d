"""Errors are told by codes that programs go by: they stay as they are."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from inspect import get_annotations
from pathlib import Path
from typing import Any

import pytest

from longthread import errors
from longthread.errors import (
    InvalidInput,
    LongthreadError,
    McpFailed,
    ModelNotUsable,
    NotAsExpected,
    RunWaiting,
    StoreConflict,
    ThreadNotFound,
    ToolInvalid,
)

KNOWN = """
    address_unavailable agent_of_thread agent_off
    api_failed api_refused api_status archive_invalid arguments_invalid called_on_its_loop
    catalog_invalid checkpoint_unreadable code_failed code_stopped code_unavailable definition_ambiguous
    definition_built_in definition_in_use definition_not_found embedder_unavailable entry_not_found error
    eval_invalid extra_missing import_incomplete invalid_input json_parse_error lease_lost mcp_failed
    mcp_tool_failed memory_not_found
    message_not_storable model_failed model_unavailable not_a_checkpoint_database not_copied not_imported
    not_storable nothing_to_resume number_not_storable policies_invalid policy_unusable port_in_use
    question_too_long result_not_found result_too_long  run_in_progress run_not_found saver_closed
    secret_unusable server_error source_crashed source_empty source_error source_locked source_login_failed
    source_not_allowed source_not_found source_timeout source_unreachable source_unreadable source_unsupported
    source_without_policy sql_failed sql_refused sql_timeout sql_too_large statements_invalid store_conflict
    store_damaged store_error store_full store_read_only store_too_new store_unavailable text_not_storable
    thread_conflict thread_not_found thread_taken too_many_memories tool_invalid unknown_column unknown_table
    version_not_found window_too_small worker_failed
"""


def classes(of: type[LongthreadError] = LongthreadError) -> Iterator[type[LongthreadError]]:
    yield of
    for each in of.__subclasses__():
        yield from classes(each)


def test_no_code_is_lost_when_a_class_is_named_anew() -> None:
    assert {*KNOWN.split()} <= {each.code for each in classes()}


def test_a_code_is_the_name_of_its_class_unless_it_is_given() -> None:
    assert ThreadNotFound.code == "thread_not_found"
    assert (NotAsExpected.code, ModelNotUsable.code) == (StoreConflict.code, "model_unavailable")

    class MadeUp(StoreConflict):
        message = "Made up."

    assert (MadeUp.code, MadeUp.exit_code) == ("made_up", StoreConflict.exit_code)


def test_every_error_is_imported_from_one_place() -> None:
    ours = {each.__name__ for each in classes() if each.__module__.startswith(errors.__name__)}
    assert ours == set(errors.__all__)


def test_a_code_is_that_of_one_class_or_of_those_below_it() -> None:
    first: dict[str, type[LongthreadError]] = {}
    for each in classes():
        if each.__module__.startswith(errors.__name__):
            assert re.fullmatch(r"[a-z]+(_[a-z]+)*", each.code)
            assert issubclass(each, first.setdefault(each.code, each))


def test_a_message_is_filled_from_the_fields() -> None:
    error = RunWaiting(thread="t", run="r")
    assert (error.thread, error.run, error.details) == ("t", "r", {"thread": "t", "run": "r"})
    assert list(error.details) == ["run", "thread"]  # in the order of the message, in every process
    assert str(error).startswith("Run r on thread t waits") and "`longthread approve t`" in str(error)
    assert error.described() == {"type": "run_waiting", "message": str(error), "params": {"thread": "t", "run": "r"}}
    assert str(InvalidInput(reason="a\n  {b}")) == "a {b}"
    assert ToolInvalid(problem="it is broken.").known is False


@pytest.mark.parametrize(
    ("kind", "details"),
    [
        (ThreadNotFound, {"thrad": "a"}),
        (ThreadNotFound, {}),
        (ThreadNotFound, {"thread": "a", "reason": "it has none."}),
        (InvalidInput, {}),
        (McpFailed, {"server": "s", "forgotten": True}),
    ],
)
def test_a_missing_or_misspelt_field_is_a_type_error(kind: type[LongthreadError], details: Mapping[str, Any]) -> None:
    with pytest.raises(TypeError, match=kind.__name__):
        kind(**details)


def test_a_class_declares_what_its_message_names() -> None:
    for each in classes():
        declared = {"reason"}.union(*(get_annotations(base) for base in each.__mro__))
        named = set(re.findall(r"\{(\w+)\}", each.message))
        assert named <= declared and each.message, each
        unused = {name for name in get_annotations(each) if name not in named and not hasattr(each, name)}
        assert not unused or each is LongthreadError, each


def test_messages_name_pages_of_the_documentation_through_one_place() -> None:
    package, named = Path(errors.__file__).parents[1], []
    for path in sorted(package.rglob("*.py")):
        nodes = list(ast.walk(ast.parse(path.read_text("utf-8"))))
        calls = [
            node for node in nodes if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "documentation"
        ]
        named += [call.args[0].value for call in calls if isinstance(call.args[0], ast.Constant)]
        texts = [node for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
        docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        own = [
            node.value for node in texts if id(node) not in docstrings and re.search(r"docs/[^ ]*\.md", str(node.value))
        ]
        assert not own or path.name == "documentation.py", f"{path.name}: {own}: name the page by `documentation(…)`"
    assert len(named) > 5
    assert [page for page in named if not (package.parents[1] / "docs" / f"{page}.md").is_file()] == []


def test_each_place_that_raises_gives_the_fields_of_its_class() -> None:
    kinds = {each.__name__: each for each in classes() if each.__module__.startswith(errors.__name__)}
    checked = 0
    for path in Path(errors.__file__).parents[1].rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in kinds:
                given = [keyword.arg for keyword in node.keywords if keyword.arg is not None]
                if node.func.id != "ExtraMissing" and len(given) == len(node.keywords):
                    kinds[node.func.id](**dict.fromkeys(given, ()))
                    checked += 1
    assert checked > 400


def test_messages_and_help_are_there_without_docstrings(tmp_path: Path) -> None:
    script = """
from longthread import errors
from longthread.cli.app import main
print(errors.LongthreadError.__doc__, errors.PortInUse(host="h", port=1))
main()
"""
    env = os.environ | {"PYTHONOPTIMIZE": "2"}
    done = subprocess.run(
        [sys.executable, "-c", script, "threads", "--help"], env=env, cwd=tmp_path, capture_output=True, text=True
    )
    assert done.stdout.startswith("None Port 1 of h is in use by another program."), done.stderr
    assert "The conversations, the latest first." in done.stdout
