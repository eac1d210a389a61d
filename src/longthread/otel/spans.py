"""Spans, and the metrics of the conventions that follow from them, by OpenTelemetry's API.

The names are those of the GenAI conventions v0.1.0. `gen_ai.client.operation.duration` and `gen_ai.client.token.usage`
are of the versions before, and stay: most dashboards ask for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from time import perf_counter
from typing import Any

from opentelemetry import metrics, trace
from opentelemetry.context import Context, attach, detach, get_current
from opentelemetry.metrics import Meter
from opentelemetry.trace import Link, SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from longthread.telemetry import OFF, TRACEPARENT, Operation, SpanAttributes, TraceSpan, current_span

NAME = "longthread"
"""The instrumentation scope, which is the package too."""
_SECONDS = [0.01 * 2**n for n in range(14)]
_TOKENS = [4**n for n in range(14)]
_OF_CALLS = (
    "gen_ai.operation.name",
    "gen_ai.provider.name",
    "gen_ai.request.model",
    "gen_ai.response.model",
    "server.address",
    "server.port",
)
"""The attributes of a model call that its metrics have, none of which tells a conversation."""
_MODELS = ("gen_ai.request.model", "gen_ai.response.model")
_FROM_OUTSIDE = {*_MODELS, "gen_ai.response.id", "server.address"}
"""Attributes that a client or a provider fills as it likes."""
_LONGEST = 200
_MOST_MODELS = 200
"""How many names of models the metrics of a process tell apart; all others are `_OTHER`."""
_OTHER = "_OTHER"
_USAGE = {
    "input": "gen_ai.usage.input_tokens",
    "output": "gen_ai.usage.output_tokens",
    "cache_read": "gen_ai.usage.cache_read.input_tokens",
}
_PROPAGATOR = TraceContextTextMapPropagator()


class GenAiMetrics:
    """What the conventions want measured."""

    def __init__(self, meter: Meter) -> None:
        def seconds(name: str, about: str) -> Any:
            return meter.create_histogram(name, "s", about, explicit_bucket_boundaries_advisory=_SECONDS)

        about = "How long a call of a model took, with its retries."
        self._calls = [seconds(f"gen_ai.client.{kind}.duration", about) for kind in ("inference", "operation")]
        self._others = {
            "execute_tool": (seconds("gen_ai.execute_tool.duration", "How long a tool call took."), "gen_ai.tool.name"),
            "invoke_agent": (seconds("gen_ai.invoke_agent.duration", "How long a run took."), "gen_ai.agent.name"),
        }
        self._usage = meter.create_histogram(
            "gen_ai.client.token.usage",
            "{token}",
            "Tokens of a call of a model.",
            explicit_bucket_boundaries_advisory=_TOKENS,
        )
        names = {"input": "input_tokens", "output": "output_tokens", "cache_read": "cache_read.input_tokens"}
        self._counters = {
            kind: meter.create_counter(f"gen_ai.client.inference.usage.{name}", "{token}", f"Tokens: {kind}.")
            for kind, name in names.items()
        }

        self._models = set[str]()

    def record(self, operation: Operation, attributes: Mapping[str, Any], seconds: float) -> None:
        """Record a span that has ended."""
        failed = {name: attributes[name] for name in ("error.type",) if name in attributes}
        if operation == "chat":
            about = {name: attributes[name] for name in _OF_CALLS if name in attributes}
            about |= {name: self._name_model(about[name]) for name in _MODELS if name in about}
            for duration in self._calls:
                duration.record(seconds, about | failed)
            for kind, name in _USAGE.items():
                if name in attributes:
                    self._counters[kind].add(attributes[name], about)
                    if kind != "cache_read":  # which is part of the input
                        self._usage.record(attributes[name], about | {"gen_ai.token.type": kind})
        elif operation in self._others:
            duration, label = self._others[operation]
            about = {"gen_ai.operation.name": operation}
            about |= {label: attributes[label]} if label in attributes else {}
            duration.record(seconds, about | failed)

    def _name_model(self, name: Any) -> Any:
        """Return how metrics call a model: each name has numbers of its own for as long as the process lives."""
        if name not in self._models and len(self._models) >= _MOST_MODELS:
            return _OTHER
        self._models.add(name)
        return name


class OtelSpan:
    """A span of OpenTelemetry's. What is noted is also kept for the metrics, which count spans that no one samples."""

    is_on = True

    def __init__(
        self, inner: trace.Span, operation: Operation, known: dict[str, Any], metrics: GenAiMetrics, *, captures: bool
    ) -> None:
        self.inner = inner
        self._operation = operation
        self._known = known
        self._metrics = metrics
        self.captures = captures and inner.is_recording()
        self._began = perf_counter()

    @property
    def headers(self) -> Mapping[str, str]:
        found = dict[str, str]()
        _PROPAGATOR.inject(found, trace.set_span_in_context(self.inner, Context()))
        return {TRACEPARENT: found[TRACEPARENT]} if TRACEPARENT in found else {}

    def note(self, attributes: SpanAttributes) -> None:
        told = _bound_attributes(attributes)
        self._known |= told
        self.inner.set_attributes(told)

    def fail(self, error: BaseException | str) -> None:
        self.note({"error.type": error if isinstance(error, str) else type(error).__name__})
        self.inner.set_status(Status(StatusCode.ERROR))

    def end(self) -> None:
        self.inner.end()
        self._metrics.record(self._operation, self._known, perf_counter() - self._began)


class OtelTracer:
    """Begins spans of OpenTelemetry's."""

    def __init__(self, tracer: trace.Tracer, meter: Meter, *, captures: bool) -> None:
        self._tracer = tracer
        self._metrics = GenAiMetrics(meter)
        self._captures = captures

    def begin(
        self, operation: Operation, name: str, attributes: SpanAttributes, *, parent: TraceSpan | None, is_first: bool
    ) -> TraceSpan:
        told = {"gen_ai.operation.name": operation}
        told |= _bound_attributes(attributes)
        context, links = get_current(), list[Link]()
        if isinstance(parent, OtelSpan):
            context = trace.set_span_in_context(parent.inner)
        elif is_first and current_span() is not OFF:
            links = [Link(trace.get_current_span().get_span_context())]
            context = Context()
        kind = SpanKind.CLIENT if operation == "chat" else SpanKind.INTERNAL
        inner = self._tracer.start_span(f"{operation} {_bound_text(name)}".rstrip(), context, kind, told, links)
        return OtelSpan(inner, operation, told, self._metrics, captures=self._captures)

    @contextmanager
    def use(self, span: TraceSpan) -> Iterator[None]:
        assert isinstance(span, OtelSpan)
        token = attach(trace.set_span_in_context(span.inner))
        try:
            yield
        finally:
            detach(token)

    @contextmanager
    def receive(self, traceparent: str) -> Iterator[None]:
        if trace.get_current_span().get_span_context().is_valid:
            yield
            return
        token = attach(_PROPAGATOR.extract({TRACEPARENT: traceparent}))
        try:
            yield
        finally:
            detach(token)


def _bound_attributes(attributes: SpanAttributes) -> dict[str, Any]:
    """Return the attributes that there are, those from outside no longer than a name is."""
    told = {name: value for name, value in attributes.items() if value is not None}
    return told | {name: _bound_text(told[name]) for name in _FROM_OUTSIDE if name in told}


def _bound_text(text: Any) -> str:
    """Return a text that comes from outside, cut, and such that it can be sent: half a character fails all spans."""
    return str(text)[:_LONGEST].encode("utf-8", "replace").decode()


def find_own_tracer() -> OtelTracer | None:
    """Return the tracer of the application's own OpenTelemetry; None: it has set up none. No contents go there."""
    provider = trace.get_tracer_provider()
    if isinstance(provider, trace.ProxyTracerProvider | trace.NoOpTracerProvider):
        return None
    own = version(NAME)
    return OtelTracer(provider.get_tracer(NAME, own), metrics.get_meter(NAME, own), captures=False)
