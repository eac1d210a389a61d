"""Short JSON of providers', compressed with words that it nearly always has."""

from __future__ import annotations

import zlib

_WINDOW = 32_768
"""Bytes of a dictionary that zlib takes."""
_SMALL = 8_192
"""Up to so many bytes a small window does, which takes a quarter of the time."""
# What is stored was made with these bytes: they never change. What comes last is found with the fewest bits.
_WORDS = (
    b'"created_at":17,"incomplete_details":null,"max_output_tokens":null,"max_tool_calls":null,"parallel_tool_calls":true,'
    b'"prompt_cache_key":"","safety_identifier":null,"truncation":"disabled","top_logprobs":0,"background":false,'
    b'"tool_choice":"auto","temperature":1.0,"top_p":1.0,"reasoning":{"effort":"medium","summary":null},'
    b'"text":{"format":{"type":"text"},"verbosity":"medium"},"metadata":{},"user":null,"error":null,'
    b'{"id":"resp_0","object":"response","status":"completed","model":"gpt-5","store":true,'
    b'"output":[{"id":"rs_0","type":"reasoning","encrypted_content":"gAAAAAB","summary":[{"type":"summary_text","text":"'
    b'{"id":"fc_0","type":"function_call","status":"completed","arguments":"{\\"","call_id":"call_","name":"'
    b'{"type":"function_call_output","call_id":"call_","output":"'
    b'{"id":"msg_0","type":"message","status":"completed","phase":"final_answer","role":"assistant",'
    b'"content":[{"type":"output_text","annotations":[],"logprobs":[],"text":"'
    b'{"type":"message","role":"user","content":[{"type":"input_text","text":"'
    b'"usage":{"input_tokens":1,"input_tokens_details":{"cached_tokens":0},"output_tokens":1,'
    b'"output_tokens_details":{"reasoning_tokens":0},"total_tokens":1}'
    b'{"id":"chatcmpl-","object":"chat.completion","created":17,"system_fingerprint":"fp_","choices":[{"index":0,'
    b'"finish_reason":"stop","native_finish_reason":"stop","logprobs":null,"refusal":null,"reasoning_content":"'
    b'"reasoning_details":[{"type":"reasoning.text","format":"","index":0,"text":"'
    b'"extra_content":{"google":{"thought_signature":"'
    b'"tool_calls":[{"id":"call_","index":0,"type":"function","function":{"name":"","arguments":"{\\"'
    b'{"prompt_tokens":1,"completion_tokens":1,"total_tokens":1,"prompt_tokens_details":{"cached_tokens":0,'
    b'"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}'
    b'{"field":"content","value":"{"field":"reasoning_content","value":"{"field":"phase","value":"{"field":"id","value":"'
    b'"stop_details":null,"container":null,"context_management":{"applied_edits":[]},"diagnostics":null,'
    b'"cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":0},"server_tool_use":null,'
    b'"service_tier":"standard","inference_geo":"global","output_tokens_details":{"thinking_tokens":0},'
    b'{"id":"msg_01","type":"message","role":"assistant","model":"claude-","stop_reason":"tool_use",'
    b'"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":1,"cache_creation_input_tokens":0,'
    b'"cache_read_input_tokens":0,"output_tokens":1}}'
    b'{"type": "tool_use", "id": "toolu_01", "name": "", "input": {"'
    b'{"type":"tool_use","id":"toolu_01","name":"","input":{"'
    b'"caller":{"type":"direct"}},"is_error":false,"cache_control":{"type":"ephemeral"},"citations":null,'
    b'[{"type": "tool_result", "tool_use_id": "toolu_01", "content": "'
    b'[{"type":"tool_result","tool_use_id":"toolu_01","content":"'
    b'[{"type":"redacted_thinking","data":"'
    b'[{"type": "thinking", "thinking": "", "signature": ""},{"type": "text", "text": ""}]'
    b'[{"type":"thinking","thinking":"","signature":""},{"type":"text","text":""}]'
)


def deflated(raw: bytes, more: bytes = b"") -> bytes:
    """Compress bytes. `more` is text that they have in common with something that is stored anyway."""
    words = (_WORDS + more)[-_WINDOW:]
    is_small = len(raw) + len(words) <= _SMALL
    packer = zlib.compressobj(6, zlib.DEFLATED, *((-13, 5) if is_small else (-15, 8)), zdict=words)
    return packer.compress(raw) + packer.flush()


def inflated(body: bytes, more: bytes = b"") -> bytes:
    """Return what `deflated` was given. Raises ValueError: the bytes are damaged."""
    unpacker = zlib.decompressobj(-15, (_WORDS + more)[-_WINDOW:])
    try:
        raw = unpacker.decompress(body) + unpacker.flush()
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if not unpacker.eof:
        raise ValueError("its end is missing")
    return raw
