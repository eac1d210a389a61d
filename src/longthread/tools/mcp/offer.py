"""A tool as its server offers it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ServerTool:
    """What a server says of one of its tools. All of it is the server's own word."""

    name: str
    description: str
    parameters: Mapping[str, Any]
