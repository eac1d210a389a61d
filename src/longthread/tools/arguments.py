"""Validates the arguments of a call by the tool's JSON Schema, and finds their placeholders `{{name}}` in templates.

Patterns are matched in linear time. Python's engine may take hours for one line (`^(a+)+$`).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from jsonschema import FormatChecker
from jsonschema.exceptions import SchemaError, ValidationError, relevance
from jsonschema.protocols import Validator
from jsonschema.validators import Draft202012Validator, extend, validator_for
from pydantic_core import SchemaError as PatternInvalid
from pydantic_core import SchemaValidator, core_schema
from referencing import Registry
from referencing.exceptions import Unresolvable

from longthread.errors import ArgumentsInvalid, LongthreadError, ToolInvalid
from longthread.tools.analysis.schema import close_names


def matches(pattern: str, text: str) -> bool:
    """Whether a text matches a pattern. One with look-around needs Python's engine."""
    linear = _linear(pattern)
    return linear.isinstance_python(text) if linear is not None else re.search(pattern, text) is not None


def harmless(schema: Any) -> Any:
    """Removes patterns from a server's schema that need Python's engine. The server checks them itself."""
    if isinstance(schema, list):
        return [harmless(one) for one in schema]
    if not isinstance(schema, Mapping):
        return schema
    checked = {
        key: {name: harmless(one) for name, one in value.items()}
        if key in _NAMING and isinstance(value, Mapping)
        else value
        if key in _VALUES
        else harmless(value)
        for key, value in schema.items()
        if not (key == "pattern" and isinstance(value, str) and _linear(value) is None)
    }
    if isinstance(schema.get("patternProperties"), Mapping):  # other keywords depend on it
        dropped = ("patternProperties", "unevaluatedProperties")
        return {key: value for key, value in checked.items() if key not in dropped} | {"additionalProperties": True}
    return checked


_NAMING = frozenset({"properties", "$defs", "definitions", "dependentSchemas"})
"""Keywords whose objects have free keys."""

_VALUES = frozenset({"enum", "const", "default", "examples"})


@lru_cache(maxsize=256)
def _linear(pattern: str) -> SchemaValidator | None:
    """A linear-time matcher; None if there is none of the same meaning."""
    if _has_set(pattern):
        return None
    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex", strict=True))
    except PatternInvalid:
        return None


def _has_set(pattern: str) -> bool:
    """Whether a character class has what other engines read as a nested class or operator."""
    inside = False
    for found in re.finditer(r"\\.|\[\^?\]?|\]|&&|--|~~", pattern, re.DOTALL):
        mark = found[0]
        if mark == "]":
            inside = False
        elif inside and not mark.startswith("\\"):
            return True
        elif mark.startswith("["):
            inside = True
    return False


_PROBLEMS = 3
"""Problems of one call in an error."""
_SHOWN = 80
"""Characters of a wrong value that are shown."""
_FORMATS = FormatChecker(["date"])
"""Formats that are enforced: with an invalid date some databases match every row."""
_OPEN = frozenset({"additionalProperties", "unevaluatedProperties", "patternProperties", "propertyNames",
                   "allOf", "anyOf", "oneOf", "if", "$ref", "$dynamicRef", "dependentSchemas"})  # fmt: skip
"""Keywords that allow other names than `properties`."""
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


def add_tool_name(error: LongthreadError, tool: str) -> LongthreadError:
    """Adds the tool's name to an error of a template, which does not know it."""
    return ArgumentsInvalid(tool=tool, problem=error.problem) if type(error) is ArgumentsInvalid else error


class Arguments:
    """A tool's parameters, a JSON Schema. Raises ToolInvalid, also for external references and invalid defaults."""

    def __init__(self, parameters: Mapping[str, Any], *, tool: str = "") -> None:
        self._tool = tool
        self._schema = _plain(parameters, tool)
        self._validator = _validator(json.dumps(self._schema), tool)
        self.properties: Mapping[str, Any] = self._schema.get("properties", {})
        """The schemas of the arguments, by name."""
        self.required = frozenset(_names(self._schema.get("required")))
        for name, schema in self.properties.items():
            if isinstance(schema, Mapping) and "default" in schema:
                self._check_default(name, schema)

    def validate(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The valid arguments with defaults; 5.0 becomes 5 where an integer is expected. Raises ArgumentsInvalid."""
        filled: dict[str, Any] = _fill_defaults(self._schema, deepcopy(dict(given)))
        problems = [*self._report_unknown(filled), *_unsendable(filled, ""), *self._wrong(filled)]
        if problems:
            raise ArgumentsInvalid(tool=self._tool, problem=" ".join(dict.fromkeys(problems[:_PROBLEMS])))
        return filled

    def _report_unknown(self, given: Mapping[str, Any]) -> Iterator[str]:
        if _OPEN & self._schema.keys():
            return
        known = ", ".join(f"`{name}`" for name in self.properties) or "none"
        for name in given:
            if name not in self.properties:
                yield f"There is no argument `{_short(name)}`; there are: {known}."

    def _wrong(self, given: Mapping[str, Any]) -> list[str]:
        try:
            errors = sorted(self._validator.iter_errors(given), key=relevance, reverse=True)
            return [_sentence(_deepest(error)) for error in errors]
        except ArithmeticError:
            return ["A number is larger than can be judged."]
        except Unresolvable as error:
            raise ToolInvalid(tool=self._tool, problem=f"its schema refers to {error.ref}, which it lacks.") from error
        except RecursionError as error:
            raise ArgumentsInvalid(tool=self._tool, problem="The arguments are nested too deeply.") from error

    def _check_default(self, name: str, schema: Mapping[str, Any]) -> None:
        try:
            wrong = list(self._validator.evolve(schema=schema).iter_errors(schema["default"]))
        except (Unresolvable, RecursionError, ArithmeticError) as error:
            problem = f"the default of `{name}` cannot be judged by its schema."
            raise ToolInvalid(tool=self._tool, problem=problem) from error
        if wrong:
            problem = f"the default of `{name}`, {_short(schema['default'])}, is not allowed: {_sentence(wrong[0])}"
            raise ToolInvalid(tool=self._tool, problem=problem)


def _plain(parameters: Mapping[str, Any], tool: str) -> dict[str, Any]:
    """The schema as plain JSON."""
    try:
        schema = json.loads(json.dumps(parameters, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise ToolInvalid(tool=tool, problem="its parameters are not JSON.") from error
    if not isinstance(schema, dict) or schema.get("type", "object") != "object":
        raise ToolInvalid(tool=tool, problem='its parameters are not a schema with "type": "object".')
    return schema


@lru_cache(maxsize=256)
def _validator(text: str, tool: str) -> Validator:
    """The validator of a schema. Cached: to check a schema takes longer than a hundred calls."""
    schema: dict[str, Any] = json.loads(text)
    if not isinstance(schema.get("$schema", ""), str):
        raise ToolInvalid(tool=tool, problem="its `$schema` is no text.")
    kind: type[Validator] = extend(  # type: ignore[no-untyped-call]
        validator_for(schema, default=Draft202012Validator), {"pattern": _pattern, "uniqueItems": _unique}
    )
    try:
        kind.check_schema(schema)
        outside = next((ref for ref in _references(schema) if not ref.startswith("#")), None)
    except SchemaError as error:
        where = "/".join(str(part) for part in error.absolute_path) or "the top"
        problem = f"its parameters are no valid JSON Schema: at {where}, {error.message[:200]}."
        raise ToolInvalid(tool=tool, problem=problem) from error
    except RecursionError as error:
        raise ToolInvalid(tool=tool, problem="its parameters are nested too deeply.") from error
    if outside is not None:
        problem = f"its schema refers to {outside[:100]}. Write what that says into the schema itself, under $defs."
        raise ToolInvalid(tool=tool, problem=problem)
    return kind(schema, registry=Registry(), format_checker=_FORMATS)  # a registry that fetches nothing


def _pattern(validator: Validator, pattern: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
    """The keyword `pattern` in linear time."""
    if isinstance(value, str) and not matches(pattern, value):
        yield ValidationError(f"{_short(repr(value))} does not match {pattern!r}")


def _unique(validator: Validator, wanted: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
    """The keyword `uniqueItems` in linear time."""
    if wanted and isinstance(value, list) and len({_canonical(one) for one in value}) < len(value):
        yield ValidationError("it has an item twice")


def _canonical(value: Any) -> str:
    """A canonical text of a value: 1.0 equals 1."""
    whole = isinstance(value, float) and value.is_integer()
    if isinstance(value, list):
        return f"[{','.join(map(_canonical, value))}]"
    if isinstance(value, Mapping):
        return f"{{{','.join(sorted(f'{json.dumps(name)}:{_canonical(one)}' for name, one in value.items()))}}}"
    return json.dumps(int(value) if whole else value)


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, Mapping):
        for key, value in schema.items():
            if key in _REFERENCES and isinstance(value, str):
                yield value
            else:
                yield from _references(value)
    elif isinstance(schema, list):
        for one in schema:
            yield from _references(one)


def _fill_defaults(schema: Any, value: Any) -> Any:
    """Adds the defaults of `properties` and `items`, recursively."""
    if not isinstance(schema, Mapping):
        return value
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        for name, one in properties.items():
            if name in value:
                value[name] = _fill_defaults(one, value[name])
            elif isinstance(one, Mapping) and "default" in one:
                value[name] = deepcopy(one["default"])
    elif isinstance(value, list) and isinstance(schema.get("items"), Mapping):
        return [_fill_defaults(schema["items"], one) for one in value]
    elif isinstance(value, float) and value.is_integer() and schema.get("type") == "integer":
        return int(value)
    return value


def _unsendable(value: Any, path: str) -> Iterator[str]:
    """Problems that JSON Schema does not find: infinite numbers and lone surrogates."""
    if isinstance(value, float) and not math.isfinite(value):
        yield f"`{path}` must be a finite number."
    elif isinstance(value, str) and not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            yield f"`{path}` holds half of a surrogate pair, which is no text."
    elif isinstance(value, Mapping):
        for name, one in value.items():
            yield from _unsendable(name, path)
            yield from _unsendable(one, f"{path}.{name}" if path else str(name))
    elif isinstance(value, list):
        for place, one in enumerate(value):
            yield from _unsendable(one, f"{path}[{place}]")


def _deepest(error: ValidationError) -> ValidationError:
    """The error of the best matching alternative."""
    while error.context:
        error = max(error.context, key=relevance)
    return error


def _sentence(error: ValidationError) -> str:
    """A sentence for a model: argument, expected and given value."""
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.absolute_path]
    path = _short("".join(parts).lstrip("."))
    if error.validator == "required" and isinstance(error.instance, Mapping):
        missing = next((name for name in _names(error.validator_value) if name not in error.instance), "")
        inside = f"{path}.{missing}" if path else str(missing)
        return f"The argument `{inside}` is missing{_describe_expected(error.schema, str(missing))}."
    if not path:
        return f"The arguments do not fit: {_short(error.message, 200)}."
    if error.validator == "type":
        return f"`{path}` must be of type {_types(error.validator_value)}, and is {_format_given(error.instance)}."
    if error.validator == "enum":
        return f"`{path}` must be one of {_short(error.validator_value, 400)}, and is {_format_given(error.instance)}."
    return f"`{path}` is not allowed: {_short(error.message, 200)}."


def _describe_expected(schema: Any, name: str) -> str:
    about = schema.get("properties", {}).get(name) if isinstance(schema, Mapping) else None
    if not isinstance(about, Mapping):
        return ""
    hints = [_types(about["type"])] if "type" in about else []
    hints += [_short(about["description"], 200)] if about.get("description") else []
    return f" ({': '.join(hints)})" if hints else ""


def _names(value: Any) -> list[str]:
    return [str(name) for name in value] if isinstance(value, list) else []


def _types(value: Any) -> str:
    return " or ".join(str(one) for one in value) if isinstance(value, list) else str(value)


def _format_given(value: Any) -> str:
    """A value as JSON, so that a text has quotes."""
    return _short(json.dumps(value, ensure_ascii=False, default=str))


def _short(value: Any, most: int = _SHOWN) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    text = text.encode("utf-8", "replace").decode()
    return text if len(text) <= most else f"{text[: most - 1]}…"


_PLACE = re.compile(r"\{\{\s*([A-Za-z_]\w*)\s*\}\}", re.ASCII)
_SCALARS = frozenset({"string", "integer", "number", "boolean", "null"})


@dataclass(frozen=True)
class Placeholder:
    """The place of an argument."""

    name: str


TemplateParts = tuple[str | Placeholder, ...]
"""The texts and placeholders of a template, without empty texts."""


def parts_of(text: str, properties: Mapping[str, Any]) -> TemplateParts:
    """Parses a template. Raises ToolInvalid: a placeholder is malformed or unknown."""
    parts: list[str | Placeholder] = []
    for number, part in enumerate(_PLACE.split(text)):
        if number % 2:
            parts.append(_make_placeholder(part, properties))
        elif "{{" in part or (number and part.startswith("}")):
            begun = part[max(0, part.find("{{")) :][:40]
            raise ToolInvalid(problem=f"{begun!r} is not the place of an argument. Write {{{{name}}}}.")
        elif part:
            parts.append(part)
    return tuple(parts)


def names_in(text: str) -> list[str]:
    """Return the names of the placeholders in a text, each once, in their order."""
    return list(dict.fromkeys(_PLACE.findall(text)))


def types_of(schema: Any) -> frozenset[str]:
    """The JSON types that a schema allows; empty if unknown."""
    if not isinstance(schema, Mapping):
        return frozenset()
    if "type" in schema:
        named = schema["type"]
        return frozenset(named) if isinstance(named, list) else frozenset({str(named)})
    if "const" in schema:
        return frozenset({_type(schema["const"])})
    if "enum" in schema:
        return frozenset(map(_type, schema["enum"]))
    given = [types_of(one) for key in ("anyOf", "oneOf") for one in schema.get(key, ())]
    return frozenset().union(*given) if all(given) else frozenset()


def is_scalar(types: frozenset[str]) -> bool:
    """Whether all types are scalar."""
    return bool(types) and types <= _SCALARS


def _make_placeholder(name: str, properties: Mapping[str, Any]) -> Placeholder:
    if name not in properties:
        close = close_names(name, list(properties)) or list(properties)[:8]
        hint = f"The nearest are: {', '.join(close)}." if close else "The schema has none."
        raise ToolInvalid(problem=f"{{{{{name}}}}} is the place of an argument that the schema does not have. {hint}")
    return Placeholder(name)


def _type(value: Any) -> str:
    for kind, name in ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"), (list, "array")):
        if isinstance(value, kind):
            return name
    return "null" if value is None else "object"
