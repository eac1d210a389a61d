from __future__ import annotations

import pytest

from longthread.tools.analysis.address import is_url, parsed, scrubbed, secrets_of, shown


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("postgresql://me:s3cret@host/db", "postgresql://me:***@host/db"),
        (
            "postgresql://me:s%403cret@host/db?sslmode=require&password=s3cret",
            "postgresql://me:***@host/db?sslmode=require",
        ),
        ("postgresql:///db?host=/run/pg", "postgresql:///db?host=%2Frun%2Fpg"),
        ("postgresql://me:p@ss@host:port/db?x=y", "postgresql://me:***@host:port/db"),
        ("postgres//me:s3cret@host/db", "postgres//me:***@host/db"),
        ("/data/a:b/file.csv", "/data/a:b/file.csv"),
        ("C:/data/x.csv", "C:/data/x.csv"),
    ],
)
def test_secrets_are_not_shown(spec: str, told: str) -> None:
    assert shown(spec) == told


def test_a_message_is_scrubbed() -> None:
    secrets = secrets_of(parsed("postgresql://me:top%20secret@h/d?sslpassword=other"))
    assert sorted(secrets) == ["other", "top secret"]
    assert scrubbed("bad top secret and other", secrets) == "bad *** and ***"


def test_a_path_is_no_url() -> None:
    assert not is_url("data/x.csv")
    assert is_url("sqlite:///x")
