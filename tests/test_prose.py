"""The pages and the code are in plain words: short sentences, short paragraphs, references that lead somewhere, and
functions that are named by what they do."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from statistics import mean
from types import UnionType
from typing import Any

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    ROOT / "ARCHITECTURE.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    ROOT / "CODE_OF_CONDUCT.md",
    *sorted(ROOT.glob("docs/*.md")),
    *sorted(ROOT.glob("docs/*/*.md")),
]
PAGES = [page for page in PAGES if page.parent.name != "decisions" and page.parent.name != "zh"]
CHINESE = [ROOT / "README.zh-CN.md", *sorted(ROOT.glob("docs/zh/**/*.md"))]
SENTENCE, PARAGRAPH = 16, 80
SOURCES = [*sorted(ROOT.glob("src/**/*.py")), *sorted(ROOT.glob("packages/*/src/**/*.py"))]
PARTICIPLES, PRIVATE_WORDS = 157, 44  # lower them as names and docstrings become plain; never raise them
_FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef
_PARTICIPLE = re.compile(r"_?[a-z]+(ed|en|own|old|aid|ept|und|ade)")
_PRIVATE_WORD = re.compile(r"\b(told|anew|whoever|nobody|behind|beside|of which|those that)\b", re.IGNORECASE)
_CODE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)", re.DOTALL)
_ITEM = re.compile(r"(?:[-*]|\d+\.)\s+")
_WORD = re.compile(r"[\w'’%./-]*\w[\w'’%./-]*|[\u4e00-\u9fff]")
_END = re.compile(r"(?<=[.!?])[\"”)]*\s+")


def paragraphs(page: Path) -> list[str]:
    """The texts between blank lines, and the items of lists. Headings, tables and code are none."""
    lines = [line.strip() for line in _CODE.sub("", page.read_text("utf-8")).splitlines()]
    starts, number = [], 0
    for line in lines:
        number += not line or line.startswith(("|", "#")) or _ITEM.match(line) is not None
        starts.append((number, line))
    texts = [" ".join(line for _, line in group) for _, group in groupby(starts, key=lambda each: each[0])]
    plain = [re.sub(r"`[^`]*`", "code", _LINK.sub(r"\1", text)) for text in texts]
    return [_ITEM.sub("", text, count=1) for text in plain if text.strip() and not text.startswith(("|", "#"))]


def words(text: str) -> int:
    return len(_WORD.findall(text))


def test_sentences_are_short() -> None:
    found = [words(each) for page in PAGES for text in paragraphs(page) for each in _END.split(text) if words(each)]
    assert len(found) > 1_000
    assert mean(found) <= SENTENCE


def test_paragraphs_are_short() -> None:
    long = [f"{page.name}: {text[:60]}" for page in PAGES for text in paragraphs(page) if words(text) > PARAGRAPH]
    assert long == []


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", _CODE.sub("", page.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", _LINK.sub(r"\1", each).lower()).replace(" ", "-") for each in headings}


def test_links_lead_to_headings() -> None:
    broken = []
    for page in [*PAGES, *CHINESE, ROOT / "CHANGELOG.md", *ROOT.glob("docs/decisions/*.md")]:
        for target, anchor in re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", _CODE.sub("", page.read_text("utf-8"))):
            if "://" not in target and anchor not in anchors(page.parent / target if target else page):
                broken.append(f"{page.name}: {target}#{anchor}")
    assert broken == []


def test_files_that_the_pages_name_exist() -> None:
    named = {
        (page.name, path)
        for page in PAGES
        for path in re.findall(
            r"\b((?:web/src|packages|src|tests|benchmarks|evals|examples)/[\w./-]*\w)", page.read_text("utf-8")
        )
    }
    assert len(named) > 50
    assert [each for each in sorted(named) if not (ROOT / each[1]).exists()] == []


def test_modules_that_the_architecture_names_exist() -> None:
    named = re.findall(r"`([\w-]+/[\w./-]*|\w+\.py)`", (ROOT / "ARCHITECTURE.md").read_text("utf-8"))
    assert len(named) > 40
    assert [each for each in named if not (ROOT / "src/longthread" / each).exists() and each != "src/longthread/"] == []


def test_the_architecture_fits_two_screens() -> None:
    assert len((ROOT / "ARCHITECTURE.md").read_text("utf-8").splitlines()) <= 110


def test_both_readmes_have_the_same_parts() -> None:
    def shape(page: str) -> list[str]:
        text = (ROOT / page).read_text("utf-8")
        return re.findall(r"^(#+ |```\w+$)", text, re.MULTILINE)

    assert shape("README.md") == shape("README.zh-CN.md")


def test_both_readmes_lead_to_the_same_pages() -> None:
    def links(page: str) -> list[str]:
        targets = re.findall(r"\]\(([^)#\s]+)", (ROOT / page).read_text("utf-8"))
        return sorted(each.replace("docs/zh/", "docs/") for each in targets if not each.startswith("README"))

    assert links("README.md") == links("README.zh-CN.md")


def nodes(kinds: type | UnionType) -> Iterator[tuple[Path, Any]]:
    """Yield each part of such a kind of the packages' code, with its file."""
    for source in SOURCES:
        yield from (
            (source, node) for node in ast.walk(ast.parse(source.read_text("utf-8"))) if isinstance(node, kinds)
        )


def test_few_functions_are_named_by_a_bare_participle() -> None:
    """A function is named by what it does: `describe_window`, not `told`."""
    names = [f"{source.name}: {node.name}" for source, node in nodes(_FUNCTION) if _PARTICIPLE.fullmatch(node.name)]
    assert len(names) <= PARTICIPLES, names


def test_few_docstrings_have_private_words() -> None:
    documented = nodes(ast.Module | ast.ClassDef | _FUNCTION)
    words = [
        f"{source.name}: {word[0]}"
        for source, node in documented
        if (word := _PRIVATE_WORD.search(ast.get_docstring(node) or ""))
    ]
    assert len(words) <= PRIVATE_WORDS, words
