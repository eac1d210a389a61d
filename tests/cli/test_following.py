"""Conversations with a source of the catalog whose address has a secret, gone on with by the commands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.postgres
Run = Callable[..., Any]
QUESTION = "How many t are there?"
SHOP = "kind: source\nname: shop\naddress: {}\n"
CLERK = "---\nkind: agent\nname: clerk\nsystem_prompt: You count.\nskills: [data]\nconfig: {source: shop}\n"


@pytest.fixture
def address(guarded_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """A source's address with a secret, which is set."""
    monkeypatch.delenv("PGPASSWORD", raising=False)
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "none"))
    monkeypatch.setenv("LONGTHREAD_SECRET_SHU_PW", "s3cret")
    return guarded_url.replace("s3cret", "${SHU_PW}")


def test_a_conversation_goes_on_with_the_catalogs_source(
    run: Run, address: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run("apply", "-f", "-", text=SHOP.format(address))
    said = [run("ask", QUESTION, "--source", "shop", "--model", "demo").output]
    said.append(run("ask", QUESTION, "--thread", "last", "--model", "demo").output)
    assert "[q2]" in said[-1]
    run("threads", "result", "last", "q1", "--to", "a.csv")
    assert (tmp_path / "a.csv").read_text(encoding="utf-8-sig").splitlines()[1] == "0"
    monkeypatch.delenv("LONGTHREAD_SECRET_SHU_PW")
    unset = run("ask", QUESTION, "--thread", "last", "--model", "demo", code=2).exception
    assert "LONGTHREAD_SECRET_SHU_PW" in str(unset)
    run("apply", "-f", "-", text=SHOP.format(address) + "is_active: false\n")
    off = run("ask", QUESTION, "--thread", "last", "--model", "demo", code=2).exception
    assert "shop" in str(off) and "switched off" in str(off)
    run("sources", "delete", "shop", "--yes")
    gone = run("ask", QUESTION, "--thread", "last", "--model", "demo", code=3).exception
    assert "apply a source of this address to the catalog" in str(gone)
    assert "s3cret" not in f"{said}{unset}{off}{gone}"


def test_a_result_of_an_agents_own_source_is_written(run: Run, address: str, tmp_path: Path) -> None:
    run("apply", "-f", "-", text=SHOP.format(address) + CLERK)
    run("ask", QUESTION, "--agent", "clerk", "--model", "demo")
    run("ask", QUESTION, "--thread", "last", "--model", "demo")
    run("threads", "result", "last", "q2", "--to", "a.csv")
    assert (tmp_path / "a.csv").read_text(encoding="utf-8-sig").splitlines()[1] == "0"


def test_a_source_without_secrets_goes_on_and_one_with_beside_it(run: Run, address: str, postgres_url: str) -> None:
    bare = address.replace(":${SHU_PW}", "")
    shops = SHOP.format(address).replace("shop", "with") + "---\n" + SHOP.format(bare).replace("shop", "bare")
    run("apply", "-f", "-", text=f"{shops}---\n{SHOP.format(postgres_url)}")
    for name in ("with", "shop"):
        run("ask", QUESTION, "--source", name, "--model", "demo")
        assert "[q2]" in run("ask", QUESTION, "--thread", "last", "--model", "demo").output
