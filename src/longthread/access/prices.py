"""What models cost: a file of prices that a person edits, and those of the settings, which come before it."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from longthread.errors import InvalidInput
from longthread.settings import Price, Settings

PRICES_FILE = "prices.yaml"
"""The file of prices in the data folder."""
LARGEST_FILE = 1_000_000
"""Bytes of it, at most."""
_HEAD = "# What a million tokens of each model cost. `longthread prices --help` says how to change it.\n"
_log = logging.getLogger(__name__)


def prices_path(settings: Settings) -> Path:
    return settings.data_dir / PRICES_FILE


def load_prices(settings: Settings) -> dict[str, Price]:
    """Return the prices of models, by their names. Raises InvalidInput: the file has something else."""
    prices, problem = _read_if_changed(prices_path(settings))
    if problem:
        raise InvalidInput(reason=problem)
    return {**prices, **{price.model: price for price in settings.prices}}


def find_price(settings: Settings, *names: str) -> Price | None:
    """Return the price of a model that has several names; None: none is set. The file may change meanwhile; if it
    cannot be understood, its prices count as not set."""
    prices, problem = _read_if_changed(prices_path(settings))
    _warn(problem)
    return next(filter(None, (settings.price_of(name) or prices.get(name) for name in names)), None)


def compute_cost(price: Price, *, tokens_in: int, tokens_out: int, cached: int = 0) -> float:
    """Return what tokens cost. `cached` are those of `tokens_in` that the provider had in its cache."""
    of_cached = price.input if price.cached is None else price.cached
    paid = (tokens_in - cached) * price.input + cached * of_cached
    return (paid + tokens_out * price.output) / 1_000_000


def set_price(file: Path, price: Price) -> None:
    """Write a model's price into the file of prices; its comments and other lines stay. Raises InvalidInput."""
    fields = {"input": price.input, "output": price.output, "cached": price.cached}
    values = ", ".join(f"{name}: {_format_number(value)}" for name, value in fields.items() if value is not None)
    _replace_lines(file, price.model, f"{_quote(price.model)}: {{{values}}}\n")


def remove_price(file: Path, model: str) -> bool:
    """Take a model's price out of the file of prices. Return whether it was there. Raises InvalidInput."""
    if model not in _parse(_read(file), file):
        return False
    _replace_lines(file, model, "")
    return True


def _replace_lines(file: Path, model: str, line: str) -> None:
    import yaml

    text = _read(file) or _HEAD
    prices = _parse(text, file)
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    if model in prices:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        if root.flow_style:
            raise InvalidInput(reason=f"{file} has its prices in one pair of braces. Write each model on a line first.")
        key, value = next(pair for pair in root.value if pair[0].value == model)
        lines[key.start_mark.line : _last_line(value) + 1] = [line]
    else:
        lines.append(line)
    changed = "".join(lines)
    _parse(changed, file)
    file.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=PRICES_FILE, dir=file.parent)
    with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
        opened.write(changed)
    Path(name).replace(file)


def _last_line(node: Any) -> int:
    """Return the line where a node's last value ends: a mapping's own end is where the next one begins."""
    if not node.value or isinstance(node.value, str) or node.flow_style:
        return int(node.end_mark.line)
    return _last_line(node.value[-1][1])


def _quote(name: str) -> str:
    """Return a name as a key of YAML."""
    import yaml

    return str(yaml.safe_dump({name: 0}, allow_unicode=True, width=10_000)).removesuffix(": 0\n")


def _format_number(value: float) -> str:
    return str(int(value)) if value.is_integer() else repr(value)


def _read_if_changed(file: Path) -> tuple[Mapping[str, Price], str]:
    """Return the prices of the file, and what is wrong with it, or an empty text."""
    try:
        found = file.stat()
    except OSError:
        return {}, ""
    return _read_version(file, found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=8)
def _read_version(file: Path, changed: int, size: int) -> tuple[Mapping[str, Price], str]:
    try:
        return _parse(_read(file), file), ""
    except InvalidInput as error:
        return {}, str(error)


@lru_cache(maxsize=8)
def _warn(problem: str) -> None:
    if problem:
        _log.warning("The prices cannot be used: %s", problem)


def _read(file: Path) -> str:
    try:
        if file.stat().st_size > LARGEST_FILE:
            raise InvalidInput(reason=f"{file} has more than {LARGEST_FILE:,} bytes.")
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(reason=f"{file} cannot be read: {error}.") from None


def _parse(text: str, file: Path) -> dict[str, Price]:
    import yaml

    try:
        given = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise InvalidInput(reason=f"{file} is no YAML: {' '.join(str(error).split())}.") from None
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise InvalidInput(reason=f"{file} is no list of models with `input` and `output`.")
    found: dict[str, Price] = {}
    for name, fields in given.items():
        try:
            found[str(name)] = Price.model_validate({**fields, "model": str(name)})
        except (TypeError, ValidationError):
            reason = f"The price of {name} in {file} is wrong: give `input` and `output`, and `cached` if it is "
            raise InvalidInput(reason=reason + "another, as numbers from 0 on.") from None
    return found
