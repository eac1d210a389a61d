"""OpenCode: all three dialects, by the provider that its model belongs to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.clients.client import Command, Ended, Turn
from tests.clients.obedient import call

MESSAGES = "anthropic/claude-sonnet-4-5"
RESPONSES = "openai/gpt-5"
COMPLETIONS = "local/any-model"


class OpenCode:
    program = "opencode"

    def __init__(self, model: str) -> None:
        self._model = model

    def prepare(self, home: Path, url: str) -> None:
        options = {"baseURL": f"{url}/v1", "apiKey": "any"}
        thinks = {"thinking": {"type": "enabled", "budgetTokens": 1024}}
        local = {
            "name": "Any model",
            "reasoning": True,
            "tool_call": True,
            "interleaved": {"field": "reasoning_content"},
            "limit": {"context": 200_000, "output": 8_000},
        }
        settings: dict[str, Any] = {
            "autoupdate": False,
            "share": "disabled",
            "permission": "allow",
            "model": self._model,
            "small_model": self._model,
            "provider": {
                "anthropic": {"options": options, "models": {_name(MESSAGES): {"options": thinks}}},
                "openai": {"options": options},
                "local": {
                    "npm": "@ai-sdk/openai-compatible",
                    "name": "Local",
                    "options": options,
                    "models": {_name(COMPLETIONS): local},
                },
            },
        }
        (home / "project" / "opencode.json").write_text(json.dumps(settings), "utf-8")

    def command(self, turn: Turn, session: str, url: str) -> Command:
        how = {
            "again": ["--continue"],
            "resume": ["--session", session],
            "compact": ["--session", session],
            "fork": ["--session", session, "--fork"],
        }.get(turn.how, [])
        return Command(["run", "--pure", "--format", "json", *how], turn.prompt, self._environment(turn))

    def _environment(self, turn: Turn) -> dict[str, str]:
        own = {
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
        }
        if turn.how != "compact":
            return own
        # It has no command for it outside its screen: a small window does the same.
        provider = self._model.partition("/")[0]
        small = {"limit": {"context": 4_000, "output": 1_000}}
        settings = {"provider": {provider: {"models": {_name(self._model): small}}}}
        return own | {"OPENCODE_CONFIG_CONTENT": json.dumps(settings)}

    def ended(self, output: str) -> Ended:
        events = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
        errors = [str(each["error"]) for each in events if each["type"] == "error"]
        said = [each["part"]["text"] for each in events if each["type"] == "text"]
        return Ended(events[0]["sessionID"], said, "\n".join(errors))

    def shell(self, command: str) -> str:
        return call("bash", command=command, description="run it")

    def delegate(self, prompt: str) -> str:
        return call("task", description="look", prompt=prompt, subagent_type="general")


def _name(model: str) -> str:
    return model.partition("/")[2]
