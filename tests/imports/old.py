"""Databases of the programs that the source documents describe, made by the DDL that the documents print."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
from psycopg.types.json import Jsonb

THREAD = "ed51f46b-9a38-4b4a-8dad-dd4134b53309"
ROCKETS = "运载火箭有哪些？"
ANSWER = "运载火箭包括：长征二号丁..."

STATE: Mapping[str, Any] = {
    "question": ROCKETS,
    "messages": [{"role": "user", "content": ROCKETS}, {"role": "assistant", "content": ANSWER}],
    "steps": [
        {
            "step_index": 0,
            "step_type": "action",
            "thought": "需要列出所有表",
            "action": "list_tables",
            "args": {},
            "observation": {"ok": True, "data": {"tables": ["aircraft_info", "aircraft_hardware"]}},
            "content": "{...}",
            "timestamp": "2024-01-01T10:00:00",
        }
    ],
    "known_tables": ["aircraft_info", "aircraft_hardware"],
    "known_schemas": {
        "aircraft_info": {
            "columns": [{"name": "id", "type": "INTEGER"}, {"name": "aircraft_name", "type": "VARCHAR"}],
            "table_name": "aircraft_info",
        }
    },
    "candidate_tables": [],
    "known_samples": {},
    "error_history": [],
    "sql_history": [
        {
            "sql": "SELECT DISTINCT use_rocket FROM aircraft_info;",
            "result": {"ok": True, "data": {"rows": [["长征二号丁"]]}},
            "timestamp": "2024-01-01T10:01:00",
        }
    ],
    "last_error": None,
    "done": True,
    "answer": {"ok": True, "data": ANSWER},
    "max_steps": 12,
    "compressed_summary": "**之前的用户问题**: 2个问题\n- 运载火箭有哪些？\n...",
    "compressed_message_count": 15,
    "compressed_config_hash": "abc123...",
}
"""Document 000's example."""

CONVERSATIONS = """
CREATE TABLE conversations (
    thread_id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL DEFAULT 'default',
    title TEXT,
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    tool_categories TEXT,
    tags TEXT,
    state_data TEXT
);
CREATE INDEX idx_conversations_user_id ON conversations (user_id);
CREATE TABLE conversation_steps (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    thread_id TEXT NOT NULL,
    step_index INTEGER NOT NULL,
    step_data TEXT NOT NULL,
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    FOREIGN KEY (thread_id) REFERENCES conversations (thread_id)
);
CREATE INDEX idx_conversation_steps_thread_id ON conversation_steps (thread_id);
"""

CONVERSATION_STATE = """
CREATE TABLE IF NOT EXISTS conversation_state (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    scid TEXT UNIQUE NOT NULL,
    client_type TEXT NOT NULL,
    authoritative_history TEXT NOT NULL,
    last_signature TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    expires_at TEXT,
    access_count INTEGER DEFAULT 0
);
CREATE INDEX IF NOT EXISTS idx_conversation_state_scid ON conversation_state(scid);
CREATE INDEX IF NOT EXISTS idx_conversation_state_expires ON conversation_state(expires_at);
"""

AGENTS = """
CREATE EXTENSION IF NOT EXISTS vector;
CREATE TABLE agents (
    id UUID PRIMARY KEY DEFAULT gen_random_uuid(),
    name VARCHAR(100) NOT NULL,
    description TEXT,
    system_prompt TEXT NOT NULL,
    config JSONB DEFAULT '{"model": "gpt-4o", "temperature": 0.7, "max_tokens": 4096, "timeout_seconds": 120}',
    skills TEXT[] DEFAULT '{}',
    sub_agents TEXT[] DEFAULT '{}',
    is_active BOOLEAN DEFAULT true,
    created_at TIMESTAMPTZ DEFAULT NOW(),
    updated_at TIMESTAMPTZ DEFAULT NOW()
);
CREATE TABLE skills (
    id UUID PRIMARY KEY DEFAULT gen_random_uuid(),
    name VARCHAR(100) NOT NULL UNIQUE,
    description TEXT,
    trigger_keywords TEXT[] DEFAULT '{}',
    tools JSONB NOT NULL DEFAULT '[]',
    config JSONB DEFAULT '{}',
    is_builtin BOOLEAN DEFAULT false,
    created_at TIMESTAMPTZ DEFAULT NOW(),
    updated_at TIMESTAMPTZ DEFAULT NOW()
);
CREATE TABLE tools (
    id UUID PRIMARY KEY DEFAULT gen_random_uuid(),
    name VARCHAR(100) NOT NULL UNIQUE,
    type VARCHAR(50) NOT NULL CHECK (type IN ('api', 'code', 'query', 'mcp')),
    description TEXT,
    schema JSONB NOT NULL,
    implementation JSONB NOT NULL,
    is_active BOOLEAN DEFAULT true,
    created_at TIMESTAMPTZ DEFAULT NOW(),
    updated_at TIMESTAMPTZ DEFAULT NOW()
);
CREATE TABLE sessions (
    id UUID PRIMARY KEY DEFAULT gen_random_uuid(),
    agent_id UUID NOT NULL REFERENCES agents(id) ON DELETE CASCADE,
    user_id VARCHAR(100) NOT NULL,
    status VARCHAR(20) DEFAULT 'active' CHECK (status IN ('active', 'paused', 'completed', 'failed')),
    title VARCHAR(200),
    metadata JSONB DEFAULT '{}',
    started_at TIMESTAMPTZ DEFAULT NOW(),
    ended_at TIMESTAMPTZ,
    created_at TIMESTAMPTZ DEFAULT NOW()
);
CREATE TABLE messages (
    id UUID PRIMARY KEY DEFAULT gen_random_uuid(),
    session_id UUID NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
    parent_id UUID REFERENCES messages(id),
    role VARCHAR(20) NOT NULL CHECK (role IN ('system', 'user', 'assistant', 'tool')),
    content TEXT NOT NULL,
    tool_calls JSONB,
    tool_call_id VARCHAR(100),
    tokens_used INTEGER,
    latency_ms INTEGER,
    metadata JSONB DEFAULT '{}',
    created_at TIMESTAMPTZ DEFAULT NOW()
);
CREATE TABLE memories (
    id UUID PRIMARY KEY DEFAULT gen_random_uuid(),
    agent_id UUID NOT NULL REFERENCES agents(id) ON DELETE CASCADE,
    session_id UUID REFERENCES sessions(id) ON DELETE SET NULL,
    content TEXT NOT NULL,
    embedding VECTOR(1536),
    memory_type VARCHAR(50) DEFAULT 'episodic' CHECK (memory_type IN ('episodic', 'semantic', 'procedural')),
    importance FLOAT DEFAULT 0.5,
    metadata JSONB DEFAULT '{}',
    expires_at TIMESTAMPTZ,
    created_at TIMESTAMPTZ DEFAULT NOW()
);
CREATE INDEX idx_memories_embedding ON memories USING ivfflat (embedding vector_cosine_ops) WITH (lists = 100);
"""

MEMORY = """
CREATE EXTENSION IF NOT EXISTS vector;
CREATE TABLE thread_activity (thread_id TEXT PRIMARY KEY, label TEXT, last_active_at TIMESTAMPTZ);
CREATE TABLE conversation_summaries (
    thread_id TEXT PRIMARY KEY, summary TEXT NOT NULL, message_count INT DEFAULT 0, updated_at TIMESTAMPTZ
);
CREATE TABLE memory_vectors (
    id TEXT PRIMARY KEY, thread_id TEXT NOT NULL, chunk TEXT NOT NULL, topics TEXT[] DEFAULT '{}',
    embedding vector(1536), created_at TIMESTAMPTZ
);
CREATE INDEX idx_memory_vectors_thread ON memory_vectors (thread_id);
CREATE INDEX idx_memory_vectors_topics ON memory_vectors USING GIN (topics);
CREATE TABLE memory_topics (
    thread_id TEXT NOT NULL, topic TEXT NOT NULL, mention_count INT DEFAULT 1, last_seen_at TIMESTAMPTZ,
    PRIMARY KEY (thread_id, topic)
);
"""


def conversations(path: Path, states: Mapping[str, Any], *, user: str = "default") -> Path:
    """A `conversations.db`. A state that is a text is stored as it is."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(CONVERSATIONS)
        for thread_id, state in states.items():
            title = (state.get("question") or "")[:50] if isinstance(state, Mapping) else "?"
            text = state if isinstance(state, str) else json.dumps(state)
            connection.execute(
                "INSERT INTO conversations VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    thread_id,
                    user,
                    title,
                    "2024-01-01T10:00:00",
                    "2024-01-01T10:05:00",
                    '["database"]',
                    '["rockets"]',
                    text,
                ),
            )
    return path


def states(
    path: Path,
    histories: Mapping[str, Sequence[Any] | str],
    *,
    client: str = "claude_code",
    ends: str = "2036-01-17T10:00:00",
) -> Path:
    """A database with `conversation_state`."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(CONVERSATION_STATE)
        for scid, history in histories.items():
            text = history if isinstance(history, str) else json.dumps(history)
            connection.execute(
                "INSERT INTO conversation_state (scid, client_type, authoritative_history, last_signature, created_at, "
                "updated_at, expires_at, access_count) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    scid,
                    client,
                    text,
                    "sig_abc123",
                    "2026-01-17T08:00:00",
                    "2026-01-17T09:00:00",
                    ends,
                    7,
                ),
            )
    return path


UUIDS = {name: f"00000000-0000-4000-8000-{place:012d}" for place, name in enumerate(
    ("agent", "sub", "skill", "search", "run", "data", "session", "m1", "m2", "m3", "m4", "m2b", "memory", "loose")
)}  # fmt: skip
"""Ids of document 002's rows, by a name."""
SEARCH = {
    "type": "api",
    "endpoint": "https://api.example.com/search",
    "method": "POST",
    "headers": {"Authorization": "Bearer ${API_KEY}"},
    "body_template": {"q": "{{query}}", "num": "{{limit}}"},
}
PARAMETERS = {
    "name": "search_web",
    "description": "Search the web for information",
    "parameters": {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "Search query"},
            "limit": {"type": "integer", "default": 10},
        },
        "required": ["query"],
    },
}
CALLS = [
    {"id": "call_abc123", "type": "function", "function": {"name": "search_web", "arguments": '{"query": "AI agents"}'}}
]
"""Document 002's examples."""
VECTOR = f"[{','.join(['0.5'] * 1536)}]"


def agents(url: str) -> None:
    """Document 002's tables, with a session of two branches and memories."""
    ids = UUIDS
    at = "2025-03-01T10:00:0{}+08:00"
    with psycopg.connect(url, autocommit=True) as db:
        db.execute(AGENTS)
        for name, kind, made in (
            ("search_web", "api", SEARCH),
            ("run_python", "code", {"type": "code", "runtime": "python", "code": "def execute(query):\n    return 1"}),
            ("query_data", "query", {"type": "query", "database": "main", "sql_template": "SELECT {{limit}}"}),
        ):
            schema = {**PARAMETERS, "name": name}
            db.execute(
                "INSERT INTO tools (id, name, type, schema, implementation) VALUES (%s, %s, %s, %s, %s)",
                (ids[{"api": "search", "code": "run", "query": "data"}[kind]], name, kind, Jsonb(schema), Jsonb(made)),
            )
        tools = [{"tool_id": ids["search"], "required": True, "default_params": {}}]
        db.execute(
            "INSERT INTO skills (id, name, trigger_keywords, tools) VALUES (%s, '检索', %s, %s)",
            (ids["skill"], ["查", "find"], Jsonb(tools)),
        )
        for name, skills, subs in (("sub", [], []), ("agent", [ids["skill"]], [ids["sub"]])):
            db.execute(
                "INSERT INTO agents (id, name, system_prompt, skills, sub_agents) VALUES (%s, %s, 'Help.', %s, %s)",
                (ids[name], name, skills, subs),
            )
        db.execute(
            "INSERT INTO sessions (id, agent_id, user_id, status, title, metadata, created_at, started_at, ended_at) "
            "VALUES (%s, %s, 'ada', 'completed', '调研', %s, %s, %s, %s)",
            (ids["session"], ids["agent"], Jsonb({"channel": "web"}), at.format(0), at.format(0), at.format(9)),
        )
        for name, parent, role, content, calls, call_id, second in (
            ("m1", None, "user", "Find AI agents", None, None, 1),
            ("m2", "m1", "assistant", "", CALLS, None, 2),
            ("m3", "m2", "tool", '{"hits": 3}', None, "call_abc123", 3),
            ("m4", "m3", "assistant", "Three hits.", None, None, 4),
            ("m2b", "m1", "assistant", "I know it: 四.", None, None, 5),
        ):
            db.execute(
                "INSERT INTO messages VALUES (%s, %s, %s, %s, %s, %s, %s, 7, 40, %s, %s)",
                (
                    ids[name], ids["session"], ids[parent] if parent else None, role, content,
                    Jsonb(calls) if calls else None, call_id, Jsonb({"k": 1}), at.format(second),
                ),
            )  # fmt: skip
        for name, session, kind in (("memory", "session", "semantic"), ("loose", None, "episodic")):
            db.execute(
                "INSERT INTO memories (id, agent_id, session_id, content, embedding, memory_type, importance, "
                "expires_at) VALUES (%s, %s, %s, %s, %s, %s, 0.75, '2040-01-01T00:00:00Z')",
                (ids[name], ids["agent"], ids[session] if session else None, f"{name} 喜欢火箭", VECTOR, kind),
            )


def memory(url: str, thread_id: str, *, vectors: int = 1536) -> None:
    """Document 004's four tables, with a thread of which older messages were taken out of its checkpoints."""
    with psycopg.connect(url, autocommit=True) as db:
        db.execute(MEMORY.replace("1536", str(vectors)))
        db.execute("INSERT INTO thread_activity VALUES (%s, '会话 1', '2025-05-05T05:05:05Z')", (thread_id,))
        db.execute(
            "INSERT INTO conversation_summaries VALUES (%s, '讨论了 PostgreSQL 表设计', 40, '2025-05-05T05:00:00Z')",
            (thread_id,),
        )
        vector = f"[{','.join(['0.25'] * vectors)}]"
        for name, chunk, topics in (
            ("c1", "user: 怎样设计订单表\nassistant: 用外键连接客户", ["数据库设计"]),
            ("c2", "user: and the API keys?\nassistant: rotate them monthly", ["API认证", "Docker部署"]),
        ):
            db.execute(
                "INSERT INTO memory_vectors VALUES (%s, %s, %s, %s, %s, '2025-05-01T00:00:00Z')",
                (f"{thread_id}-{name}", thread_id, chunk, topics, vector),
            )
        for topic, mentions in (("数据库设计", 3), ("API认证", 1)):
            db.execute(
                "INSERT INTO memory_topics VALUES (%s, %s, %s, '2025-05-02T00:00:00Z')", (thread_id, topic, mentions)
            )
