"""A run through the server as a collector sees it: one trace, with the way to each exact view, and no contents."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.otel.collector import Collector, GotSpan, collecting

from longthread.settings import Settings
from longthread.telemetry import OFF, current_span, is_traced, span
from longthread.testing import ProviderEmulator, Refused

pytestmark = pytest.mark.one_backend

SECRET = "the payroll of Wernher"
KEY = "sk-never-told-to-anybody"
CALLER = "4bf92f3577b34da6a3ce929d0e0e4736"
TRACEPARENT = f"00-{CALLER}-00f067aa0ba902b7-01"
SCRIPT = [
    {"thought": f"About {SECRET}.", "action": "list_tables"},
    {"action": "run_sql", "args": {"sql": f"select '{SECRET}' as secret"}},
    {"finish": f"[q1] It is {SECRET}."},
]


def trace_run(serve: Any, script: Any = SCRIPT, **settings: Any) -> tuple[Collector, Any, dict[str, Any]]:
    """Ask one question, with a model behind a socket; return what the collector and the model got, and the answer."""
    with collecting() as collector, ProviderEmulator(script, api_key=KEY) as emulator:
        model = {"model": "openai:emulated", "openai_base_url": emulator.base_url, "openai_api_key": KEY}
        running = serve(None, **model, retry_attempts=0, otel_endpoint=collector.url, **settings)
        running.client.headers["traceparent"] = TRACEPARENT
        asked: dict[str, Any] = running.answer(f"What is {SECRET}?")
        path = f"/api/conversations/{asked['thread_id']}/calls"
        asked["seen"] = {step: running.client.get(f"{path}/{step}").json() for step in (0, 2)}
        asked["address"] = emulator.base_url
        running.stop()
        return collector, emulator, asked


def only(spans: list[GotSpan]) -> GotSpan:
    [found] = spans
    return found


def test_a_run_is_one_trace_that_goes_on_from_its_callers(serve: Any) -> None:
    collector, emulator, asked = trace_run(serve)
    run = only(collector.named("invoke_agent"))
    assert (run.name, run.kind, run.trace_id, run.parent_id) == (
        "invoke_agent analyst",
        "internal",
        CALLER,
        TRACEPARENT[36:52],
    )
    calls, tools = collector.named("chat"), collector.named("execute_tool")
    assert [each.name for each in calls] == ["chat emulated"] * 3
    assert [each.name for each in tools] == ["execute_tool list_tables", "execute_tool run_sql"]
    assert {(each.trace_id, each.parent_id) for each in (*calls, *tools)} == {(CALLER, run.id)}
    assert {each.kind for each in calls} == {"client"} and {each.kind for each in tools} == {"internal"}
    assert not any(each.failed for each in collector.spans)
    about = {"gen_ai.conversation.id": asked["thread_id"], "longthread.run.id": asked["run_id"]}
    assert about.items() <= run.attributes.items()
    assert (run.attributes["gen_ai.agent.name"], run.attributes["longthread.run.status"]) == ("analyst", "finished")
    assert (run.attributes["longthread.run.views"], run.attributes["longthread.run.views_planned"]) == (3, 1)
    first = calls[0].attributes
    host, _, port = asked["address"].removeprefix("http://").partition("/")[0].partition(":")
    assert (first["server.address"], first["server.port"]) == (host, int(port))
    assert (first["gen_ai.provider.name"], first["gen_ai.request.model"]) == ("openai", "emulated")
    assert first["gen_ai.usage.input_tokens"] > 0 and first["gen_ai.usage.output_tokens"] > 0
    assert first["longthread.view.planned"] is True and calls[1].attributes["longthread.view.planned"] is False
    assert tools[1].attributes["gen_ai.tool.type"] == "datastore" and tools[1].attributes["gen_ai.tool.call.id"]
    sent = [each.headers["traceparent"] for each in emulator.requests if each.headers.get("traceparent")]
    assert sent[-3:] == [f"00-{CALLER}-{each.id}-01" for each in calls], "the provider's spans join the trace"
    assert collector.resource["service.name"] == "longthread"


def test_a_model_call_leads_to_its_exact_view(serve: Any) -> None:
    collector, _, asked = trace_run(serve)
    for call in collector.named("chat")[:2]:
        path, step = call.attributes["longthread.view"], call.attributes["longthread.step"]
        assert path == f"/api/conversations/{asked['thread_id']}/calls/{step}"
        seen = asked["seen"][step]
        assert seen["step"] == step
        assert seen["usage"]["input_tokens"] == call.attributes["gen_ai.usage.input_tokens"]


def test_no_contents_and_no_keys_go_out(serve: Any) -> None:
    collector, _, _ = trace_run(serve, otel_headers="x-own=for-the-collector")
    assert collector.bodies and {each["x-own"] for each in collector.headers} == {"for-the-collector"}
    for secret in (SECRET, "payroll", KEY, "for-the-collector"):
        assert not any(secret.encode() in body for body in collector.bodies)
    assert not any(each.events for each in collector.spans), "an exception's message may hold contents"


def test_contents_go_out_where_it_is_asked_for(serve: Any) -> None:
    collector, _, _ = trace_run(serve, otel_contents=True)
    last = collector.named("chat")[-1].attributes
    messages = json.loads(last["gen_ai.input.messages"])
    assert [each["role"] for each in messages][:3] == ["user", "assistant", "tool"]
    assert messages[0]["parts"][0]["content"].startswith(f"What is {SECRET}?")
    assert messages[1]["parts"][-1]["type"] == "tool_call" and messages[2]["parts"][0]["type"] == "tool_call_response"
    assert SECRET in json.loads(last["gen_ai.output.messages"])[0]["parts"][0]["content"]
    assert json.loads(last["gen_ai.system_instructions"])[0]["content"]
    query = collector.named("execute_tool run_sql")[0].attributes
    assert SECRET in json.loads(query["gen_ai.tool.call.arguments"])["sql"]
    assert json.loads(query["gen_ai.tool.call.result"])["ok"] is True
    assert not any(KEY.encode() in body for body in collector.bodies)


def test_what_fails_says_how_and_not_what(serve: Any) -> None:
    script = [{"action": "run_sql", "args": {"sql": "select nothing_like_it"}}, Refused(400, SECRET)]
    collector, _, _ = trace_run(serve, script)
    tool, [_, call], run = collector.named("execute_tool")[0], collector.named("chat"), only(collector.named("invoke"))
    assert (tool.failed, tool.attributes["error.type"]) == (True, "unknown_column")
    assert (call.failed, call.attributes["error.type"]) == (True, "BadRequest")
    assert (run.failed, run.attributes["error.type"]) == (True, "model_failed")
    assert call.attributes["longthread.view"], "what it saw can be looked at, too"
    assert {each.status for each in collector.spans} == {""}
    assert not any(SECRET.encode() in body for body in collector.bodies)
    assert collector.point("gen_ai.client.inference.duration", error__type="BadRequest").count == 1


def test_metrics_go_to_the_collector_too(serve: Any) -> None:
    collector, _, _ = trace_run(serve)
    assert collector.point("longthread_run_seconds", status="finished").count == 1
    assert collector.point("longthread_views", how="planned").value == 1
    assert collector.point("longthread_views", how="grown").value == 2
    before, after = (collector.point("longthread_view_tokens", stage=each).value for each in ("before", "after"))
    assert 0 < before <= after + before
    assert collector.point("longthread_model_calls", outcome="ok").value == 3
    calls = collector.named("chat")
    for kind in ("input", "output"):
        used = sum(each.attributes[f"gen_ai.usage.{kind}_tokens"] for each in calls)
        assert collector.point(f"gen_ai.client.inference.usage.{kind}_tokens").value == used
        assert collector.point("gen_ai.client.token.usage", gen_ai__token__type=kind).value == used
        assert collector.point("longthread_tokens", direction=kind).value == used
    assert collector.point("gen_ai.client.operation.duration").count == 3
    assert collector.point("gen_ai.execute_tool.duration", gen_ai__tool__name="run_sql").count == 1
    assert collector.point("gen_ai.invoke_agent.duration", gen_ai__agent__name="analyst").count == 1
    for point in collector.points.values():
        assert not {"gen_ai.conversation.id", "longthread.run.id"} & point.attributes.keys()


@pytest.mark.parametrize("settings", [{}, {"otel_disabled": True}])
def test_off_nothing_is_sent_and_models_get_no_header(serve: Any, settings: dict[str, Any]) -> None:
    with collecting() as collector, ProviderEmulator(SCRIPT) as emulator:
        off = {"otel_endpoint": collector.url, **settings} if settings else {}
        model = {"model": "openai:emulated", "openai_base_url": emulator.base_url, "openai_api_key": KEY}
        running = serve(None, **model, **off)
        running.client.headers["traceparent"] = TRACEPARENT
        running.answer("How many?")
        assert not is_traced() and current_span() is OFF
        running.stop()
    assert not collector.paths
    assert not any("traceparent" in each.headers for each in emulator.requests)


def test_a_span_that_nobody_gets_is_one_object_for_all() -> None:
    with span("chat", "a", {}) as one, span("retrieval", "", {}) as other:
        assert one is other is OFF
    assert Settings.of().sends_telemetry is False
