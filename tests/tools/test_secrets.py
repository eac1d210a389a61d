"""Secrets of tools: filled in by name, from their own variables alone, and taken out of what comes back."""

from __future__ import annotations

import base64
import html
import json
import logging
import re
from pathlib import Path
from urllib.parse import quote, quote_plus, urlencode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples

from longthread.environment import tool_secrets
from longthread.errors import SecretUnusable, ToolInvalid
from longthread.tools.secrets import REMOVED, Secrets, read_secrets, secret_names

KEY = 's3cr+t/K"y=&ü <42>'


def test_secrets_come_from_their_own_variables_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LONGTHREAD_SECRET_API_KEY", "from-environment")
    monkeypatch.setenv("OTHER_KEY", "not-mine")
    (tmp_path / ".env").write_text("LONGTHREAD_SECRET_TOKEN=from-file\nLONGTHREAD_SECRET_API_KEY=hidden-one\n")
    secrets = read_secrets(["API_KEY", "TOKEN", "OTHER_KEY", "HOME"])
    assert secrets.fill("Bearer ${API_KEY}, ${TOKEN}") == "Bearer from-environment, from-file"
    for name in ("OTHER_KEY", "HOME"):
        with pytest.raises(SecretUnusable, match=f"LONGTHREAD_SECRET_{name}"):
            secrets.fill(f"${{{name}}}")
    assert "from-environment" not in repr(tool_secrets(["API_KEY"]))


def test_a_secret_that_is_not_the_tools_own_is_not_filled_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGTHREAD_SECRET_OTHERS", "somebody-elses")
    with pytest.raises(SecretUnusable):
        read_secrets(["API_KEY"]).fill("${OTHERS}")


@pytest.mark.parametrize("value", ["abc", "line\r\nX-Admin: 1", "nul\0nul", "   "])
def test_a_value_that_cannot_be_sent_or_kept_is_refused_without_being_shown(value: str) -> None:
    with pytest.raises(SecretUnusable) as caught:
        Secrets({"API_KEY": value}).fill("Bearer ${API_KEY}")
    assert value not in str(caught.value)


def test_what_a_shell_leaves_at_the_end_is_no_part_of_it() -> None:
    assert Secrets({"API_KEY": "abcd\n"}).fill("${API_KEY}") == "abcd"


def test_a_value_is_not_filled_in_itself() -> None:
    assert Secrets({"A": "${B}${A}", "B": "other"}).fill("${A}") == "${B}${A}"


def test_nothing_shows_a_value(caplog: pytest.LogCaptureFixture) -> None:
    secrets = Secrets({"API_KEY": KEY})
    with caplog.at_level(logging.DEBUG):
        logging.getLogger("longthread").info("%r %s", secrets, secrets)
    assert "API_KEY" in repr(secrets)
    assert KEY not in f"{secrets!r} {secrets} {caplog.text}"


FORMS = {
    "as it is": lambda key: key,
    "in a URL": lambda key: quote(key, safe=""),
    "in a path": quote,
    "in a form": quote_plus,
    "in a query": lambda key: urlencode({"key": key}),
    "in a URL, lower case": lambda key: re.sub("%..", lambda code: code[0].lower(), quote(key, safe="")),
    "twice in a URL": lambda key: quote(quote(key, safe=""), safe=""),
    "in JSON": lambda key: json.dumps({"key": key}),
    "in JSON as UTF-8": lambda key: json.dumps(key, ensure_ascii=False).encode().decode(),
    "in HTML": html.escape,
    "in Base64": lambda key: base64.b64encode(key.encode()).decode(),
    "in Base64 for URLs": lambda key: base64.urlsafe_b64encode(key.encode()).decode(),
    "in Basic authorization": lambda key: base64.b64encode(f"user:{key}".encode()).decode(),
    "in Basic authorization, otherwise aligned": lambda key: base64.b64encode(f"me:{key}:x".encode()).decode(),
    "in hexadecimal": lambda key: key.encode().hex(),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("key", ["sk-live-0123456789abcdef", KEY, "中文密码1234"])
def test_what_comes_back_holds_no_secret(form: str, key: str) -> None:
    text = FORMS[form](key)
    if form == "in JSON as UTF-8" and '"' in key:
        text = text.replace('\\"', '"')
    shown = Secrets({"API_KEY": key}).scrub(f"before {text} after")
    assert REMOVED in shown
    assert shown.startswith("before ")
    assert shown.endswith(" after")
    for part in (key, key[2:-2]):
        decoded = FORMS[form](part)
        assert decoded not in shown


def test_every_part_of_an_answer_is_scrubbed() -> None:
    secrets = Secrets({"API_KEY": "123456789", "TOKEN": "tok-en-tok"})
    answer = {"a": ["tok-en-tok", {"tok-en-tok": 123456789}], "n": 5, "b": True, "c": None, "f": 0.5}
    assert secrets.scrub(answer) == {"a": [REMOVED, {REMOVED: REMOVED}], "n": 5, "b": True, "c": None, "f": 0.5}


def test_a_text_that_was_cut_does_not_end_with_the_beginning_of_a_secret() -> None:
    secrets = Secrets({"API_KEY": "sk-live-0123456789"})
    assert secrets.scrub("the key is sk-live-0123", cut=True) == f"the key is {REMOVED}"
    assert secrets.scrub("the key is sk-live-0123") == "the key is sk-live-0123"
    assert secrets.scrub("nothing of it", cut=True) == "nothing of it"


def test_a_longer_secret_that_holds_a_shorter_one_goes_whole() -> None:
    assert Secrets({"A": "abcd", "B": "abcdefgh"}).scrub("abcdefgh abcd") == f"{REMOVED} {REMOVED}"


def test_without_secrets_nothing_changes() -> None:
    assert Secrets({}).scrub({"a": "***"}) == {"a": "***"}


@settings(max_examples=examples(200))
@given(
    st.text(min_size=8, max_size=40).map(str.strip).filter(lambda key: len(key) >= 8 and key.isprintable()), st.data()
)
def test_any_secret_is_taken_out_of_any_form(key: str, data: st.DataObject) -> None:
    key = key.strip()
    form = data.draw(st.sampled_from(sorted(FORMS)))
    text = FORMS[form](key)
    shown = Secrets({"API_KEY": key}).scrub(f"<{text}>")
    assert key not in shown
    assert text not in shown


@pytest.mark.parametrize(
    ("implementation", "used", "names"),
    [
        ({"secrets": ["A", "B"]}, ["x ${A}"], {"A", "B"}),
        ({}, ["Bearer ${API_KEY}"], {"API_KEY"}),
        ({"secrets": []}, ["nothing"], set()),
    ],
)
def test_a_tool_uses_the_names_of_its_list(implementation: dict[str, object], used: list[str], names: set[str]) -> None:
    assert secret_names(implementation, used) == names


@pytest.mark.parametrize(
    ("implementation", "used", "said"),
    [
        ({"secrets": ["A"]}, ["${B}"], r"\$\{B\}, which is not in its list"),
        ({"secrets": []}, ["${B}"], "not in its list"),
        ({"secrets": "A"}, [], "not a list of names"),
        ({"secrets": [1]}, [], "not a list of names"),
        ({"secrets": ["a b"]}, [], "does not name a secret"),
        ({}, ["${PATH:-x}"], "does not name a secret"),
        ({}, ["${}"], "does not name a secret"),
    ],
)
def test_other_names_are_refused(implementation: dict[str, object], used: list[str], said: str) -> None:
    with pytest.raises(ToolInvalid, match=said):
        secret_names(implementation, used)
