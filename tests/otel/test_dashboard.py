"""The dashboard asks for metrics that there are, by labels that they have."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from longthread import metrics
from longthread.server.routes import health

ROOT = Path(__file__).parents[2]
BOARD: dict[str, Any] = json.loads((ROOT / "deploy/grafana/longthread.json").read_text("utf-8"))
PANELS = [panel for panel in BOARD["panels"] if panel["type"] != "row"]
GAUGES = set(re.findall(r'gauge\("(\w+)"', Path(health.__file__).read_text("utf-8")))
_ENDS = {"counter": [""], "gauge": [""], "histogram": ["_bucket", "_sum", "_count"]}
LABELS = {metric.name + end: {*metric.labels, "le"} for metric in metrics._METRICS for end in _ENDS[metric.kind]}
LABELS |= {name: set() for name in GAUGES}


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])
def test_each_query_names_a_metric_and_its_labels(panel: dict[str, Any]) -> None:
    for target in panel["targets"]:
        asked = re.findall(r"longthread_\w+", target["expr"])
        assert asked and set(asked) <= LABELS.keys(), set(asked) - LABELS.keys()
        known = set.union(*(LABELS[name] for name in asked))
        grouped = {name.strip() for group in re.findall(r"by \(([^)]*)\)", target["expr"]) for name in group.split(",")}
        chosen = set(re.findall(r'[{,]\s*(\w+)="', target["expr"]))
        shown = set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
        assert grouped | chosen | shown <= known
        assert target["expr"].count("(") == target["expr"].count(")")


def test_each_counted_metric_is_on_it() -> None:
    queries = [each["expr"] for panel in PANELS for each in panel["targets"]]
    asked = {name for query in queries for name in re.findall(r"longthread_\w+", query)}
    missing = {metric.name for metric in metrics._METRICS if not any(name.startswith(metric.name) for name in asked)}
    assert missing == set()
    assert GAUGES - asked == {"longthread_runs_wait"}


def test_each_metric_is_in_the_docs() -> None:
    page = (ROOT / "docs/how-to/observability.md").read_text("utf-8")
    assert {name for name in {each.name for each in metrics._METRICS} | GAUGES if f"`{name}" not in page} == set()


def test_panels_do_not_lie_on_each_other() -> None:
    cells = set[tuple[int, int]]()
    for panel in BOARD["panels"]:
        place = panel["gridPos"]
        own = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert not own & cells and place["x"] + place["w"] <= 24
        cells |= own
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(BOARD["panels"])
