from __future__ import annotations

from pathlib import Path

import pytest

from longthread.tools.analysis.address import (
    is_url,
    normalize_spec,
    parse_url,
    redact_spec,
    same_source,
    scrub_message,
    secrets_of,
)


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("postgresql://me:s3cret@host/db", "postgresql://me:***@host/db"),
        (
            "postgresql://me:s%403cret@host/db?sslmode=require&password=s3cret",
            "postgresql://me:***@host/db?sslmode=require",
        ),
        ("postgresql:///db?host=/run/pg", "postgresql:///db?host=%2Frun%2Fpg"),
        ("postgresql://me:p@ss@host:port/db?x=y", "postgresql://…"),
        ("postgresql://u:se/cret@host:abc/db", "postgresql://…"),
        ("postgresql://u:12/s3cret@host/db", "postgresql://u:***@host/db"),
        ("postgresql://u:s3c@ret@host/db", "postgresql://…"),
        ("postgresql://u%3As3cret@host/db", "postgresql://…"),
        ("postgresql://u%40mail.example:s3cret@host/db", "postgresql://u%40mail.example:***@host/db"),
        ("postgresql://u:p@h/db?host=u:s3cret@h2", "postgresql://u:***@h/db"),
        ("postgresql://[::1]:5432/db", "postgresql://[::1]:5432/db"),
        ("postgres:u:se/cret@h/db", "postgres:***@h/db"),
        ("jdbc:postgresql://u:s3c@ret@h/db", "jdbc:***@h/db"),
        ("u:sec@ret@host", "u:***@host"),
        ("host=h user=u password=s3cret", "host=h user=u password=***"),
        ("host=h PASSWORD = 's3 cret' user=u", "host=h PASSWORD = *** user=u"),
        ("md:db?motherduck_token=s3cret&x=1", "md:db?motherduck_token=***&x=1"),
        ("sqlite:////data/me@home/x.db", "sqlite:////data/me%40home/x.db"),
        ("/data/a:b@c/file.csv", "/data/a:b@c/file.csv"),
        ("postgres//me:s3cret@host/db", "postgres//me:***@host/db"),
        ("/data/a:b/file.csv", "/data/a:b/file.csv"),
        ("C:/data/x.csv", "C:/data/x.csv"),
    ],
)
def test_secrets_are_not_shown(spec: str, told: str) -> None:
    assert redact_spec(spec) == told


def test_a_message_is_scrubbed() -> None:
    secrets = secrets_of(parse_url("postgresql://me:top%20secret@h/d?sslpassword=other"))
    assert sorted(secrets) == ["other", "top secret"]
    assert scrub_message("bad top secret and other", secrets) == "bad *** and ***"


def test_a_path_is_no_url() -> None:
    assert not is_url("data/x.csv")
    assert is_url("sqlite:///x")


@pytest.mark.parametrize(
    ("spec", "kept"),
    [
        ("postgresql://me:s3cret@host:5433/db", "postgresql://me@host:5433/db"),
        ("postgresql://me:s%2F3@h/db?options=-csearch_path%3Da", "postgresql://me@h/db?options=-csearch_path%3Da"),
        ("postgresql://me@h/db?password=s3cret&sslpassword=s3&sslmode=require", "postgresql://me@h/db?sslmode=require"),
        ("postgresql://h/db;password=s3cret", "postgresql://h/db%3Bpassword%3D***"),
        ("postgresql:///db?host=/run/pg", "postgresql:///db?host=%2Frun%2Fpg"),
        ("sqlite:////data/key=1/x.db", "sqlite:////data/key%3D1/x.db"),
        ("demo", "demo"),
    ],
)
def test_a_remembered_address_can_be_opened_again_and_has_no_password(spec: str, kept: str) -> None:
    assert normalize_spec(spec) == kept
    assert normalize_spec(kept) == kept


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("postgresql://me:s3cret@h/db", "postgresql://me@h/db", True),
        ("postgresql://me:s3cret@h/db", "postgresql+psycopg://me:other@h/db", True),
        ("postgresql://me:s3cret@h/db", "postgresql://me:***@h/db", True),
        ("postgresql://me@h/db", "postgresql://you@h/db", False),
        ("postgresql://me@h/db", "postgresql://me@h/other", False),
        ("postgresql://h/db?options=-csearch_path%3Da", "postgresql://h/db", False),
        ("demo", "demo", True),
        ("demo", "./demo", False),
    ],
)
def test_the_same_source(one: str, other: str, same: bool) -> None:
    assert same_source(one, other) is same


def test_a_file_is_the_same_from_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert same_source("x.csv", f"{tmp_path}/x.csv")
    assert same_source("sqlite:///x.db", f"sqlite:///{tmp_path}/x.db")
