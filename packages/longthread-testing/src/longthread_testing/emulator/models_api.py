"""`/v1/models`, in the form of the vendor that the client speaks to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from longthread_testing.emulator.completions import CREATED

_CREATED_AT = "2023-11-14T22:13:20Z"  # CREATED, as Anthropic writes times


def model_list(names: Sequence[str], *, anthropic: bool) -> dict[str, Any]:
    data = [model(name, anthropic=anthropic) for name in names]
    if not anthropic:
        return {"object": "list", "data": data}
    ends = {"first_id": names[0], "last_id": names[-1]} if names else {"first_id": None, "last_id": None}
    return {"data": data, "has_more": False, **ends}


def model(name: str, *, anthropic: bool) -> dict[str, Any]:
    if anthropic:
        return {"type": "model", "id": name, "display_name": name, "created_at": _CREATED_AT}
    return {"id": name, "object": "model", "created": CREATED, "owned_by": "script"}
