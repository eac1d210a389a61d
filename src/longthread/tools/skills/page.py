"""A SKILL.md: YAML between two lines `---`, and instructions in Markdown below.

Keywords, tools and other config are under `metadata`, which other programs ignore. The YAML is stored as written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from longthread.model.catalog import same
from longthread.tools.yamltext import as_yaml, expect_unique, nodes_as_yaml, yaml_loader, yaml_problem

LONGEST_FRONT = 100_000
"""Characters of the YAML."""
KEYWORDS, TOOLS, CONFIG = "longthread-trigger-keywords", "longthread-tools", "longthread-config"
"""Our keys under `metadata`. Their values are texts, as Agent Skills require."""
OWN_CONFIG = ("instructions", "front_matter", "files")
"""Keys of a skill's `config` that come from its folder."""
_FENCE = re.compile(r"---[ \t]*(\r?\n|$)")
_COMMAS = re.compile(r"[,，、;；\n]")
_TEXT = "tag:yaml.org,2002:str"
_NULL = "tag:yaml.org,2002:null"


class PageInvalid(ValueError):
    """A SKILL.md is invalid; the message says why."""


@dataclass(frozen=True, slots=True)
class Page:
    """The two parts of a SKILL.md."""

    front: str
    body: str

    @classmethod
    def of(cls, text: str) -> Page:
        """Parses a text. Raises PageInvalid."""
        text = text.removeprefix("\ufeff")
        first = _FENCE.match(text)
        if first is None:
            raise PageInvalid("it does not begin with a line `---`, and YAML with name and description below it.")
        place = first.end()
        while place < len(text):
            line = text.find("\n", place) + 1 or len(text)
            fence = _FENCE.match(text, place)
            if fence is not None and fence.end() >= line:
                return cls(text[first.end() : place], text[line:])
            place = line
        raise PageInvalid("its YAML does not end: below it stands no line `---`.")

    @property
    def text(self) -> str:
        """The whole text, with the line breaks of the YAML."""
        line = "\r\n" if "\r\n" in self.front else "\n"
        end = "" if self.front.endswith("\n") or not self.front else line
        return f"---{line}{self.front}{end}---{line}{self.body}"


def definition(page: Page) -> dict[str, Any]:
    """The definition of a skill with names of tools, without files. Raises PageInvalid."""
    data = _parsed(page.front)
    config = {key: value for key, value in data.pop("config").items() if key not in OWN_CONFIG}
    if page.body.strip():
        config["instructions"] = page.body
    # YAML that the definition implies is not stored.
    if page.front != _written({**data, "config": config}):
        config["front_matter"] = page.front
    return {key: value for key, value in {**data, "config": config}.items() if value not in ([], {})}


def page_of(skill: Mapping[str, Any]) -> Page:
    """The SKILL.md of a definition with names of tools, and its original YAML where still valid. Raises PageInvalid."""
    config = skill.get("config") or {}
    body = str(config.get("instructions") or "")
    if not str(skill.get("description") or "").strip():
        raise PageInvalid("it has no description, and a SKILL.md needs one: what it does, and when it is to be used.")
    front = config.get("front_matter")
    if not isinstance(front, str):
        return Page(_written(skill), body)
    try:
        now = _parsed(front)
    except PageInvalid:  # another program wrote it
        return Page(_written(skill), body)
    wanted = _wanted(skill)
    return Page(front if same(now, wanted) else _mended(front, skill), body)


def front_problems(front: str) -> Iterator[tuple[str, str]]:
    """Problems of a `config.front_matter`, with the field."""
    try:
        _parsed(front)
    except PageInvalid as error:
        yield "front_matter", str(error)


def _parsed(front: str) -> dict[str, Any]:
    """The skill that the YAML describes, with `config` except the keys of the folder."""
    root = _root(front)
    values = _values(root)
    metadata = values.get("metadata")
    if metadata is not None and metadata.tag != _NULL and not isinstance(metadata, yaml.MappingNode):
        raise PageInvalid("metadata: it must be an object.")
    ours = _values(metadata)
    found = {
        "name": _text(values, "name"),
        "description": _text(values, "description"),
        "trigger_keywords": _list(ours, KEYWORDS),
        "tools": _list(ours, TOOLS),
        "config": _value(ours, CONFIG) or {},
    }
    if not isinstance(found["config"], dict):
        raise PageInvalid(f"metadata.{CONFIG}: it must be an object.")
    return found


def _root(front: str) -> Any:
    if len(front) > LONGEST_FRONT:
        raise PageInvalid(f"its YAML has {len(front):,} characters, and the limit is {LONGEST_FRONT:,}.")
    try:
        root = yaml_loader(front).get_single_node()
        expect_unique(root)
    except yaml.YAMLError as error:
        raise PageInvalid(f"{yaml_problem(error, above=1)} A text that holds `: ` or `#` is put into quotes.") from None
    except (ValueError, RecursionError) as error:
        raise PageInvalid(f"its YAML cannot be read: {' '.join(str(error).split())[:200]}.") from None
    if not isinstance(root, yaml.MappingNode):
        raise PageInvalid("its YAML must be an object with name and description.")
    return root


def _values(node: Any) -> dict[str, Any]:
    """The nodes of an object by key; empty for another node."""
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    return {key.value: value for key, value in pairs if isinstance(key, yaml.ScalarNode)}


def _text(values: Mapping[str, Any], key: str) -> str:
    node = values.get(key)
    if node is None or node.tag == _NULL or not str(node.value).strip():
        raise PageInvalid(f"{key}: it is missing. Give a text.")
    if not isinstance(node, yaml.ScalarNode) or node.tag != _TEXT:
        raise PageInvalid(f"{key}: it must be a text. Put it into quotes.")
    return str(node.value).strip()


def _list(values: Mapping[str, Any], key: str) -> list[Any]:
    """A list: in YAML, in JSON, or separated by commas."""
    value = _value(values, key)
    if isinstance(value, str):
        value = [part.strip() for part in _COMMAS.split(value) if part.strip()]
    if value is None:
        return []
    if not isinstance(value, list):
        raise PageInvalid(f"metadata.{key}: it must be a list, or a text with commas.")
    return value


def _value(values: Mapping[str, Any], key: str) -> Any:
    node = values.get(key)
    if node is None:
        return None
    try:
        _expect_tree(node)
        value = yaml_loader("").construct_document(node)
        json.dumps(value)
    except (yaml.YAMLError, TypeError, ValueError, RecursionError):
        raise PageInvalid(f"metadata.{key}: it cannot be read. Put texts into quotes, and use no aliases.") from None
    if isinstance(value, str) and value.strip()[:1] in ("[", "{"):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            raise PageInvalid(f"metadata.{key}: it begins like JSON, and is none.") from None
    return value


def _expect_tree(root: Any) -> None:
    """Refuses aliases: a few lines of them can expand to millions of values."""
    waiting, seen = [root], set[int]()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            raise ValueError("an alias")
        seen.add(id(node))
        if isinstance(node, yaml.CollectionNode):
            waiting += [each for one in node.value for each in (one if isinstance(one, tuple) else (one,))]


def _wanted(skill: Mapping[str, Any]) -> dict[str, Any]:
    """The skill that a definition's YAML must describe, in the form of `_parsed`."""
    config = skill.get("config") or {}
    return {
        "name": str(skill["name"]),
        "description": str(skill.get("description") or "").strip(),
        "trigger_keywords": list(skill.get("trigger_keywords") or ()),
        "tools": list(skill.get("tools") or ()),
        "config": {key: value for key, value in config.items() if key not in OWN_CONFIG},
    }


def _metadata(skill: Mapping[str, Any]) -> dict[str, str]:
    wanted = _wanted(skill)
    words, tools = wanted["trigger_keywords"], wanted["tools"]
    texts_by_key = {KEYWORDS: _joined(words), TOOLS: _joined(tools), CONFIG: _json(wanted["config"])}
    return {key: text for key, text in texts_by_key.items() if text not in ("", "{}")}


def _joined(items: list[Any]) -> str:
    plain = all(isinstance(each, str) and each and each == each.strip() and not _COMMAS.search(each) for each in items)
    return ", ".join(items) if plain and not any(each[0] in "[{" for each in items) else _json(items)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _written(skill: Mapping[str, Any]) -> str:
    """New YAML for a definition."""
    wanted, metadata = _wanted(skill), _metadata(skill)
    data = {"name": wanted["name"], "description": wanted["description"]}
    return as_yaml(data | ({"metadata": metadata} if metadata else {}))


def _mended(front: str, skill: Mapping[str, Any]) -> str:
    """Updates the YAML. Everything else stays, except comments."""
    root, now, wanted = _root(front), _parsed(front), _wanted(skill)
    for key in ("name", "description"):
        if now[key] != wanted[key]:
            _set(root, key, _node(wanted[key]))
    if not all(same(now[key], wanted[key]) for key in ("trigger_keywords", "tools", "config")):
        old = _values(root).get("metadata")
        others = old.value if isinstance(old, yaml.MappingNode) else []
        pairs = [(key, value) for key, value in others if key.value not in (KEYWORDS, TOOLS, CONFIG)]
        made = _node(_metadata(skill))
        _set(root, "metadata", yaml.MappingNode("tag:yaml.org,2002:map", [*pairs, *made.value], flow_style=False))
    return nodes_as_yaml(root)


def _set(root: Any, key: str, node: Any) -> None:
    there = [place for place, (name, _) in enumerate(root.value) if name.value == key]
    if there:
        root.value[there[0]] = (root.value[there[0]][0], node)
    else:
        root.value.append((_node(key), node))


def _node(value: Any) -> Any:
    return yaml.compose(as_yaml({"of": value}), Loader=yaml.SafeLoader).value[0][1]
