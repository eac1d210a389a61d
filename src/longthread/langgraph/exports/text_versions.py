"""Versions of channels as LangGraph's own savers write them.

They count up in texts, and a random part tells the versions of different branches apart: PostgresSaver stores a value
once for its channel and version. Longthread counts in numbers, which repeat on each branch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from langgraph.checkpoint.base import CheckpointTuple

_Texts = Mapping[tuple[str, Any], str]
"""The text of a channel's version at a checkpoint."""


@dataclass(slots=True)
class TextVersions:
    """The versions of one thread. Ask for its checkpoints oldest first: the same ones give the same texts."""

    _known: dict[tuple[str, str], _Texts] = field(default_factory=dict)
    """By namespace and checkpoint."""

    def of(self, found: CheckpointTuple) -> CheckpointTuple:
        """Return a checkpoint with versions as texts."""
        checkpoint = found.checkpoint
        at = found.config["configurable"]
        parent = (found.parent_config or {}).get("configurable", {}).get("checkpoint_id", "")
        before = self._known.get((at["checkpoint_ns"], parent), {})
        texts: dict[tuple[str, Any], str] = {}

        def text(channel: str, version: Any) -> Any:
            if not isinstance(version, int | float):
                return version
            known = before.get((channel, version)) or _text(channel, version, checkpoint["id"])
            return texts.setdefault((channel, version), known)

        versions = {channel: text(channel, version) for channel, version in checkpoint["channel_versions"].items()}
        seen = {
            node: {channel: text(channel, version) for channel, version in channels.items()}
            for node, channels in checkpoint["versions_seen"].items()
        }
        self._known[at["checkpoint_ns"], checkpoint["id"]] = texts
        return found._replace(checkpoint={**checkpoint, "channel_versions": versions, "versions_seen": seen})


def _text(channel: str, version: float, checkpoint_id: str) -> str:
    own = int.from_bytes(hashlib.blake2b(f"{checkpoint_id} {channel}".encode(), digest_size=6).digest()) % 10**14
    return f"{int(version):032}.0.{own:014}"
