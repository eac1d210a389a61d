"""Which tools may be defined through the API: those that give a caller nothing that the API does not give anyway."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

from longthread.errors import ToolOnCommandLine
from longthread.model.catalog import Definition, same

Power = Literal["code", "program", "secret", "private"]
"""What a tool can do with the rights of the server's user."""
_MEANING: Mapping[Power, str] = {
    "code": "runs code",
    "program": "starts a program",
    "secret": "sends a secret to a server",
    "private": "may ask addresses inside your network",
}


def power_of(body: Mapping[str, Any]) -> Power | None:
    """What a tool's definition can do that only the command line may define; None: nothing."""
    implementation = body.get("implementation")
    given = implementation if isinstance(implementation, Mapping) else {}
    if body.get("type") not in ("api", "query", "mcp"):
        return "code"
    if body["type"] == "mcp" and (given.get("command") or not given.get("url")):
        return "program"
    if given.get("secrets") or "${" in json.dumps(given, default=str):
        return "secret"
    return "private" if given.get("allow_private") else None


def expect_definable(made: Definition, before: Definition | None) -> None:
    """Check a tool that is defined through the API. What `longthread apply` has defined may change in all but its
    implementation. Raises ToolOnCommandLine."""
    power = power_of(made.body)
    if power is None:
        return
    if before is None or not _same_implementation(made, before):
        raise ToolOnCommandLine(tool=made.name, power=_MEANING[power])


def _same_implementation(made: Definition, before: Definition) -> bool:
    ours, theirs = made.body, before.body
    # Other programs leave out the type that stands beside it.
    kinds = ({"type": each.get("type"), **(each.get("implementation") or {})} for each in (ours, theirs))
    return ours.get("type") == theirs.get("type") and same(*kinds)
