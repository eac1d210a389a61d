"""JSON objects in a text that a model wrote, read despite the mistakes that models make."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from itertools import accumulate, islice
from typing import Any

_OPENS_OBJECT = re.compile(r"\{\s*(?:[\"'“]|$)")
_STRING = r'"[^"\\]*(?:\\.[^"\\]*)*"'
_TOKEN = re.compile(rf'{_STRING}|["{{}}]', re.DOTALL)
_TRAILING_COMMA = re.compile(rf"({_STRING})|,(?=\s*[}}\]])", re.DOTALL)
_BRACKET = re.compile(rf"{_STRING}|[{{}}\[\]]", re.DOTALL)
_ATTEMPTS = 500  # objects read in one reply, against text that is made of nothing else
_NESTING = 100  # levels; far above any call, far below the interpreter's recursion limit


def scan(body: str, found: list[tuple[str, dict[str, Any]]]) -> tuple[str, str]:
    """Append the outermost objects of `body` to `found`, each with the text before it. Returns the text outside
    them, and what is wrong with the one that cannot be read ("" if none)."""
    rest: list[str] = []
    broken = ""
    done = 0
    for start in _starts(body):
        if start < done:
            continue
        end = end_of_object(body, start)
        if end is None:
            # An object nested in half an object is not the whole.
            broken = "The JSON object is not closed: a quote, a bracket or a brace is missing."
            break
        data = decode(body[start:end])
        if isinstance(data, str):
            broken = f"The JSON object cannot be read: {data}."
        else:
            found.append((body[done:start], data))
        rest.append(body[done : start if isinstance(data, dict) else end])
        done = end
    rest.append(body[done:])
    return "".join(rest), broken


def _starts(body: str) -> Iterator[int]:
    return (match.start() for match in islice(_OPENS_OBJECT.finditer(body), _ATTEMPTS))


def end_of_object(body: str, start: int) -> int | None:
    """Return the index after the brace that closes the one at `start`; None if it is never closed."""
    depth = 0
    for token in _TOKEN.finditer(body, start):
        if token[0] == '"':
            return None
        depth += {"{": 1, "}": -1}.get(token[0], 0)
        if depth == 0:
            return token.end()
    return None


def decode(text: str) -> dict[str, Any] | str:
    """Return the object of `text`, or why it cannot be read."""
    if _nesting(text) > _NESTING:
        return "it is nested too deeply"
    try:
        try:
            data = _DECODER.decode(text)
        except json.JSONDecodeError:
            data = _DECODER.decode(_without_trailing_commas(text))
        json.dumps(data, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        return f"{error.msg} at line {error.lineno}, column {error.colno}"
    except UnicodeEncodeError:
        return "it holds half of a surrogate pair"
    except ValueError as error:
        return str(error).rstrip(".")
    return data if isinstance(data, dict) else "it is not an object"


def _nesting(text: str) -> int:
    steps = {"{": 1, "[": 1, "}": -1, "]": -1}
    return max(accumulate(steps.get(match[0], 0) for match in _BRACKET.finditer(text)), default=0)


def _without_trailing_commas(text: str) -> str:
    return _TRAILING_COMMA.sub(lambda match: match[1] or "", text)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON value")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"the number {text[:20]} is too large")
    return number


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f'the key "{next(name for name in names if names.count(name) > 1)}" appears twice')
    return data


_DECODER = json.JSONDecoder(strict=False, object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite)
