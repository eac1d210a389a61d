"""Conversation states as document 003 has them: synchronous, thread-safe, over the log.

from longthread.conversation_state import CacheConfig, SignatureDatabase

with SignatureDatabase(CacheConfig(db_path="conversations.db", ttl_seconds=3600)) as db:
    db.store_conversation_state("conv_1", "cursor", '[{"role": "user", "content": "Hello"}]')
"""

from longthread.conversation_state.database import CacheConfig, SignatureDatabase

__all__ = ["CacheConfig", "SignatureDatabase"]
