"""A collector on a real socket: it takes OTLP over HTTP, and decodes it with the published forms."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

KINDS = {1: "internal", 3: "client"}


@dataclass(frozen=True)
class GotSpan:
    name: str
    kind: str
    trace_id: str
    id: str
    parent_id: str
    attributes: Mapping[str, Any]
    failed: bool
    status: str
    links: list[str]
    events: int


@dataclass(frozen=True)
class GotPoint:
    """A number, or the count and the sum of a histogram."""

    name: str
    unit: str
    attributes: Mapping[str, Any]
    value: float
    count: int


@dataclass
class Collector:
    url: str = ""
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    resource: dict[str, Any] = field(default_factory=dict)
    spans: list[GotSpan] = field(default_factory=list)
    points: dict[tuple[str, str], GotPoint] = field(default_factory=dict)
    answers: int = 200

    def take(self, path: str, headers: Mapping[str, str], body: bytes) -> None:
        self.headers.append({name.lower(): value for name, value in headers.items()})
        self.paths.append(path)
        self.bodies.append(body)
        if path == "/v1/traces":
            for each in ExportTraceServiceRequest.FromString(body).resource_spans:
                self.resource = _attributes(each.resource.attributes)
                self.spans += [_span(span) for scope in each.scope_spans for span in scope.spans]
        else:
            for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                for scope in resource.scope_metrics:
                    for point in (point for metric in scope.metrics for point in _points(metric)):
                        self.points[point.name, json.dumps(point.attributes, sort_keys=True)] = point

    def named(self, begin: str) -> list[GotSpan]:
        return [each for each in self.spans if each.name.startswith(begin)]

    def point(self, name: str, **attributes: Any) -> GotPoint:
        """The one point of a metric that has these attributes."""
        wanted = {key.replace("__", "."): value for key, value in attributes.items()}
        found = [
            each for each in self.points.values() if each.name == name and wanted.items() <= each.attributes.items()
        ]
        assert len(found) == 1, (name, wanted, [each for each in self.points.values() if each.name == name])
        return found[0]

    def children(self, of: GotSpan) -> list[str]:
        return sorted(each.name for each in self.spans if each.parent_id == of.id)


@contextmanager
def collecting(answers: int = 200) -> Iterator[Collector]:
    collector = Collector(answers=answers)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            collector.take(self.path, dict(self.headers.items()), body)
            self.send_response(collector.answers)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, name="collector", daemon=True)
    thread.start()
    collector.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield collector
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


def _span(span: Any) -> GotSpan:
    return GotSpan(
        span.name,
        KINDS.get(span.kind, str(span.kind)),
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        _attributes(span.attributes),
        span.status.code == 2,
        span.status.message,
        [link.span_id.hex() for link in span.links],
        len(span.events),
    )


def _points(metric: Any) -> Iterator[GotPoint]:
    if metric.HasField("histogram"):
        for point in metric.histogram.data_points:
            yield GotPoint(metric.name, metric.unit, _attributes(point.attributes), point.sum, point.count)
    elif metric.HasField("sum"):
        for point in metric.sum.data_points:
            value = point.as_int if point.HasField("as_int") else point.as_double
            yield GotPoint(metric.name, metric.unit, _attributes(point.attributes), value, 1)


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    found = getattr(value, kind)
    return [_value(each) for each in found.values] if kind == "array_value" else found
