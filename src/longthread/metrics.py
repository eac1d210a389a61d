"""What this process has counted, in Prometheus' text format.

These are a few lines of our own: `prometheus-client` brings a registry, locks and a mode for several processes, and
what is needed of it is a dictionary and a loop. No label holds what a user wrote; the name of a model is such a text.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import accumulate
from time import perf_counter
from typing import Any

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper bounds of the buckets of a time."""
_Labels = tuple[Any, ...]


class Metric:
    """One number for each combination of its labels' values."""

    def __init__(self, name: str, kind: str, about: str, labels: tuple[str, ...] = ()) -> None:
        self.name, self.kind, self.about, self.labels = name, kind, about, labels
        self._values: dict[_Labels, float] = {} if labels else {(): 0}
        _METRICS.append(self)

    def add(self, *labels: Any, by: float = 1) -> None:
        self._values[labels] = self._values.get(labels, 0) + by
        if _listener is not None:
            _listener(self, labels, by)

    def lines(self) -> Iterator[str]:
        """Yield it as text."""
        yield self._head
        for labels, value in self._values.items():
            yield sample(self.name, zip(self.labels, labels, strict=True), value)

    @property
    def _head(self) -> str:
        return f"# HELP {self.name} {self.about}\n# TYPE {self.name} {self.kind}\n"


class Timer(Metric):
    """A histogram of seconds, with one label or none."""

    def __init__(self, name: str, about: str, labels: tuple[str, ...] = ()) -> None:
        super().__init__(name, "histogram", about, labels)
        self._buckets: dict[_Labels, list[int]] = {}

    def note(self, *labels: Any, seconds: float) -> None:
        counts = self._buckets.get(labels)
        if counts is None:
            counts = self._buckets[labels] = [0] * (len(SECONDS) + 1)
        counts[bisect_left(SECONDS, seconds)] += 1
        self.add(*labels, by=seconds)

    @contextmanager
    def time_block(self, *labels: Any) -> Iterator[None]:
        """Note how long the block takes, however it ends."""
        began = perf_counter()
        try:
            yield
        finally:
            self.note(*labels, seconds=perf_counter() - began)

    def lines(self) -> Iterator[str]:
        yield self._head
        for labels, counts in self._buckets.items():
            named = list(zip(self.labels, labels, strict=True))
            for most, count in zip((*SECONDS, "+Inf"), accumulate(counts), strict=True):
                yield sample(f"{self.name}_bucket", [*named, ("le", most)], count)
            yield sample(f"{self.name}_sum", named, self._values[labels])
            yield sample(f"{self.name}_count", named, sum(counts))


def sample(name: str, labels: Iterable[tuple[str, Any]], value: float) -> str:
    """Return one line."""
    named = ",".join(f'{label}="{text}"' for label, text in labels)
    return f"{name}{{{named}}} {value}\n" if named else f"{name} {value}\n"


def gauge(name: str, about: str, value: float) -> str:
    """Return a number that is looked up when it is asked for."""
    return f"# HELP {name} {about}\n# TYPE {name} gauge\n{name} {value}\n"


def text() -> str:
    """Return all that was counted."""
    return "".join(line for metric in _METRICS for line in metric.lines())


MetricListener = Callable[[Metric, _Labels, float], None]
"""Called with each number that is added to a metric, or noted by a timer."""
_METRICS: list[Metric] = []
_listener: MetricListener | None = None


def forward_to(listener: MetricListener | None) -> None:
    """Call a listener with all that is counted from now on; None: none."""
    global _listener
    _listener = listener


HTTP_REQUESTS = Metric(
    "longthread_http_requests_total", "counter", "Requests by route and status.", ("method", "route", "status")
)
STREAMS = Metric("longthread_streams", "gauge", "Event streams that clients have open.")
STORE_SECONDS = Timer("longthread_store_seconds", "How long transactions took, with what was done in them.", ("kind",))
CLAIMS = Metric("longthread_claims_total", "counter", "Runs of dead or stopped processes that this one went on with.")
RUNS = Timer("longthread_run_seconds", "How long this process executed runs, by how each was left.", ("status",))
JOBS = Metric("longthread_jobs_total", "counter", "Background jobs by kind and by how they ended.", ("kind", "outcome"))
QUEUE_SECONDS = Timer("longthread_queue_seconds", "How long the questions had waited that this process has begun.")
MODEL_CALLS = Metric("longthread_model_calls_total", "counter", "Requests to models, by how they ended.", ("outcome",))
MODEL_SECONDS = Timer("longthread_model_seconds", "How long requests to models took.")
TOKENS = Metric("longthread_tokens_total", "counter", "Tokens that providers reported.", ("direction",))
VIEWS = Metric("longthread_views_total", "counter", "Views of model calls: planned, or grown at the end.", ("how",))
VIEW_TOKENS = Metric(
    "longthread_view_tokens_total", "counter", "Estimated tokens of messages before and after the view.", ("stage",)
)
VIEW_MESSAGES = Metric("longthread_view_messages_total", "counter", "Messages by how views showed them.", ("how",))
SUMMARIES = Metric("longthread_summaries_total", "counter", "Summaries written, by a model or as a digest.", ("by",))
PRUNED = Metric("longthread_pruned_messages_total", "counter", "Messages that moved from windows into summaries.")
