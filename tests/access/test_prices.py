"""Prices of models: a file that a person edits, and the settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from longthread.access.prices import (
    compute_cost,
    find_price,
    load_prices,
    prices_path,
    remove_price,
    set_price,
)
from longthread.errors import InvalidInput
from longthread.settings import Price, Settings

WRITTEN = """\
# Ours, in EUR
openai:gpt-5:   # the large one
  input: 1.25
  output: 10
  cached: 0.125

# of the cluster
"local:qwen": {input: 0, output: 0}
千问: {input: 0.8, output: 2}
"""


@pytest.fixture
def given(tmp_path: Path) -> Settings:
    settings = Settings.of(data_dir=tmp_path)
    prices_path(settings).write_text(WRITTEN, encoding="utf-8")
    return settings


def test_a_file_of_prices_is_read_and_those_of_the_settings_come_first(given: Settings) -> None:
    assert find_price(given, "openai:gpt-5") == Price(model="openai:gpt-5", input=1.25, output=10, cached=0.125)
    assert find_price(given, "unknown", "local:qwen") == Price(model="local:qwen", input=0, output=0)
    assert find_price(given, "unknown") is None
    own = Settings.of(data_dir=given.data_dir, prices={"千问": {"input": 5, "output": 5}})
    assert load_prices(own)["千问"].input == 5 == getattr(find_price(own, "千问"), "input", None)
    assert sorted(load_prices(own)) == ["local:qwen", "openai:gpt-5", "千问"]


def test_a_cost_has_the_tokens_from_the_cache_at_their_own_price() -> None:
    price = Price(model="m", input=2, output=10, cached=0.5)
    assert compute_cost(price, tokens_in=1_000_000, tokens_out=100_000, cached=400_000) == pytest.approx(1.2 + 0.2 + 1)
    assert compute_cost(Price(model="m", input=2, output=0), tokens_in=500_000, tokens_out=9, cached=1) == 1.0


def test_setting_a_price_leaves_comments_and_others_as_they_are(given: Settings) -> None:
    file = prices_path(given)
    set_price(file, Price(model="openai:gpt-5", input=1, output=8.5))
    set_price(file, Price(model="a: b #c", input=0.1, output=0.000001))
    text = file.read_text("utf-8")
    assert text == WRITTEN.replace(
        WRITTEN[WRITTEN.index("openai:gpt-5") : WRITTEN.index("\n# of the")], "openai:gpt-5: {input: 1, output: 8.5}\n"
    ) + ("'a: b #c': {input: 0.1, output: 1e-06}\n")
    assert load_prices(given)["a: b #c"] == Price(model="a: b #c", input=0.1, output=0.000001)
    assert remove_price(file, "local:qwen") and not remove_price(file, "local:qwen")
    assert sorted(load_prices(given)) == ["a: b #c", "openai:gpt-5", "千问"]
    assert "# of the cluster" in file.read_text("utf-8")
    assert list(given.data_dir.iterdir()) == [file]


def test_the_first_price_makes_the_file(tmp_path: Path) -> None:
    settings = Settings.of(data_dir=tmp_path / "new")
    set_price(prices_path(settings), Price(model="gpt", input=1, output=2))
    assert prices_path(settings).read_text().startswith("# What a million tokens") and load_prices(settings)["gpt"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("gpt: {input: 1}", "price of gpt"),
        ("gpt: 3", "price of gpt"),
        ("gpt: {input: -1, output: 1}", "price of gpt"),
        ("gpt: {input: .inf, output: 1}", "price of gpt"),
        ("gpt: {input: 1, output: 1, other: 1}", "price of gpt"),
        ("- gpt", "no list of models"),
        ("gpt: {", "no YAML"),
        ("#" * 1_000_001, "more than"),
    ],
)
def test_a_file_that_cannot_be_understood_is_no_price(
    tmp_path: Path, text: str, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    settings = Settings.of(data_dir=tmp_path)
    prices_path(settings).write_text(text)
    with pytest.raises(InvalidInput, match=said):
        load_prices(settings)
    assert find_price(settings, "gpt") is None and said in caplog.text
    with pytest.raises(InvalidInput):
        set_price(prices_path(settings), Price(model="other", input=1, output=1))
    assert prices_path(settings).read_text() == text


def test_a_changed_file_counts_at_once(given: Settings) -> None:
    assert find_price(given, "openai:gpt-5") is not None
    prices_path(given).write_text("")
    assert find_price(given, "openai:gpt-5") is None
