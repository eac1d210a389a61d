"""What Longthread uses of LangGraph that is not in its documented interface, all of it: a new version may move it.
`tests/langgraph/test_internals.py` names each with what it is needed for."""

from __future__ import annotations

from langchain_core.runnables import RunnableConfig
from langgraph._internal._constants import CONFIG_KEY_CHECKPOINTER as CHECKPOINTER
from langgraph._internal._constants import CONFIG_KEY_DURABILITY as DURABILITY
from langgraph._internal._constants import INTERRUPT, NULL_TASK_ID
from langgraph.checkpoint.serde.types import _DeltaSnapshot as DeltaSnapshot
from langgraph.pregel import _checkpoint

WHOLE_VALUES = hasattr(_checkpoint, "delta_channels_with_pending_writes")
"""Whether this LangGraph puts the whole value of each delta channel that an update saw written into its checkpoint."""

__all__ = ["CHECKPOINTER", "DURABILITY", "INTERRUPT", "NULL_TASK_ID", "WHOLE_VALUES", "DeltaSnapshot", "given_to_run"]


def given_to_run(config: RunnableConfig) -> str | None:
    """Return the checkpoint's id that a LangGraph run was given, "" if it was given none; None if this is unknown."""
    metadata = config.get("metadata") or {}
    if "thread_id" not in metadata:  # LangGraph writes it there with the other coordinates
        return None
    return str(metadata.get("checkpoint_id") or "")
