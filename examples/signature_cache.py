"""Keep conversations of a coding client by their id, with the last signature and an expiry: document 003's cache.

    python examples/signature_cache.py

Code for `src.cache.signature_database` needs another import and nothing else. Each state is a conversation of the log.
"""

import json
import tempfile
import time
from pathlib import Path

from longthread.conversation_state import CacheConfig, SignatureDatabase


class ConversationManager:
    """The class at the end of document 003."""

    def __init__(self, db: SignatureDatabase) -> None:
        self.db = db

    def start_conversation(self, scid: str, client_type: str) -> bool:
        return self.db.store_conversation_state(scid=scid, client_type=client_type, history=json.dumps([]))

    def add_message(self, scid: str, role: str, content: str, signature: str | None = None) -> bool:
        state = self.db.get_conversation_state(scid)
        if not state:
            return False
        history = [*state["authoritative_history"], {"role": role, "content": content}]
        return self.db.update_conversation_state(scid=scid, history=json.dumps(history), signature=signature)

    def get_history(self, scid: str) -> list:
        state = self.db.get_conversation_state(scid)
        return state["authoritative_history"] if state else []

    def end_conversation(self, scid: str) -> bool:
        return self.db.delete_conversation_state(scid)


def main(folder: Path) -> None:
    config = CacheConfig(db_path=str(folder / "conversations.db"), ttl_seconds=3600)
    with SignatureDatabase(config) as db:
        manager = ConversationManager(db)
        manager.start_conversation("conv_001", "cursor")
        manager.add_message("conv_001", "user", "Hello", "sig_1")
        manager.add_message("conv_001", "assistant", "Hi there!", "sig_2")
        print(f"Conversation has {len(manager.get_history('conv_001'))} messages")
        state = db.get_conversation_state("conv_001")
        print(state["client_type"], state["last_signature"], state["access_count"])

        db.store_conversation_state("temp_conv", "unknown", json.dumps([]), ttl_seconds=1)
        time.sleep(1.1)
        print(f"Cleaned up {db.cleanup_expired_states()} expired states")
        print(manager.end_conversation("conv_001"), manager.get_history("conv_001"))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        main(Path(temporary))
