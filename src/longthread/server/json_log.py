"""Logs as JSON, one line an event, without contents.

A line has its fixed text, and of the values in it only numbers, ids and the classes of errors. Questions, SQL, answers
and what a provider or a database said stay out, whoever logs them.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import traceback
from datetime import UTC, datetime
from typing import Any

LEFT_OUT = "…"
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|call_\w{1,64}")


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {"time": at, "level": record.levelname.lower(), "logger": record.name}
        line["event"] = _event(record)
        line |= getattr(record, "fields", {})
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = record.exc_info[0].__name__
            frames = traceback.extract_tb(record.exc_info[2])
            line["at"] = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
        return json.dumps(line, ensure_ascii=False, default=lambda value: type(value).__name__)


def log_as_json() -> None:
    """Write the logs of this process to standard error as JSON: what Longthread tells, and others' warnings."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("longthread").setLevel(logging.INFO)
    logging.captureWarnings(capture=True)


def _event(record: logging.LogRecord) -> str:
    """Return the fixed text with the values that are no contents."""
    values = record.args if isinstance(record.args, tuple) else ()
    try:
        return str(record.msg) % tuple(_harmless(value) for value in values) if values else str(record.msg)
    except (TypeError, ValueError):  # `%d` of what is left out
        return str(record.msg)


def _harmless(value: Any) -> Any:
    if isinstance(value, int | float):
        return value
    if isinstance(value, BaseException):
        return type(value).__name__
    return value if isinstance(value, str) and _ID.fullmatch(value) else LEFT_OUT
