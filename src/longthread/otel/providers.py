"""Sends spans and metrics to a collector by OTLP over HTTP, in the background: an unreachable one is only logged."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib.metadata import version
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import Meter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.util.re import parse_env_headers

from longthread.metrics import SECONDS, Metric, forward_to
from longthread.otel.spans import NAME, OtelTracer
from longthread.settings import Settings
from longthread.telemetry import set_tracer

_EXPORTERS = "opentelemetry.exporter.otlp.proto.http"
_logger = logging.getLogger(__name__)


class Export:
    """The providers of this process. They are its own: what the application has set up stays as it is."""

    def __init__(self, settings: Settings) -> None:
        own = version(NAME)
        resource = Resource.create({SERVICE_NAME: settings.otel_service_name, SERVICE_VERSION: own})
        logging.getLogger("opentelemetry.util.re").setLevel(logging.CRITICAL)  # it logs wrong headers, with their keys
        headers = _read_headers(settings)
        traces, metrics = _address(settings, "traces"), _address(settings, "metrics")
        self._tracing = TracerProvider(resource=resource, shutdown_on_exit=False)
        if traces:
            self._tracing.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(traces, headers=headers)))
        readers = [PeriodicExportingMetricReader(OTLPMetricExporter(metrics, headers=headers))] if metrics else []
        self._metering = MeterProvider(metric_readers=readers, resource=resource, shutdown_on_exit=False)
        meter = self._metering.get_meter(NAME, own)
        self._warning = _OneWarning([each for each in (traces, metrics) if each])
        set_tracer(OtelTracer(self._tracing.get_tracer(NAME, own), meter, captures=settings.otel_contents))
        forward_to(ForwardedMetrics(meter).add if metrics else None)

    def stop(self, done: Callable[[], object]) -> None:
        """Begin no spans any more, and send what there is in a thread, which keeps no process from ending. It calls
        `done`."""
        set_tracer(None)
        forward_to(None)
        Thread(target=self._shut, args=[done], name="the end of telemetry", daemon=True).start()

    def _shut(self, done: Callable[[], object]) -> None:
        try:
            self._tracing.shutdown()
            self._metering.shutdown()
        except Exception as error:  # noqa: BLE001 - whatever fails here, nothing depends on it
            _logger.debug("Telemetry did not end well: %s", error)
        finally:
            self._warning.close()
            with suppress(RuntimeError):  # nobody waits any more
                done()


class ForwardedMetrics:
    """Records what `/metrics` counts with instruments of OpenTelemetry's, under names that Prometheus writes alike."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._instruments: dict[Metric, Any] = {}

    def add(self, metric: Metric, labels: tuple[Any, ...], by: float) -> None:
        if metric not in self._instruments:
            self._instruments[metric] = self._make_instrument(metric)
        self._instruments[metric](by, dict(zip(metric.labels, labels, strict=True)))

    def _make_instrument(self, metric: Metric) -> Any:
        if metric.kind == "histogram":
            bounds = list(SECONDS)
            return self._meter.create_histogram(
                metric.name, "s", metric.about, explicit_bucket_boundaries_advisory=bounds
            ).record
        if metric.kind == "gauge":
            return self._meter.create_up_down_counter(metric.name, "", metric.about).add
        return self._meter.create_counter(metric.name.removesuffix("_total"), "", metric.about).add


def _address(settings: Settings, signal: str) -> str | None:
    """Return where a signal is sent to; None: nowhere."""
    own = settings.otel_traces_endpoint if signal == "traces" else settings.otel_metrics_endpoint
    return own or (f"{settings.otel_endpoint}/v1/{signal}" if settings.otel_endpoint else None)


def _read_headers(settings: Settings) -> Mapping[str, str] | None:
    given = settings.otel_headers
    return parse_env_headers(given.get_secret_value(), liberal=True) if given is not None else None


class _OneWarning(logging.Filter):
    """Says once that a collector is not reached: the exporters say it for each batch, with a traceback."""

    def __init__(self, addresses: list[str]) -> None:
        super().__init__()
        parts = urlsplit(addresses[0])
        self._place = f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}"
        self._has_warned = False
        self._loggers = [logging.getLogger(f"{_EXPORTERS}.{each}") for each in ("trace_exporter", "metric_exporter")]
        self._loggers.append(logging.getLogger("opentelemetry.sdk._shared_internal"))
        for each in self._loggers:
            each.addFilter(self)

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno >= logging.WARNING and not self._has_warned:
            self._has_warned = True
            _logger.warning("Traces and metrics cannot be sent to %s. Nothing else is affected.", self._place)
        return False

    def close(self) -> None:
        for each in self._loggers:
            each.removeFilter(self)
