"""What providers say when a call does not fit into a context window, and what is none of that."""

from __future__ import annotations

import httpx
import openai
import pytest
from langchain_core.exceptions import ContextOverflowError

from longthread.llm.failures import overflow_of, status_of


def refused(status: int, message: str, **more: object) -> openai.APIStatusError:
    """The error that a client raises for a refusal."""
    body = {"message": message, **more}
    response = httpx.Response(status, request=httpx.Request("POST", "http://server/v1"), json={"error": body})
    made = openai.OpenAI(api_key="k")._make_status_error_from_response(response)
    assert isinstance(made, openai.APIStatusError)
    return made


SAID = [
    # OpenAI, Azure
    (400, "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.", 8192),
    (
        400,
        "This model's maximum context length is 4097 tokens. However, you requested 5500 tokens (3500 in the messages, "
        "2000 in the completion). Please reduce the length of the messages or completion.",
        4097,
    ),
    (400, "Your input exceeds the context window of this model. Please adjust your input and try again.", None),
    (
        400,
        "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300000 tokens.",
        272000,
    ),
    # DeepSeek, OpenRouter, xAI, Fireworks
    (400, "This model's maximum context length is 65536 tokens. However, you requested 70000 tokens.", 65536),
    (
        400,
        "This endpoint's maximum context length is 32768 tokens. However, you requested about 40000 tokens (39000 of "
        "text input, 1000 in the output). Please reduce the length of either one.",
        32768,
    ),
    (400, "This model's maximum prompt length is 131072 but the request contains 537812 tokens.", 131072),
    (400, "The prompt is too long: 140000, model maximum context length: 131071", 131071),
    # Anthropic
    (400, "prompt is too long: 213462 tokens > 200000 maximum", 200000),
    (400, "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length", 200000),
    (413, "Request exceeds the maximum size", None),
    (413, "Request size exceeds model context window", None),
    # llama.cpp
    (400, "request (4390 tokens) exceeds the available context size (4096 tokens), try increasing it", 4096),
    (500, "the request exceeds the available context size. try increasing the context size", None),
    (500, "Context size has been exceeded.", None),
    (500, "Requested tokens (2285) exceed context window of 2048", 2048),
    # vLLM
    (
        400,
        "'max_tokens' or 'max_completion_tokens' is too large: 2000. This model's maximum context length is 4096 "
        "tokens and your request has 2104 input tokens (2000 > 4096 - 2104).",
        4096,
    ),
    (
        400,
        "You passed 4097 input tokens and requested 100 output tokens. However, the model's context length is only "
        "4096, resulting in a maximum input length of 3996.",
        4096,
    ),
    (400, "The decoder prompt (length 5000) is longer than the maximum model length of 4096.", 4096),
    (400, "Input prompt (5000 tokens) is too long and exceeds limit of 4096", 4096),
    # SGLang, TensorRT-LLM, TabbyAPI
    (400, "The input (5000 tokens) is longer than the model's context length (4096 tokens).", 4096),
    (400, "Input length (5000 tokens) exceeds the maximum allowed length (4096 tokens).", 4096),
    (400, "Requested token count exceeds the model's maximum context length of 4096 tokens. You requested 5000.", 4096),
    (400, "Prompt length (5000) exceeds maximum input length (4096). Set a larger max_input_len.", 4096),
    (400, "Prompt length 5000 is greater than max_seq_len 4096", 4096),
    # Ollama, LM Studio
    (400, "the input length exceeds the context length", None),
    (400, "prompt too long; exceeded max context length by 14 tokens", None),
    (
        400,
        "Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context "
        "length of only 4096 tokens, which is not enough.",
        4096,
    ),
    (400, "The number of tokens to keep from the initial prompt is greater than the context length.", None),
    # TGI, Together
    (
        422,
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 3500 `inputs` tokens and "
        "1000 `max_new_tokens`",
        4096,
    ),
    (422, "Input validation error: `inputs` must have less than 1024 tokens. Given: 5000", 1024),
    # Gemini, Vertex AI
    (400, "The input token count (1196265) exceeds the maximum number of tokens allowed (1048576).", 1048576),
    (
        400,
        "Unable to submit request because the input token count is 40000 but model only supports up to 32768.",
        32768,
    ),
    # Mistral, Groq, Cerebras, Cohere, Bedrock, GitHub, Cloudflare
    (400, "Prompt contains 40000 tokens, too large for model with 32768 maximum context length", 32768),
    (400, "Please reduce the length of the messages or completion.", None),
    (400, "Please reduce the length of the messages or completion. Current length is 9000 while limit is 8192", 8192),
    (400, "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5000.", 4081),
    (400, "Input is too long for requested model.", None),
    (413, "Request body too large for gpt-4o model. Max size: 8000 tokens.", 8000),
    (
        400,
        "The estimated number of input and maximum output tokens (10000) exceeded this model context window limit "
        "(8000).",
        8000,
    ),
    # Qwen, Moonshot, MiniMax, Zhipu
    (400, "Range of input length should be [1, 30720]", 30720),
    (400, "Invalid request: Your request exceeded model token limit: 8,192 (requested: 9,000)", 8192),
    (400, "invalid params, context window exceeds limit (2013)", None),  # the number is the error's
    (400, "Prompt 超长", None),
    (400, "输入内容过长，超过模型上下文长度", None),
    (400, "该模型的最大上下文长度为 8192 个 token，您的请求为 9000", 8192),
    # Numbers in thousands are no numbers of tokens.
    (400, "This model's maximum context length is 128k tokens, but 140k were requested.", 128_000),
    (400, "Requested tokens exceed the context window of 200K", 200_000),
    (400, "This endpoint's maximum context length is 1M tokens", 1_000_000),
    (400, "Input length 5000 exceeds maximum allowed token size 4096", 4096),
    (400, "Please ensure that the number of tokens does not exceed 32,768", 32_768),
    # More at once than a whole minute may have: the same call never succeeds.
    (
        429,
        "Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Requested 31000. "
        "The input or output tokens must be reduced in order to run successfully.",
        30_000,
    ),
    (413, "Request too large for model `llama` on tokens per minute (TPM): Limit 6000, Requested 8000, please", 6_000),
]


@pytest.mark.parametrize(("status", "message", "limit"), SAID)
def test_each_provider_is_understood(status: int, message: str, limit: int | None) -> None:
    found = overflow_of(refused(status, message))
    assert found is not None
    assert found.limit == limit


OTHERS = [
    (429, "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 29000, Requested 4000."),
    (413, "Request too large for model `llama` on tokens per minute (TPM): Limit 6000, Requested 4000"),
    (500, "rpc error: context deadline exceeded"),
    (503, "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"),
    (503, "The request exceeded the time limit of 60 seconds"),
    (503, "Request took too long to process"),
    (429, "This model's maximum context length is 8192 tokens."),
    (401, "Incorrect API key provided."),
    (404, "The model `gpt-9` does not exist or you do not have access to it."),
    (400, "max_tokens is too large: 100000. This model supports at most 16384 completion tokens."),
    (400, "max_tokens: 100000 > 8192, which is the maximum allowed number of output tokens for claude-3"),
    (400, "Invalid schema for function 'run_sql': 'sql' is not valid under any of the given schemas."),
    (400, "An assistant message with 'tool_calls' must be followed by tool messages."),
    (400, "messages.1.content.0.image.source.base64: image exceeds 5 MB maximum: 6000000 bytes > 5242880 bytes"),
    (400, "model does not support tools"),
    (400, "Unsupported parameter: 'temperature' is not supported with this model."),
    (403, "Your request was blocked: the input exceeds what is allowed."),
    (500, "The server had an error while processing your request. Sorry about that!"),
    (400, "Your request was rejected as a result of our safety system."),
    (400, "`temperature` must be <= 2"),
    (500, "Internal error: maximum recursion depth exceeded"),
    (400, "You exceeded your current quota, please check your plan and billing details."),
]


@pytest.mark.parametrize(("status", "message"), OTHERS)
def test_what_is_about_something_else_is_not_taken_for_it(status: int, message: str) -> None:
    assert overflow_of(refused(status, message)) is None


def test_codes_types_and_classes_say_it_too() -> None:
    for more in ({"code": "context_length_exceeded"}, {"type": "exceed_context_size_error", "n_ctx": 4096}):
        found = overflow_of(refused(400, "No.", **more))
        assert found is not None
        assert found.limit == more.get("n_ctx")
    assert overflow_of(ContextOverflowError("No.")) is not None
    wrapped = RuntimeError("the call failed")
    wrapped.__cause__ = refused(400, "prompt is too long: 9000 tokens > 8192 maximum")
    found = overflow_of(wrapped)
    assert found is not None
    assert found.limit == 8192


def test_in_a_stream_there_is_no_status() -> None:
    request = httpx.Request("POST", "http://server/v1")
    error = openai.APIError("the request exceeds the available context size", request, body={"n_ctx": 4096})
    found = overflow_of(error)
    assert found is not None
    assert found.limit == 4096
    assert overflow_of(openai.APIError("overloaded", request, body=None)) is None
    assert overflow_of(openai.APIConnectionError(request=request)) is None
    assert overflow_of(TimeoutError()) is None


def test_an_error_that_is_its_own_cause_is_read_once() -> None:
    error = RuntimeError("the connection broke")
    error.__cause__ = error
    assert overflow_of(error) is None
    assert status_of(error) is None
