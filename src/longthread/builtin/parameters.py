"""The arguments of the built-in tools, as people see them where no run is under way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from longthread.builtin.chart import CHART_PARAMETERS
from longthread.builtin.memories import FORGET, FORGET_PARAMETERS, REMEMBER, REMEMBER_PARAMETERS
from longthread.builtin.recall import offered
from longthread.model.builtin import CHART, QUERY_METRIC, RECALL_TOOL
from longthread.tools.analysis.limits import Limits
from longthread.tools.analysis.toolbox import analysis_parameters
from longthread.tools.semantic.query_metric import METRIC_PARAMETERS


def builtin_parameters() -> Mapping[str, Mapping[str, Any]]:
    """The JSON Schema of the arguments of each built-in tool, by name. A source may allow fewer rows."""
    return {
        **analysis_parameters("the source's dialect", Limits().sample_rows),
        QUERY_METRIC: METRIC_PARAMETERS,
        CHART: CHART_PARAMETERS,
        RECALL_TOOL: offered().parameters,
        REMEMBER: REMEMBER_PARAMETERS,
        FORGET: FORGET_PARAMETERS,
    }
