"""The examples do what they say, on both backends."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.one_backend

EXAMPLES = Path(__file__).parents[1] / "examples"


def example(name: str) -> ModuleType:
    """An example's module."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def test_a_long_conversation_is_restarted_and_knows_what_was_said_first(store_address: str) -> None:
    told = example("long_conversation").talk(store_address)
    assert told["answer"] == "It is 192.0.2.7."
    assert told["note"] == "By the way, I am allergic to nuts."
    assert told["messages_in_state"] < 100
    assert told["most_messages_in_a_prompt"] < 150
