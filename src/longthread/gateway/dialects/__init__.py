"""The dialects of providers: how their requests, replies and errors are read and written. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from longthread.gateway.dialects.anthropic import Anthropic
from longthread.gateway.dialects.completions import Completions
from longthread.gateway.dialects.dialect import Dialect
from longthread.gateway.dialects.responses import Responses

DIALECTS: Mapping[str, Dialect] = {each.name: each for each in (Anthropic(), Responses(), Completions())}
