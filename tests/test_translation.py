"""The Chinese pages say all that the English ones say: the same headings, code and links, one for one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs/zh"
PAGES = sorted(str(page.relative_to(FOLDER)) for page in FOLDER.rglob("*.md"))
FIRST = {
    "README.md",
    "gateway.md",
    "guide/sql.md",
    "how-to/ask.md",
    "how-to/connect-model.md",
    "how-to/files.md",
    "how-to/gateway-clients.md",
    "how-to/install.md",
    "how-to/langgraph.md",
    "how-to/local-models.md",
    "how-to/plugins.md",
    "how-to/servers.md",
    "reference/analyst-eval.md",
    "reference/commands.md",
    "reference/limits.md",
}
"""With the two READMEs: what a user reads first."""
_CODE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
_HAN = re.compile(r"[\u4e00-\u9fff]")


def read(page: str) -> tuple[str, str]:
    return (ROOT / "docs" / page).read_text("utf-8"), (FOLDER / page).read_text("utf-8")


def outline(text: str) -> list[str]:
    """What is not words: the levels of headings, the items of lists and the rows of tables, in their order."""
    return re.findall(r"^(#+|-|\d+\.|\|)(?= )", _CODE.sub("", text), re.MULTILINE)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("page", PAGES)
def test_both_languages_have_the_same_headings_lists_and_tables(page: str) -> None:
    english, chinese = read(page)
    assert outline(chinese) == outline(english)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("page", PAGES)
def test_both_languages_have_the_same_code(page: str) -> None:
    english, chinese = read(page)
    assert _CODE.findall(chinese) == _CODE.findall(english)
    # A name in a sentence may stand there once more, but none is missing.
    named = [set(re.findall(r"`([^`\n]+)`", _CODE.sub("", text))) for text in (english, chinese)]
    assert named[0] - named[1] == set()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("page", PAGES)
def test_both_languages_lead_to_the_same_pages(page: str) -> None:
    def links(text: str, folder: Path) -> list[str]:
        targets = re.findall(r"\]\(([^)#\s]+)", _CODE.sub("", text))
        local = (str((folder / page).parent.joinpath(each).resolve()) for each in targets if "://" not in each)
        return sorted(each.replace("/docs/zh/", "/docs/").replace("README.zh-CN.md", "README.md") for each in local)

    english, chinese = read(page)
    assert links(chinese, FOLDER) == links(english, ROOT / "docs")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("page", PAGES)
def test_a_chinese_page_is_in_chinese(page: str) -> None:
    """Each heading, and each paragraph of more than a few words, has Chinese characters."""
    _, chinese = read(page)
    texts = [each for each in re.split(r"\n\s*\n", _CODE.sub("", chinese)) if not each.startswith(("|", "<!--"))]
    plain = [re.sub(r"`[^`]*`|\]\([^)]*\)", "", each) for each in texts]
    assert [each for each in plain if len(each.split()) > 4 and not _HAN.search(each)] == []


def test_both_readmes_have_the_same_headings_lists_tables_and_code() -> None:
    """Their code differs in comments alone. test_prose.py compares their links."""
    english, chinese = ((ROOT / page).read_text("utf-8") for page in ("README.md", "README.zh-CN.md"))
    assert outline(chinese) == outline(english)
    code = [re.sub(r"\s+# .*", "", "\n".join(_CODE.findall(text))) for text in (english, chinese)]
    assert code[0] == code[1]
    assert len(english.splitlines()) <= 120


def test_the_pages_that_are_read_first_are_there() -> None:
    assert {*PAGES} >= FIRST
