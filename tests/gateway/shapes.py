"""Conversations whose messages have many forms, by dialect."""

from __future__ import annotations

from typing import Any


def turn(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


SHAPES: list[tuple[str, list[Any]]] = [
    (
        "anthropic",
        [
            turn(
                [
                    {"type": "text", "text": "看", "cache_control": {"type": "ephemeral"}},
                    {"type": "image", "source": {"type": "url", "url": "u"}},
                ]
            ),
            {
                "role": "assistant",
                "content": [
                    {"type": "redacted_thinking", "data": "x"},
                    {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"q": 1.0}},
                    {
                        "type": "web_search_tool_result",
                        "tool_use_id": "s",
                        "content": [{"type": "web_search_result", "encrypted_content": "e"}],
                    },
                    {"type": "text", "text": "half \ud83d", "citations": [{"type": "x"}]},
                    {"type": "tool_use", "id": "t", "name": "f", "input": {}},
                ],
            },
            turn(
                [
                    {"type": "tool_result", "tool_use_id": "t", "content": None, "is_error": True},
                    {"type": "text", "text": "a\u0000b"},
                ]
            ),
            {"role": "system", "content": "Be brief."},
            turn(None),
            turn(""),
        ],
    ),
    (
        "anthropic",
        [
            turn("a"),
            turn("b"),
            {"role": "assistant", "content": ""},
            turn([{"type": "compaction", "content": "all", "encrypted_content": "e"}]),
        ],
    ),
    ("responses", ["Hello"]),
    (
        "responses",
        [
            {"role": "developer", "content": "frame"},
            {
                "type": "message",
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "看"},
                    {"type": "input_image", "image_url": "data:image/png;base64,AAAA"},
                ],
            },
            {"role": "developer", "content": "in between"},
            {"type": "additional_tools", "tools": [{"name": "g"}]},
            {
                "type": "reasoning",
                "id": "rs",
                "summary": [{"type": "summary_text", "text": "想"}],
                "encrypted_content": "e",
            },
            {
                "type": "message",
                "id": "m",
                "role": "assistant",
                "phase": "commentary",
                "status": "completed",
                "content": [
                    {"type": "output_text", "text": "ok", "annotations": [], "logprobs": []},
                    {"type": "refusal", "refusal": "no"},
                ],
            },
            {"type": "function_call", "id": "fc", "call_id": "c1", "name": "f", "arguments": '{"b":1.0, "a":[]}'},
            {"type": "function_call", "id": "fd", "call_id": "c2", "name": "f", "arguments": "no json"},
            {"type": "custom_tool_call", "call_id": "c3", "name": "patch", "input": "*** Begin"},
            {"type": "local_shell_call", "call_id": "c4", "action": {"command": ["ls"]}, "status": "completed"},
            {"type": "function_call_output", "call_id": "c1", "output": "ok"},
            {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "ok"}]},
            {"type": "custom_tool_call_output", "call_id": "c3", "output": ""},
            {"type": "local_shell_call_output", "call_id": "c4", "output": "ls"},
            {"type": "compaction", "id": "cmp", "encrypted_content": "e"},
            {"role": "user", "content": [], "name": "x"},
            {
                "type": "web_search_call",
                "id": "ws",
                "status": "completed",
                "action": {"type": "search", "query": "海象"},
            },
            {"role": "user", "content": "and now?"},
        ],
    ),
    (
        "completions",
        [
            {"role": "system", "content": "frame"},
            {
                "role": "user",
                "name": "ada",
                "content": [{"type": "text", "text": "看"}, {"type": "image_url", "image_url": {"url": "u"}}],
            },
            {
                "role": "assistant",
                "content": None,
                "reasoning_content": "",
                "refusal": None,
                "tool_calls": [
                    {
                        "id": "c1",
                        "type": "function",
                        "function": {"name": "f", "arguments": '{"b": 1.0}'},
                        "extra_content": {"google": {"thought_signature": "s"}},
                    },
                    {"id": "c2", "type": "custom", "custom": {"name": "g", "input": "text"}},
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "ok"},
            {"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": "ok"}]},
            {"role": "assistant", "content": "no", "reasoning_details": [{"type": "reasoning.text", "text": "想"}]},
            {
                "role": "assistant",
                "content": [{"type": "thinking", "thinking": []}, {"type": "text", "text": "是"}],
                "refusal": "never",
            },
            {
                "role": "assistant",
                "content": "",
                "audio": {"id": "a1"},
                "function_call": {"name": "f", "arguments": "x"},
            },
            {"role": "function", "name": "f", "content": "1"},
            {"role": "developer", "content": "in between"},
            turn("and now?"),
        ],
    ),
]
