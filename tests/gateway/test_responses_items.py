"""Items of OpenAI's Responses: which are one to the model, and what an entry keeps of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from longthread.gateway.dialects.responses import Responses
from longthread.gateway.keep import drafts, group_parts
from longthread.gateway.raw_json import element_texts
from longthread.gateway.request import Asked
from longthread.model.content import unpack

RESPONSES = Responses()
USER = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "一"}]}
MESSAGE = {
    "type": "message",
    "role": "assistant",
    "id": "msg_1",
    "phase": "final_answer",
    "status": "completed",
    "content": [
        {
            "type": "output_text",
            "text": "yes 🎉",
            "annotations": [{"type": "url_citation", "url": "u"}],
            "logprobs": [],
        },
        {"type": "refusal", "refusal": "no"},
    ],
}
CALL = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "n", "arguments": '{"b": 1, "a": [2.50]}'}
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "12:00"}
REASONING = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "t"}],
    "encrypted_content": "x",
}
PICTURE = {"type": "input_image", "image_url": "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP", "detail": "auto"}
ITEMS: list[dict[str, Any]] = [
    USER,
    MESSAGE,
    CALL,
    OUTPUT,
    OUTPUT | {"output": [{"type": "input_text", "text": "12:00"}, PICTURE]},
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "look"}, PICTURE]},
    {"type": "message", "role": "user", "content": [{"type": "input_file", "file_id": "file_1"}]},
    {"type": "message", "role": "user", "content": "a text"},
    {"type": "message", "role": "developer", "id": "msg_2", "content": "from now on"},
    {"type": "message", "role": "system", "content": "from now on"},
    {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c", "name": "patch", "input": "*** Begin"},
    {"type": "custom_tool_call_output", "call_id": "c", "output": "done"},
    {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}},
    {"type": "file_search_call", "id": "fs_1", "status": "completed", "queries": ["q"], "results": None},
    {"type": "local_shell_call", "id": "lsh_1", "call_id": "s", "status": "completed", "action": {"command": ["ls"]}},
    {"type": "local_shell_call_output", "id": "lsh_1", "output": "{}", "status": "completed"},
    {"type": "shell_call", "id": "sh_1", "call_id": "s", "action": {"commands": ["ls"]}},
    {
        "type": "shell_call_output",
        "call_id": "s",
        "output": [{"stdout": "a", "stderr": "", "outcome": {"type": "exit"}}],
    },
    {"type": "apply_patch_call", "id": "ap_1", "call_id": "p", "operation": {"type": "delete_file", "path": "x"}},
    {"type": "apply_patch_call_output", "call_id": "p", "status": "completed", "output": "ok"},
    {"type": "computer_call", "id": "cu_1", "call_id": "u", "action": {"type": "click", "x": 1}, "status": "completed"},
    {"type": "computer_call_output", "call_id": "u", "output": {"type": "computer_screenshot", "file_id": "f"}},
    {
        "type": "code_interpreter_call",
        "id": "ci_1",
        "code": "1",
        "container_id": "c",
        "outputs": None,
        "status": "completed",
    },
    {"type": "image_generation_call", "id": "ig_1", "result": "iVBORw0", "status": "completed"},
    {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "s", "tools": []},
    {
        "type": "mcp_call",
        "id": "mcp_1",
        "server_label": "s",
        "name": "n",
        "arguments": "{}",
        "output": "o",
        "error": None,
    },
    {"type": "mcp_approval_request", "id": "mcpr_1", "server_label": "s", "name": "n", "arguments": "{}"},
    {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True},
    {"type": "compaction", "id": "cmp_1", "encrypted_content": "sealed"},
    {"type": "compaction_trigger"},
    {"type": "additional_tools", "role": "developer", "tools": [{"type": "function", "name": "n"}]},
    {"type": "tool_search_call", "id": "ts_1", "call_id": None, "arguments": {"q": 1}, "execution": "server"},
    {"type": "a_kind_of_tomorrow", "id": "x_1", "status": "completed", "data": [1, {"two": None}]},
]


def asked(items: Any) -> Asked:
    return Asked.read(RESPONSES, "ada", json.dumps({"input": items}).encode())


def entries_of(request: Asked) -> list[tuple[Any, Sequence[str]]]:
    made = drafts(group_parts(request.parts), "responses", request.blocks)
    return [
        (draft.role, [raw for _, raw in element_texts(unpack(draft.payload or b"", draft.text)[1])]) for draft in made
    ]


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: str(item["type"]))
def test_an_item_comes_out_of_its_entry_as_it_went_in(item: dict[str, Any]) -> None:
    request = asked([USER, REASONING, MESSAGE, REASONING, item])
    found = [json.loads(raw) for raw in RESPONSES.write_messages(entries_of(request))]
    assert found == [USER, REASONING, MESSAGE, REASONING, item]


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: str(item["type"]))
def test_the_hidden_parts_of_an_entry_are_those_of_its_item(item: dict[str, Any]) -> None:
    request = asked([USER, REASONING, item])
    found = []
    for role, raws in entries_of(request):
        found += RESPONSES.read_blocks(role, [json.loads(raw) for raw in raws])
    assert [(part.role, part.visible, part.hidden) for part in found] == [
        (part.role, part.visible, part.hidden) for part in request.parts
    ]


ALIKE: list[tuple[Any, Any]] = [
    ("一", [USER]),
    ([USER], [{"role": "user", "content": "一"}]),
    ([USER], [USER | {"id": "msg_9", "status": "completed", "phase": None}]),
    ([USER], [USER, {"role": "assistant", "content": None}, {"role": "user", "content": ""}]),
    ([USER, MESSAGE], [USER, *(MESSAGE | {"id": None, "content": [part]} for part in MESSAGE["content"])]),
    ([USER, CALL], [USER, REASONING, CALL | {"id": "fc_9", "arguments": '{"a":[2.5],"b":1}', "namespace": None}]),
    ([USER, CALL | {"arguments": '{"a":1.0,"b":[-2e3]}'}], [USER, CALL | {"arguments": '{"a":1,"b":[-2000]}'}]),
    ([USER, CALL | {"arguments": "{}"}], [USER, CALL | {"arguments": ""}]),
    ([USER, OUTPUT], [USER, OUTPUT | {"id": "fco_1", "output": [{"type": "input_text", "text": "12:00"}]}]),
    ([USER, OUTPUT | {"output": ""}], [USER, OUTPUT | {"output": []}]),
    ([{"role": "developer", "content": "x"}, USER], [USER]),
]


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_what_is_one_to_the_model_is_one_node(one: Any, other: Any) -> None:
    assert asked(one).nodes == asked(other).nodes


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([USER], [USER | {"content": "二"}]),
        ([USER], [USER | {"role": "assistant"}]),
        ([CALL], [CALL | {"arguments": '{"a": [2.50], "b": 2}'}]),
        ([CALL], [CALL | {"call_id": "call_2"}]),
        ([CALL], [CALL | {"namespace": "other"}]),
        ([CALL], [CALL | {"arguments": "no JSON"}]),
        ([CALL], [CALL | {"type": "custom_tool_call"}]),
        ([OUTPUT], [OUTPUT | {"output": "13:00"}]),
        ([ITEMS[28]], [ITEMS[28] | {"encrypted_content": "another"}]),
        ([ITEMS[5]], [USER | {"content": "look"}]),
        (
            [{"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}],
            [USER | {"role": "assistant", "content": "no"}],
        ),
    ],
)
def test_what_the_model_sees_makes_another_node(one: Any, other: Any) -> None:
    assert asked(one).nodes[-1] != asked(other).nodes[-1]


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("listed", [[REASONING | {"encrypted_content": "half"}, MESSAGE], [], None])
def test_a_stream_is_read_from_its_finished_items(newline: str, listed: list[dict[str, Any]] | None) -> None:
    """In the last event encrypted content may be cut, and some providers leave out the items."""
    response = {"id": "resp_1", "status": "completed", "usage": {"output_tokens": 3}} | (
        {} if listed is None else {"output": listed}
    )
    events: list[dict[str, Any]] = [
        {"type": "response.output_text.delta", "delta": "response.completed"},
        {"type": "response.output_item.done", "output_index": 1, "item": MESSAGE},
        {"type": "response.output_item.done", "output_index": 0, "item": REASONING},
        {"type": "response.completed", "response": response},
    ]
    lines = [line for each in events for line in (f"event: {each['type']}", f"data: {json.dumps(each)}", "")]
    reply = RESPONSES.read_stream("".join(line + newline for line in [*lines, "data: [DONE]", ""]).encode())
    assert (reply.id, reply.whole, reply.ids, reply.usage["output_tokens"]) == ("resp_1", True, ["rs_1", "msg_1"], 3)
    assert reply.raws[0] == [json.dumps(REASONING)]
    assert reply.parts[0].value == REASONING["encrypted_content"]


@pytest.mark.parametrize("last", [{"type": "response.failed", "response": {"status": "failed", "output": []}}, None])
def test_a_stream_without_its_end_is_not_whole(last: dict[str, Any] | None) -> None:
    done = {"type": "response.output_item.done", "output_index": 0, "item": MESSAGE}
    body = "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in (done, last) if each)
    assert not RESPONSES.read_stream(body.encode()).whole
