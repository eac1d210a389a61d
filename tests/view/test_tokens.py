"""Estimates against true counts: seldom too low, by no more than 5 %, and not much too high.

`counts.json` holds what real tokenizers counted in the texts of `samples.py`: tiktoken 0.14 with `cl100k_base` and
`o200k_base`, tokenizers 0.23 with Anthropic's published older table and with DeepSeek V3's, llama.cpp with Qwen2.5's.
"""

from __future__ import annotations

import json
from pathlib import Path
from statistics import mean

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.view.samples import samples

from longthread.view.tokens import (
    ANY,
    CEILING,
    FLOOR,
    IMAGE,
    correct_factor,
    estimate,
    family_of,
    message_tokens,
    tools_tokens,
)

COUNTS: dict[str, dict[str, int]] = json.loads(Path(__file__).with_name("counts.json").read_text(encoding="utf-8"))
TEXTS = samples()
FAMILIES = ("cl100k", "o200k", "claude", "deepseek", "qwen")
REPEATED = {"spaces", "dashes", "letters", "han"}
"""Texts of one character: tokenizers have long tokens for some of them, which nothing but their tables can tell."""


@pytest.mark.parametrize("kind", sorted(TEXTS))
@pytest.mark.parametrize("family", FAMILIES)
def test_no_kind_of_text_costs_more_than_is_estimated(family: str, kind: str) -> None:
    assert estimate(TEXTS[kind], family) >= 0.95 * COUNTS[kind][family]


@pytest.mark.parametrize("kind", sorted(TEXTS))
def test_a_model_that_is_not_known_is_taken_for_the_dearest(kind: str) -> None:
    assert estimate(TEXTS[kind]) >= 0.95 * max(COUNTS[kind].values())


@pytest.mark.parametrize("family", FAMILIES)
def test_estimates_are_less_than_a_fifth_too_high_on_average(family: str) -> None:
    assert mean(estimate(TEXTS[kind], family) / COUNTS[kind][family] for kind in TEXTS.keys() - REPEATED) < 1.2


def test_the_dearest_is_not_estimated_much_too_high_either() -> None:
    assert mean(estimate(TEXTS[kind]) / max(COUNTS[kind].values()) for kind in TEXTS.keys() - REPEATED) < 1.2


@given(st.text(max_size=300), st.text(max_size=300))
def test_a_longer_text_costs_about_the_sum_of_its_parts(one: str, other: str) -> None:
    parts = estimate(one) + estimate(other)
    assert abs(estimate(one + other) - parts) <= 8 + parts // 4
    assert estimate(one) >= 1


@given(st.text(alphabet=st.characters(codec="utf-8"), min_size=1, max_size=200), st.sampled_from([*FAMILIES, ANY]))
def test_no_text_costs_more_than_its_bytes_by_much(text: str, family: str) -> None:
    assert estimate(text, family) <= 4 * len(text.encode()) + 8


def test_the_family_is_told_by_the_models_name() -> None:
    assert family_of("anthropic:claude-sonnet-4-5") == "claude"
    assert family_of("openai:gpt-5-mini") == family_of("gpt-4o") == family_of("openai:o3-mini") == "o200k"
    assert family_of("gpt-4-turbo") == "cl100k"
    assert family_of("deepseek:deepseek-chat") == "deepseek"
    assert family_of("qwen2.5:7b") == family_of("dashscope:qwen-max") == family_of("deepseek-r1-distill-qwen") == "qwen"
    assert family_of("llama3.1:8b") == family_of("Meta-Llama-3-8B-Instruct") == "cl100k"
    assert family_of("gemini-3-pro") == family_of("codellama-34b") == family_of("demo") == ANY


def test_messages_cost_more_than_their_text() -> None:
    assert message_tokens("hello") > estimate("hello")
    assert message_tokens("hello", images=2) == message_tokens("hello") + 2 * IMAGE
    assert tools_tokens("[]", 0) < 10 < tools_tokens('[{"name":"run_sql"}]', 1)


def test_reports_above_the_estimate_count_at_once_and_others_slowly() -> None:
    raised = correct_factor(1.0, 10_000, 13_000)
    assert raised == 1.3
    assert 1.28 < correct_factor(raised, 10_000, 10_000) < 1.3
    assert correct_factor(1.0, 10_000, 2_000) == FLOOR
    assert correct_factor(1.2, 100, 1_000) == 1.2
    assert correct_factor(1.2, 10_000, 0) == 1.2


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**7)), max_size=50))
def test_a_correction_stays_within_its_bounds(reports: list[tuple[int, int]]) -> None:
    factor = 1.0
    for estimated, reported in reports:
        factor = correct_factor(factor, estimated, reported)
        assert FLOOR <= factor <= CEILING
