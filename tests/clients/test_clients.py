"""Coding agents over sockets: the client, `longthread gateway`, and a provider that refuses changed conversations.

`make test-clients` installs the clients and runs these tests.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.clients.claude_code import ClaudeCode
from tests.clients.client import Client, Home, How, Turn
from tests.clients.codex import Codex
from tests.clients.obedient import DONE, answer
from tests.clients.opencode import COMPLETIONS, MESSAGES, RESPONSES, OpenCode
from tests.clients.qwen_code import QwenCode
from tests.clients.rig import Gateway, Provider, gateway, provider

pytestmark = pytest.mark.clients

SHELL = "SHELL"
"""Stands for the client's own way to run `echo` with a word."""
AGENT = "AGENT"
"""Stands for the client's own way to ask a sub-agent, which runs `echo` with another word."""

FLOWS: Mapping[str, Sequence[Turn]] = {
    "two turns": [Turn("The first is azure."), Turn("The second is beige.", "again")],
    "one process": [Turn("The first is azure.", then=["The second is beige."]), Turn("The third is coral.", "resume")],
    "tool loop": [Turn(SHELL), Turn("The second is beige.", "resume")],
    "resume": [Turn("The first is azure."), Turn(SHELL, "resume"), Turn("The third is coral.", "resume")],
    "fork": [
        Turn(SHELL),
        Turn("The second is beige.", "resume"),
        Turn("Another is coral.", "fork"),
        Turn("The third is denim.", "resume"),
    ],
    "sub-agent": [Turn(AGENT), Turn("The second is beige.", "resume")],
    "compaction": [
        Turn(SHELL),
        Turn("The second is beige.", "resume"),
        Turn("The third is coral.", "compact"),
        Turn("The fourth is denim.", "resume"),
    ],
    "turns after compaction": [
        Turn(SHELL),
        Turn("The second is beige.", "resume"),
        Turn("The third is coral.", "compact"),
        Turn("The fourth is denim.", "resume"),
        Turn("The fifth is ebony.", "resume"),
        Turn("The sixth is flax.", "resume"),
    ],
}


COMMON = ["two turns", "tool loop", "resume", "fork", "sub-agent", "compaction"]
"""What each client does in one of its dialects."""


@dataclass(frozen=True)
class Tried:
    """A client and what it does.

    Attributes:
        refused: how many requests of a flow the provider refuses at most; none of the other flows.
        names_parent: whether its sub-agents name the conversation that they belong to.
    """

    client: Client
    flows: Sequence[str]
    refused: Mapping[str, int] = field(default_factory=dict)
    names_parent: bool = False


TRIED = {
    "claude-code": Tried(
        ClaudeCode(),
        [*COMMON, "one process", "turns after compaction"],
        {"compaction": 1, "turns after compaction": 1},
        names_parent=True,
    ),
    "codex": Tried(Codex(), COMMON, names_parent=True),
    "codex-websockets": Tried(Codex(websockets=True), ["tool loop"]),  # refused by the gateway, it posts
    "opencode-messages": Tried(OpenCode(MESSAGES), COMMON, {"fork": 1}),
    "opencode-responses": Tried(OpenCode(RESPONSES), ["tool loop"]),
    "opencode-completions": Tried(OpenCode(COMPLETIONS), ["tool loop"]),
    "qwen-code": Tried(QwenCode("openai"), COMMON),
    "qwen-code-responses": Tried(QwenCode("openai-responses"), ["tool loop"]),
    "qwen-code-messages": Tried(QwenCode("anthropic"), ["tool loop", "fork"], {"tool loop": 2, "fork": 6}),
}
EACH = [pytest.param(tried, flow, id=f"{name}: {flow}") for name, tried in TRIED.items() for flow in tried.flows]
REFUSED = [pytest.param(tried, flow, id=f"{name}: {flow}") for name, tried in TRIED.items() for flow in tried.refused]


@pytest.fixture
def upstream() -> Iterator[Provider]:
    with provider() as running:
        yield running


@pytest.fixture
def gate(tmp_path: Path, upstream: Provider) -> Iterator[Gateway]:
    with gateway(tmp_path, upstream.url) as running:
        yield running


@dataclass(frozen=True)
class Said:
    how: How
    prompt: str
    answer: str


def _do(client: Client, flow: str, home: Home) -> list[Said]:
    """Do what a flow says, each turn in a process of its own. After a fork, the first conversation goes on."""
    session, said = "", []
    for turn in FLOWS[flow]:
        call = {SHELL: client.shell("echo azure"), AGENT: client.delegate(client.shell("echo ecru"))}.get(turn.prompt)
        prompt, expected = call or turn.prompt, DONE if call else answer(turn.prompt)
        ended = home.run(Turn(prompt, turn.how, turn.then), session)
        if turn.how != "compact":
            told = [Said(turn.how, prompt, expected), *(Said(turn.how, each, answer(each)) for each in turn.then)]
            assert {each.answer for each in told} <= {*ended.answers}, ended
            said += told
        if turn.how != "fork":
            session = ended.session
    return said


@pytest.mark.parametrize(("tried", "flow"), EACH)
def test_a_client_comes_through(
    tried: Tried, flow: str, upstream: Provider, gate: Gateway, tmp_path: Path, installed: Path
) -> None:
    said = _do(tried.client, flow, Home(tried.client, tmp_path / "home", installed, gate.url))
    assert len(upstream.refusals) <= tried.refused.get(flow, 0)
    if flow in tried.refused:
        assert gate.dropped() > 0  # by the gateway, and not by the client after an error
    kept = gate.conversations()
    last = said[-1:] if "compaction" in flow else [each for each in said if each.how != "fork"]
    talk = [text for each in last for text in (each.prompt, each.answer)]
    whole = {each.id for each in kept if each.holds(talk)}
    assert whole, kept
    texts = [text for each in kept for text in each.texts]
    for each in said:
        assert any(each.prompt in text for text in texts) and any(each.answer in text for text in texts), texts
    if flow == "sub-agent":
        asked = [tried.client.shell("echo ecru"), "ecru", DONE]
        [agent] = [each for each in kept if each.id not in whole and each.holds(asked)]
        assert not tried.names_parent or agent.parent in whole


@pytest.mark.parametrize(("tried", "flow"), REFUSED)
def test_without_the_gateway_the_provider_refuses(
    tried: Tried, flow: str, upstream: Provider, tmp_path: Path, installed: Path
) -> None:
    with suppress(AssertionError):  # some recover by themselves
        _do(tried.client, flow, Home(tried.client, tmp_path / "home", installed, upstream.url))
    assert any("bound to a different conversation" in each for each in upstream.refusals), upstream.refusals
