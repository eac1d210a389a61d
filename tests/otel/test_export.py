"""The export to a collector: it is in nobody's way, and what it needs is an extra."""

from __future__ import annotations

import logging
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.otel.collector import collecting

from longthread.errors import InvalidInput
from longthread.otel import export, spans
from longthread.otel.export import exporting
from longthread.settings import Settings
from longthread.telemetry import OFF, begin_span, is_traced, join_trace, span

CALLER = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


async def test_spans_are_sent_when_the_last_user_ends() -> None:
    with collecting() as collector:
        settings = Settings.of(otel_endpoint=collector.url)
        async with exporting(settings):
            async with exporting(settings):
                with span("chat", "m", {"gen_ai.request.model": "m", "nothing": None}):
                    pass
            assert is_traced()
        assert not is_traced()
        [found] = collector.spans
    assert (found.name, dict(found.attributes)) == (
        "chat m",
        {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"},
    )


async def test_a_collector_that_is_not_there_is_said_once_and_delays_no_end(caplog: pytest.LogCaptureFixture) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # it does not listen
        port = taken.getsockname()[1]
        began = time.monotonic()
        async with exporting(Settings.of(otel_endpoint=f"http://ada:password@127.0.0.1:{port}")):
            for _ in range(3):
                with span("chat", "m", {}):
                    pass
        assert time.monotonic() - began < export.FLUSH_SECONDS + 3
    warnings = [each for each in caplog.records if each.levelno >= logging.WARNING]
    assert [each.getMessage() for each in warnings] in (
        [f"Traces and metrics cannot be sent to http://127.0.0.1:{port}. Nothing else is affected."],
        [],  # the exporter tries again for longer than the end waits
    )
    assert "password" not in caplog.text


async def test_a_wrong_variable_of_the_sdks_fails_no_run(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "0")
    async with exporting(Settings.of(otel_endpoint="http://127.0.0.1:9")):
        assert not is_traced()
    assert "No traces and metrics are sent: ValueError" in caplog.text


async def test_a_collector_for_traces_alone_gets_no_metrics() -> None:
    with collecting() as collector:
        async with exporting(Settings.of(otel_traces_endpoint=f"{collector.url}/v1/traces")):
            with span("chat", "m", {}):
                pass
    assert collector.paths == ["/v1/traces"]


async def test_a_callers_trace_is_gone_on_with_and_a_wrong_one_is_not() -> None:
    with collecting() as collector:
        async with exporting(Settings.of(otel_endpoint=collector.url, otel_service_name="mine")):
            with join_trace(CALLER), span("retrieval", "", {}) as one:
                assert one.headers["traceparent"].startswith(CALLER[:36])
                with join_trace(CALLER.replace("0af", "fff")), span("chat", "m", {}):
                    pass
            with join_trace("00-nonsense"), span("retrieval", "", {}):
                pass
    chat, inner, alone = collector.spans
    assert (inner.trace_id, inner.parent_id, chat.parent_id) == (CALLER[3:35], CALLER[36:52], inner.id)
    assert alone.trace_id != inner.trace_id and not alone.parent_id
    assert collector.resource["service.name"] == "mine"


@pytest.mark.parametrize(("sampler", "sent"), [(None, ["retrieval"]), ("always_on", ["chat m", "retrieval"])])
async def test_what_a_caller_does_not_sample_is_counted_and_not_sent_unless_all_is(
    monkeypatch: pytest.MonkeyPatch, sampler: str | None, sent: list[str]
) -> None:
    if sampler is not None:
        monkeypatch.setenv("OTEL_TRACES_SAMPLER", sampler)
    with collecting() as collector:
        async with exporting(Settings.of(otel_endpoint=collector.url)):
            with join_trace(f"{CALLER[:-2]}00"), span("chat", "m", {"gen_ai.request.model": "m"}) as unsampled:
                assert unsampled.headers["traceparent"][:36] == CALLER[:36]
                assert unsampled.headers["traceparent"].endswith("00" if sampler is None else "01")
            with span("retrieval", "", {}):
                pass
    assert [each.name for each in collector.spans] == sent
    assert collector.point("gen_ai.client.inference.duration").count == 1


async def test_names_from_outside_have_a_bound_and_fail_no_other_span(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spans, "_MOST_MODELS", 2)
    names = ["m" * 10_000, "half \ud83d", "third", "fourth"]
    with collecting() as collector:
        async with exporting(Settings.of(otel_endpoint=collector.url)):
            for name in names:
                with span("chat", name, {"gen_ai.request.model": name}) as chat:
                    chat.note({"gen_ai.response.id": name})
    bound = ["m" * 200, "half ?", "third", "fourth"]
    assert [each.name for each in collector.spans] == [f"chat {name}" for name in bound]
    for name in ("gen_ai.request.model", "gen_ai.response.id"):
        assert [each.attributes[name] for each in collector.spans] == bound
    for name, count in ((bound[0], 1), (bound[1], 1), ("_OTHER", 2)):
        assert collector.point("gen_ai.client.inference.duration", gen_ai__request__model=name).count == count


async def test_what_begins_in_another_work_is_linked_and_not_below_it() -> None:
    with collecting() as collector:
        async with exporting(Settings.of(otel_endpoint=collector.url)):
            with span("invoke_agent", "one", {}), span("invoke_agent", "two", {}, is_first=True) as two:
                begin_span("chat", "m", {}, parent=two).end()
    chat, second, first = collector.spans
    assert second.trace_id != first.trace_id and second.links == [first.id]
    assert (chat.trace_id, chat.parent_id) == (second.trace_id, second.id)


def test_without_the_extra_it_says_what_to_install_and_works(tmp_path: Path) -> None:
    code = f"""
import sys
sys.modules.update(dict.fromkeys(["opentelemetry.sdk", "opentelemetry.exporter"]))
from longthread.cli.start import main
store = ["--database", {str(tmp_path / "c.db")!r}]
sys.argv = ["longthread", "ask", "How many rockets are there?", "--source", "demo", "--model", "demo", *store]
main()
"""
    ended = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={
            "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9",
            "PYTHONPATH": ":".join(sys.path),
            "HOME": str(tmp_path),
        },
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert "Demo model" in ended.stdout + ended.stderr
    assert ended.stderr.count("pip install 'longthread[otel]'") == 1


def test_a_command_sends_what_it_did_before_it_ends(tmp_path: Path) -> None:
    with collecting() as collector:
        code = "from longthread.cli.start import main; main()"
        ended = subprocess.run(
            [sys.executable, "-c", code, "ask", "How many rockets are there?", "--source", "demo", "--model", "demo"],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={
                "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
                "LONGTHREAD_DATA_DIR": str(tmp_path),
                "PYTHONPATH": ":".join(sys.path),
                "HOME": str(tmp_path),
            },
            timeout=120,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
    assert [each.name for each in collector.named("invoke_agent")] == ["invoke_agent analyst"]
    assert collector.point("longthread_run_seconds", status="finished").count == 1


def test_off_a_command_loads_no_opentelemetry(tmp_path: Path) -> None:
    code = """
import sys
from longthread.cli.start import main
sys.argv = ["longthread", "threads", "list", "--database", "c.db"]
try:
    main()
finally:
    print("loaded:", [name for name in sys.modules if name.startswith("opentelemetry")])
"""
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, timeout=120, check=False
    )
    assert ended.stdout.rstrip().endswith("loaded: []"), ended.stdout + ended.stderr


async def test_an_application_that_has_set_up_opentelemetry_gets_the_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    assert begin_span("chat", "m", {}) is OFF
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    monkeypatch.setattr("longthread.telemetry._adopted", None)
    own = trace.get_tracer("its.own", tracer_provider=provider)
    with own.start_as_current_span("request") as request, span("chat", "m", {"gen_ai.request.model": "m"}) as begun:
        assert not begun.captures
    monkeypatch.setattr("longthread.telemetry._adopted", None)
    chat, _ = exporter.get_finished_spans()
    assert chat.name == "chat m" and chat.parent is not None
    assert chat.parent.span_id == request.get_span_context().span_id


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OTEL_EXPORTER_OTLP_HEADERS", "Bearer sk-SECRET"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "a=1,Authorization: Bearer sk-SECRET"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "htp://ada:SECRET@collector"),
    ],
)
def test_a_wrong_header_or_address_is_refused_without_its_secret(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(InvalidInput, match=f"{name} is .*; allowed is") as refused:
        Settings.load(env_file=None)
    assert "SECRET" not in str(refused.value)


@pytest.mark.parametrize(
    ("value", "captures"),
    [
        ("true", True),
        ("false", False),
        ("SPAN_ONLY", True),
        ("span_and_event", True),
        ("NO_CONTENT", False),
        ("EVENT_ONLY", False),
    ],
)
def test_the_settings_are_opentelemetrys(monkeypatch: pytest.MonkeyPatch, value: str, captures: bool) -> None:
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", value)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://ada:password@collector:4318/")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Basic hunter2")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "analysts")
    settings = Settings.load(env_file=None)
    assert (settings.otel_contents, settings.otel_service_name, settings.sends_telemetry) == (
        captures,
        "analysts",
        True,
    )
    assert settings.otel_endpoint == "http://ada:password@collector:4318"
    for shown in (repr(settings), settings.model_dump_json()):
        assert "password" not in shown and "hunter2" not in shown
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    assert not Settings.load(env_file=None).sends_telemetry
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4317")
    with pytest.raises(InvalidInput, match="OTEL_EXPORTER_OTLP_ENDPOINT"):
        Settings.load(env_file=None)
