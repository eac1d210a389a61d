"""What Longthread uses of LangGraph that is not in its documented interface, all of it: a new version may move it.
`tests/langgraph/test_internals.py` names each with what it is needed for."""

from __future__ import annotations

from langgraph._internal._constants import CONFIG_KEY_CHECKPOINTER as CHECKPOINTER
from langgraph._internal._constants import CONFIG_KEY_REPLAY_STATE as REPLAY_STATE
from langgraph._internal._constants import INTERRUPT, NULL_TASK_ID
from langgraph.checkpoint.serde.types import _DeltaSnapshot as DeltaSnapshot
from langgraph.pregel import _checkpoint

WHOLE_VALUES = hasattr(_checkpoint, "delta_channels_with_pending_writes")
"""Whether this LangGraph puts the whole value of each delta channel that an update saw written into its checkpoint."""

__all__ = ["CHECKPOINTER", "INTERRUPT", "NULL_TASK_ID", "REPLAY_STATE", "WHOLE_VALUES", "DeltaSnapshot"]
