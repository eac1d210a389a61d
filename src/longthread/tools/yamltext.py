"""Reads and writes YAML for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from longthread.model.markdown import UNSEEN

_WIDTH = 110
_MERGE = "tag:yaml.org,2002:merge"
_MOST_KEYS = 10_000
"""Keys of an object with merged ones: nine lists of nine can make millions."""
_OTHER_BREAKS = frozenset("\x85\u2028\u2029")
"""Line breaks that a block scalar loses."""


def as_yaml(data: Mapping[str, Any]) -> str:
    """An object as YAML, with block scalars for texts of several lines."""
    text = str(yaml.dump(dict(data), Dumper=Dumper, sort_keys=False, allow_unicode=True, width=_WIDTH))
    # Texts with such characters are quoted, so they can be escaped.
    return UNSEEN.sub(lambda found: f"\\U{ord(found[0]):08x}", text)


def nodes_as_yaml(root: Any) -> str:
    """Writes nodes, with their original scalar styles."""
    return str(yaml.serialize(root, Dumper=Dumper, allow_unicode=True, width=_WIDTH))


class Dumper(yaml.SafeDumper):  # type: ignore[misc]  # PyYAML has no types
    """Writes texts of several lines as blocks."""


def _represent_text(dumper: yaml.SafeDumper, text: str) -> Any:
    quoted = not _OTHER_BREAKS.isdisjoint(text) or UNSEEN.search(text) is not None
    style = '"' if quoted else "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


Dumper.add_representer(str, _represent_text)


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """Adds the place to errors: for some tags, such as `!!int ""`, PyYAML does not."""

    def construct_object(self, node: Any, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (LookupError, AttributeError):
            what = f"this is no {node.tag.rpartition(':')[2]}"
            raise yaml.MarkedYAMLError(problem=what, problem_mark=node.start_mark) from None


def yaml_loader(text: str) -> Any:
    """A loader for a text, to be disposed of. Raises yaml.MarkedYAMLError: it has a control character."""
    try:
        return _Loader(text)
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        mark = yaml.Mark("", error.position, before.count("\n"), len(before) - before.rfind("\n") - 1, None, 0)
        what = f"the character U+{error.character:04X} may not stand in YAML"
        raise yaml.MarkedYAMLError(problem=what, problem_mark=mark) from None


def expect_unique(root: Any) -> None:
    """Refuse duplicate keys: YAML would silently take the last. Raises yaml.MarkedYAMLError."""
    waiting, seen, sizes = [root], set[int](), dict[int, int]()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            if _keys(node, sizes) > _MOST_KEYS:
                raise yaml.MarkedYAMLError(problem="too much is merged by <<", problem_mark=node.start_mark)
            keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
            if len(keys) != len(set(keys)):
                twice = next(key for key in keys if keys.count(key) > 1)
                raise yaml.MarkedYAMLError(
                    problem=f"the key {twice!r} stands there twice", problem_mark=node.start_mark
                )
            waiting += [value for _, value in node.value]
        elif isinstance(node, yaml.SequenceNode):
            waiting += node.value


def _keys(mapping: Any, known: dict[int, int]) -> int:
    """The number of keys of an object with merged ones."""
    if id(mapping) not in known:
        known[id(mapping)] = 1  # also if it is merged into itself
        count = len(mapping.value)
        for key, value in mapping.value:
            if key.tag == _MERGE:
                merged = value.value if isinstance(value, yaml.SequenceNode) else [value]
                count += sum(_keys(one, known) for one in merged if isinstance(one, yaml.MappingNode))
        known[id(mapping)] = count
    return known[id(mapping)]


def yaml_problem(error: yaml.YAMLError, *, above: int = 0) -> str:
    """An error of a YAML text with its place; `above` lines of the file come before."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        return f"line {mark.line + 1 + above}, column {mark.column + 1}: {error.problem or error.context}."
    return f"{' '.join(str(error).split())[:200]}."
