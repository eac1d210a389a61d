"""The page has a sentence of its own, in both languages, for each error whose message is for a command line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import longthread
from longthread.errors import LongthreadError

TEXTS = Path(longthread.__file__).parents[2] / "web" / "src" / "i18n"
COMMAND = re.compile(r"`longthread|(?<![\w-])--[a-z]|LONGTHREAD_|\b[A-Z]+_[A-Z_]+\b|\.env\b|pip install|\{command\}")
NEVER_ON_THE_PAGE = {
    "memory_not_found": "the page asks for no memory",
    "not_imported": "imports are commands",
    "backup_damaged": "backups are commands",
    "export_incomplete": "exports to LangGraph's savers are commands",
    "embedder_unavailable": "it is a warning of the log",
    "port_in_use": "there is no page then",
    **dict.fromkeys(
        ("not_logged_in", "not_on_server", "option_not_on_server", "server_key_refused", "server_key_unreadable"),
        "they are about a server that the command line speaks to",
    ),
    "server_unreachable": "it is about a server that the command line speaks to",
    "address_unavailable": "there is no page then",
}


def kinds(root: type[LongthreadError] = LongthreadError) -> Iterator[type[LongthreadError]]:
    for kind in root.__subclasses__():
        yield kind
        yield from kinds(kind)


def sentences(language: str) -> dict[str, str]:
    text = (TEXTS / language / "problems.ts").read_text("utf-8")
    found = dict(re.findall(r'^  "problem\.(\w+)":\s+"(.*)",$', text, re.MULTILINE))
    assert len(found) == text.count('"problem.')
    return found


def names(text: str) -> set[str]:
    return set(re.findall(r"\{(\w+)\}", text))


def test_an_error_for_a_command_line_has_a_sentence_for_the_page() -> None:
    told = {kind.code for kind in kinds() if COMMAND.search(kind.message)} - NEVER_ON_THE_PAGE.keys()
    assert len(told) > 15
    for language in ("en", "zh"):
        assert told - sentences(language).keys() == set(), language


def test_the_sentences_of_both_languages_say_the_same_and_name_no_command() -> None:
    english, chinese = sentences("en"), sentences("zh")
    assert english.keys() == chinese.keys()
    for code, text in english.items():
        assert names(text) == names(chinese[code]), code
        assert not COMMAND.search(text) and not COMMAND.search(chinese[code]), code


def test_a_sentence_asks_for_nothing_that_its_error_does_not_say() -> None:
    messages = {kind.code: kind.message for kind in kinds()}
    for code, text in sentences("en").items():
        if code in messages:
            # Errors of MySQL's and PostgreSQL's login have the same names as their parent.
            assert names(text) <= names(messages[code]), code
