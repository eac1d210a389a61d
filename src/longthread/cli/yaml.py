"""YAML as people write it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

_WIDTH = 110


def as_yaml(data: Mapping[str, Any]) -> str:
    """An object as a document: its keys in their order, and texts of several lines as such."""
    return str(yaml.dump(dict(data), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_WIDTH))


class _Dumper(yaml.SafeDumper):  # type: ignore[misc]  # PyYAML has no types
    pass


def _represent_text(dumper: yaml.SafeDumper, text: str) -> Any:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _represent_text)
