"""The examples of document 003 run with the import alone changed."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from tests.gateway.states import Clock, relation

pytestmark = pytest.mark.one_backend

SETUP = """
import json
from longthread.conversation_state import SignatureDatabase

db = SignatureDatabase()
"""
STORE = """
history = json.dumps([
    {"role": "user", "content": "Hello"},
    {"role": "assistant", "content": "Hi there!"}
])

success = db.store_conversation_state(
    scid="conv_12345",
    client_type="cursor",
    history=history,
    signature="sig_abc123",
    ttl_seconds=3600  # 1小时后过期
)
"""
GET = """
state = db.get_conversation_state("conv_12345")
if state:
    print(f"Client Type: {state['client_type']}")
    print(f"History Length: {len(state['authoritative_history'])}")
    print(f"Last Signature: {state['last_signature']}")
    print(f"Access Count: {state['access_count']}")
"""
UPDATE = """
updated_history = json.dumps([
    {"role": "user", "content": "Hello"},
    {"role": "assistant", "content": "Hi there!"},
    {"role": "user", "content": "How are you?"}
])

success = db.update_conversation_state(
    scid="conv_12345",
    history=updated_history,
    signature="sig_xyz789"
)
"""
DELETE = 'success = db.delete_conversation_state("conv_12345")'
CLEANUP = """
count = db.cleanup_expired_states()
print(f"Cleaned up {count} expired states")
"""
TURNS = """
scid = "conv_user123_20260117"
history = json.dumps([
    {"role": "user", "content": "开始新对话"}
])

db.store_conversation_state(
    scid=scid,
    client_type="cursor",
    history=history,
    signature="init_sig"
)

state = db.get_conversation_state(scid)
if state:
    history_list = state["authoritative_history"]
    history_list.append({"role": "assistant", "content": "你好!"})
    history_list.append({"role": "user", "content": "请帮我写代码"})

    db.update_conversation_state(
        scid=scid,
        history=json.dumps(history_list),
        signature="new_sig"
    )
"""
CLIENTS = """
client_types = ["cursor", "augment", "claude_code"]

for client_type in client_types:
    scid = f"conv_{client_type}_001"
    history = json.dumps([{"role": "system", "content": f"Client: {client_type}"}])

    db.store_conversation_state(
        scid=scid,
        client_type=client_type,
        history=history
    )

state = db.get_conversation_state("conv_cursor_001")
if state and state["client_type"] == "cursor":
    print("This is a Cursor client conversation")
"""
EXPIRED = """
import time
from datetime import datetime

db.store_conversation_state(
    scid="temp_conv",
    client_type="unknown",
    history=json.dumps([]),
    ttl_seconds=60  # 1分钟后过期
)

time.sleep(61)

count = db.cleanup_expired_states()
print(f"Cleaned up {count} expired states")
"""
INTEGRATION = """
from longthread.conversation_state import SignatureDatabase
from longthread.conversation_state import CacheConfig
import json

config = CacheConfig(
    db_path="data/signature_cache.db",
    ttl_seconds=3600,  # 默认1小时过期
    wal_mode=True
)
db = SignatureDatabase(config)

class ConversationManager:
    def __init__(self, db: SignatureDatabase):
        self.db = db

    def start_conversation(self, scid: str, client_type: str):
        history = json.dumps([])
        return self.db.store_conversation_state(
            scid=scid,
            client_type=client_type,
            history=history
        )

    def add_message(self, scid: str, role: str, content: str, signature: str = None):
        state = self.db.get_conversation_state(scid)
        if not state:
            return False

        history = state["authoritative_history"]
        history.append({"role": role, "content": content})

        return self.db.update_conversation_state(
            scid=scid,
            history=json.dumps(history),
            signature=signature
        )

    def get_history(self, scid: str):
        state = self.db.get_conversation_state(scid)
        return state["authoritative_history"] if state else []

    def end_conversation(self, scid: str):
        return self.db.delete_conversation_state(scid)

manager = ConversationManager(db)

started = manager.start_conversation("conv_001", "cursor")

added = [
    manager.add_message("conv_001", "user", "Hello", "sig_1"),
    manager.add_message("conv_001", "assistant", "Hi there!", "sig_2"),
]

history = manager.get_history("conv_001")
print(f"Conversation has {len(history)} messages")

ended = manager.end_conversation("conv_001")
"""


@pytest.fixture
def names(store_address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The names of the examples: each runs where the ones before have run. The store of the settings is empty."""
    monkeypatch.setenv("LONGTHREAD_DATABASE_URL", store_address)
    monkeypatch.setenv("LONGTHREAD_DATA_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    clock = Clock(monkeypatch)
    monkeypatch.setattr(time, "sleep", clock.sleep)
    return {}


def run(names: dict[str, Any], *examples: str) -> dict[str, Any]:
    for example in examples:
        exec(example, names)
    return names


def test_the_five_methods(
    names: dict[str, Any], store_address: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(names, SETUP, STORE)["success"] is True
    run(names, GET)
    assert capsys.readouterr().out.splitlines() == [
        "Client Type: cursor", "History Length: 2", "Last Signature: sig_abc123", "Access Count: 1"
    ]  # fmt: skip
    assert list(names["state"]) == [
        "scid", "client_type", "authoritative_history", "last_signature", "created_at", "updated_at", "expires_at",
        "access_count",
    ]  # fmt: skip
    assert names["state"] == relation(store_address, "conv_12345")
    assert run(names, UPDATE)["success"] is True
    run(names, GET)
    assert capsys.readouterr().out.splitlines() == [
        "Client Type: cursor", "History Length: 3", "Last Signature: sig_xyz789", "Access Count: 2"
    ]  # fmt: skip
    assert names["state"]["authoritative_history"] == json.loads(names["updated_history"])
    assert run(names, DELETE)["success"] is True
    assert run(names, DELETE)["success"] is False
    assert run(names, GET)["state"] is None
    run(names, CLEANUP)
    assert capsys.readouterr().out == "Cleaned up 0 expired states\n"
    names["db"].close()


def test_the_scenarios(names: dict[str, Any], store_address: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(names, SETUP, TURNS)
    found = names["db"].get_conversation_state("conv_user123_20260117")
    assert [each["content"] for each in found["authoritative_history"]] == ["开始新对话", "你好!", "请帮我写代码"]
    assert (found["last_signature"], found["expires_at"]) == ("new_sig", None)
    run(names, CLIENTS)
    run(names, EXPIRED)
    said = ["This is a Cursor client conversation", "Cleaned up 1 expired states"]
    assert capsys.readouterr().out.splitlines() == said
    assert relation(store_address, "temp_conv") is None
    assert all(relation(store_address, f"conv_{client}_001") for client in names["client_types"])
    names["db"].close()


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_the_integration(names: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(names, INTEGRATION)
    assert (names["started"], names["added"], names["ended"]) == (True, [True, True], True)
    assert names["history"] == [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi there!"}]
    assert capsys.readouterr().out == "Conversation has 2 messages\n"
    assert (tmp_path / "data/signature_cache.db").is_file()
    names["db"].close()
