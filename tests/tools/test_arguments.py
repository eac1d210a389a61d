"""Arguments of calls: what fits goes on with its defaults, and what does not is told so that a model can correct it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples

from longthread.errors import ArgumentsInvalid, ToolInvalid
from longthread.tools.arguments import Arguments

SEARCH = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": "Search query"},
        "limit": {"type": "integer", "default": 10, "maximum": 50},
        "kind": {"enum": ["news", "all"]},
        "where": {"type": "object", "properties": {"lang": {"type": "string", "default": "en"}}},
    },
    "required": ["query"],
}


def problem(parameters: dict[str, Any], **given: Any) -> str:
    with pytest.raises(ArgumentsInvalid) as caught:
        Arguments(parameters, tool="search_web").validate(given)
    assert str(caught.value).startswith("The call of search_web was not made.")
    return str(caught.value)


def test_what_fits_goes_on_with_its_defaults() -> None:
    given = {"query": "AI agents", "where": {}}
    checked = Arguments(SEARCH).validate(given)
    assert checked == {"query": "AI agents", "limit": 10, "where": {"lang": "en"}}
    assert given == {"query": "AI agents", "where": {}}


def test_a_default_is_no_state_that_calls_share() -> None:
    arguments = Arguments({"properties": {"tags": {"type": "array", "default": []}}})
    arguments.validate({})["tags"].append("x")
    assert arguments.validate({}) == {"tags": []}


def test_whole_numbers_are_integers() -> None:
    limit = Arguments(SEARCH).validate({"query": "x", "limit": 5.0})["limit"]
    assert (limit, type(limit)) == (5, int)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "The argument `query` is missing (string: Search query)."),
        ({"query": 5}, "`query` must be of type string, and is 5."),
        ({"query": "x", "limit": "five"}, '`limit` must be of type integer, and is "five".'),
        ({"query": "x", "limit": True}, "`limit` must be of type integer, and is true."),
        ({"query": "x", "limit": 51}, "`limit` is not allowed: 51 is greater than the maximum of 50."),
        ({"query": "x", "kind": "old"}, '`kind` must be one of ["news", "all"], and is "old".'),
        ({"query": "x", "where": {"lang": 1}}, "`where.lang` must be of type string, and is 1."),
        ({"query": "x", "qeury": "y"}, "There is no argument `qeury`; there are: `query`, `limit`, `kind`, `where`."),
        ({"query": "\ud800"}, "`query` holds half of a surrogate pair, which is no text."),
        ({"query": "x", "limit": float("nan")}, "`limit` must be a finite number."),
    ],
)
def test_a_bad_call_says_which_argument_and_what_is_expected(given: dict[str, Any], said: str) -> None:
    assert said in problem(SEARCH, **given)


@pytest.mark.parametrize("given", ["2020-99-01", "yesterday", "２０２０-01-01"])
def test_a_date_is_one_of_the_calendar(given: str) -> None:
    since = {"type": "object", "properties": {"since": {"type": "string", "format": "date"}}}
    arguments = Arguments(since)
    assert arguments.validate({"since": "2020-02-29"}) == {"since": "2020-02-29"}
    with pytest.raises(ArgumentsInvalid, match="since.*date"):
        arguments.validate({"since": given})


def test_a_wrong_value_is_not_repeated_at_length() -> None:
    assert len(problem(SEARCH, query="x", limit="9" * 100_000)) < 400
    assert len(problem(SEARCH, query="x", **{"k" * 100_000: 1})) < 400


def test_a_schema_that_allows_other_names_does() -> None:
    assert Arguments({"type": "object", "additionalProperties": True}).validate({"a": 1}) == {"a": 1}
    assert Arguments({"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}).validate({"b": 1}) == {"b": 1}


def test_alternatives_are_told_by_the_one_that_fits_best() -> None:
    schema = {"properties": {"when": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}}
    assert "`when` must be of type" in problem(schema, when="soon")


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"type": "array"}, '"type": "object"'),
        ({"properties": {"a": {"type": "text"}}}, "at properties/a/type"),
        ({"properties": {"a": {"type": "integer", "default": "x"}}}, "the default of `a`, x, is not allowed"),
        ({"properties": {"a": {"$ref": "http://127.0.0.1:1/schema"}}}, "refers to http://127.0.0.1:1/schema"),
        ({"properties": {"a": {"$ref": "file:///etc/passwd"}}}, "refers to file:///etc/passwd"),
        ({"properties": {"a": {"minimum": float("inf")}}}, "not JSON"),
        ({"properties": {"a": {"enum": [b"x"]}}}, "not JSON"),
        ({"$schema": 5, "properties": {"a": {}}}, "`$schema`"),
        ({"required": 5}, "at required"),
        ({"required": [{}]}, "at required/0"),
        ({"properties": {"a": {"$ref": "#/properties/a", "default": 1}}}, "the default of `a` cannot be judged"),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused(parameters: dict[str, Any], said: str) -> None:
    with pytest.raises(ToolInvalid, match="search_web") as caught:
        Arguments(parameters, tool="search_web")
    assert said in str(caught.value)


def test_no_argument_takes_long_to_be_judged() -> None:
    """Each of these takes Python hours, or all that there is, when it is judged as it is written."""
    schema = {"properties": {"a": {"pattern": "^(a|a)*$"}, "b": {"uniqueItems": True}, "c": {"multipleOf": 0.01}}}
    assert "does not match" in problem(schema, a="a" * 10_000 + "!")
    assert Arguments(schema).validate({"b": [{"n": number} for number in range(20_000)]})
    assert "larger than can be judged" in problem(schema, c=10**400)


def test_patterns_and_unique_items_mean_what_they_say() -> None:
    schema = {
        "properties": {"a": {"pattern": r"^[\u4e00-\u9fff]+$"}, "b": {"uniqueItems": True}, "c": {"pattern": "^(?!x)"}}
    }
    for fits in ({"a": "中文"}, {"b": [1, "1", True, [1], {"a": 1}, None]}, {"b": []}, {"c": "y"}, {"a": 5}):
        assert Arguments(schema).validate(fits) == fits
    for wrong in ({"a": "x"}, {"b": [1, 1.0]}, {"b": [{"a": 1, "b": 2}, {"b": 2, "a": 1}]}, {"c": "x"}):
        assert "is not allowed" in problem(schema, **wrong)


def test_references_within_the_schema_are_followed() -> None:
    tree = {"$ref": "#/$defs/node", "$defs": {"node": {"properties": {"next": {"$ref": "#/$defs/node"}}}}}
    assert Arguments(tree).validate({"next": {"next": {}}}) == {"next": {"next": {}}}
    with pytest.raises(ToolInvalid, match="refers to .*gone"):
        Arguments({"$ref": "#/$defs/gone"}).validate({})


def test_nothing_can_be_nested_too_deeply() -> None:
    circle = Arguments({"properties": {"a": {"$ref": "#/properties/a"}}})
    with pytest.raises(ArgumentsInvalid, match="nested too deeply"):
        circle.validate({"a": 1})
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"properties": {"a": deep}}
    with pytest.raises(ToolInvalid):
        Arguments(deep)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=examples(200))
@given(st.dictionaries(st.sampled_from(["query", "limit", "kind", "where", "x"]), JSON))
def test_whatever_comes_is_an_answer_or_a_refusal(given: dict[str, Any]) -> None:
    try:
        checked = Arguments(SEARCH).validate(given)
    except ArgumentsInvalid as error:
        str(error).encode()
    else:
        assert isinstance(checked["query"], str)
        assert isinstance(checked["limit"], int)
