"""Reads the semantic layers of other tools: dbt's semantic models and metrics, and Cube's cubes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from longthread.errors import InvalidInput
from longthread.tools.catalog.documents import read_mappings

_FORMS = "dbt's `semantic_models` and `metrics`, or Cube's `cubes`"


@dataclass(slots=True)
class ImportedLayer:
    """The `semantics` of a source, as read, and why each thing that was left out was."""

    metrics: list[dict[str, Any]] = field(default_factory=list)
    dimensions: list[dict[str, Any]] = field(default_factory=list)
    joins: list[dict[str, Any]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    refused: set[str] = field(default_factory=set)

    def refuse(self, item: ForeignItem, error: Exception) -> None:
        """Leave a metric out."""
        self.problems.append(f"{item.label}: {error}")
        self.refused.add(item.name)

    @property
    def semantics(self) -> dict[str, Any]:
        """The metrics, dimensions and joins. A dimension whose name others have too has its `owner` before it."""
        counted = Counter(each["name"] for each in [*self.metrics, *self.dimensions])
        renamed = {
            (each["owner"], each["name"]): f"{each['owner']}_{each['name']}"
            for each in self.dimensions
            if counted[each["name"]] > 1
        }
        for each in self.metrics:
            each["time"] = renamed.get((each.get("owner"), each.get("time")), each.get("time"))
        for each in self.dimensions:
            each["name"] = renamed.get((each["owner"], each["name"]), each["name"])
        lists = {"metrics": self.metrics, "dimensions": self.dimensions}
        made = {kind: [_own_fields(each) for each in items] for kind, items in lists.items()}
        return made | {"joins": list({str(each): each for each in self.joins}.values())}


def read_layers(paths: Iterable[str | Path]) -> ImportedLayer:
    """Read files, and those of folders, as one layer. Raises CatalogInvalid, InvalidInput: one cannot be read, or none
    has such a layer."""
    from longthread.tools.semantic.cube import read_cubes
    from longthread.tools.semantic.dbt import read_dbt

    bodies, layer = read_mappings(paths), ImportedLayer()
    read_dbt(bodies, layer)
    read_cubes(bodies, layer)
    if not (layer.metrics or layer.dimensions or layer.problems):
        raise InvalidInput(reason=f"There is nothing to import in these files. Give {_FORMS}.")
    while gone := [each for each in layer.metrics if not each.get("table") and _names(each) & layer.refused]:
        for each in gone:  # what is calculated from a metric that was left out
            layer.metrics.remove(each)
            missing = ", ".join(sorted(_names(each) & layer.refused))
            layer.refuse(ForeignItem(each, "metric"), InvalidInput(reason=f"it is made of {missing}."))
    return layer


def _names(metric: Mapping[str, Any]) -> set[str]:
    return set(re.findall(r"\w+", str(metric["sql"])))


def _own_fields(item: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name != "owner" and value}


def about(item: ForeignItem, label: str, meta: Mapping[str, Any]) -> dict[str, Any]:
    """Return the name, meaning and synonyms of an item: its label, and the `synonyms` of its `meta`."""
    given = meta.get("synonyms")
    texts = [item.data.get(label), *(given if isinstance(given, list) else [])]
    words = [each for each in dict.fromkeys(texts) if isinstance(each, str) and each.strip()]
    synonyms = [each for each in words if each.casefold() != item.name.casefold()]
    return {"name": item.name, "meaning": item.text("description"), "synonyms": synonyms}


class ForeignItem:
    """An object of another tool's document. `label` names it in errors, such as `the metric revenue`."""

    def __init__(self, data: Mapping[str, Any], kind: str) -> None:
        self.data = data
        self.name = str(data.get("name") or "")
        self.label = f"the {kind} {self.name or '(without a name)'}"

    def text(self, name: str) -> str | None:
        """A text that is not blank, or a number as text."""
        value = self.data.get(name)
        return str(value) if isinstance(value, str | int | float) and str(value).strip() else None

    def object(self, name: str) -> Mapping[str, Any]:
        value = self.data.get(name)
        return value if isinstance(value, Mapping) else {}

    def objects(self, name: str, kind: str) -> list[ForeignItem]:
        value = self.data.get(name)
        items = value if isinstance(value, list) else []
        return [ForeignItem(each, kind) for each in items if isinstance(each, Mapping)]

    def refuse(self, names: Iterable[str]) -> None:
        """Raises InvalidInput: it has a field that changes the number, and cannot be taken over."""
        for name in names:
            if self.data.get(name):
                raise InvalidInput(reason=f"it has `{name}`, which cannot be taken over.")
