"""The name of a file that is downloaded is safe on every system, in every language."""

from __future__ import annotations

from urllib.parse import unquote

import pytest

from longthread.server.fields import content_disposition


@pytest.mark.parametrize(
    ("name", "plain", "whole"),
    [
        ("How many rockets?", "How many rockets.md", "How many rockets.md"),
        ("每年发射多少次？", "conversation.md", "每年发射多少次？.md"),
        ("../../etc/passwd", "etc passwd.md", "etc passwd.md"),
        ('a"; filename="b.exe', "a ; filename= b.exe.md", "a ; filename= b.exe.md"),
        ("a\r\nSet-Cookie: x", "a Set-Cookie x.md", "a Set-Cookie x.md"),
        ("report\u202egpj.exe", "report gpj.exe.md", "report gpj.exe.md"),
        ("100 %25", "conversation.md", "100 %25.md"),
        ("\ud800", "conversation.md", "conversation.md"),
        ("...", "conversation.md", "conversation.md"),
        (None, "conversation.md", "conversation.md"),
    ],
)
def test_a_file_has_its_name_as_far_as_every_system_takes_it(name: str | None, plain: str, whole: str) -> None:
    said = content_disposition(name, "md", unnamed="conversation")
    first, second = said.removeprefix('attachment; filename="').split("\"; filename*=UTF-8''")
    assert (first, unquote(second)) == (plain, whole)
    assert said.isascii() and "\n" not in said


@pytest.mark.parametrize("name", ["年" * 300, "🚀" * 300, "a" * 300])
def test_a_name_has_room_in_255_bytes_with_its_label(name: str) -> None:
    whole = unquote(content_disposition(name, "parquet", unnamed="result", label="q12").split("''")[1])
    assert len(whole.encode()) <= 255
    assert whole.endswith(" q12.parquet")


def test_a_label_is_as_safe_as_the_name() -> None:
    labels = {
        'x"\r\nSet-Cookie: a=b': "q x Set-Cookie a=b.csv",
        "../q1": "q q1.csv",
        "第一\u202e问": "q 第一 问.csv",
        "\ud800": "q.csv",
        "x" * 300: f"q {'x' * 20}.csv",
    }
    for label, whole in labels.items():
        said = content_disposition("q", "csv", unnamed="result", label=label)
        assert unquote(said.split("''")[1]) == whole
        assert said.isascii() and said.isprintable() and said.count('"') == 2


def test_a_name_keeps_its_room_beside_a_long_label() -> None:
    whole = unquote(content_disposition("年" * 300, "parquet", unnamed="result", label="🚀" * 300).split("''")[1])
    assert whole == f"{'年' * 39} {'🚀' * 20}.parquet"
    assert len(whole.encode()) <= 255
