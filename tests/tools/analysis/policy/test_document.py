"""The document that declares policies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from longthread.errors import PoliciesInvalid, SourceWithoutPolicy
from longthread.tools.analysis.user_policy import Policies, UserPolicy

TEXT = """
users:
  ada: {region: EU, teams: [1, 2]}
sources:
  - source: shop.sqlite
    tables:
      customers:
        rows: region = :region
        hide: [email]
        mask: {phone: "'***'", name: null}
        except: [root]
      salaries: {hidden: true}
"""


@pytest.fixture
def written(tmp_path: Path) -> Path:
    path = tmp_path / "policies.yaml"
    path.write_text(TEXT)
    return path


def test_a_user_gets_what_holds_for_them(written: Path) -> None:
    assert Policies.read(written).of("shop.sqlite", "ada") == UserPolicy(
        values={"region": "EU", "teams": (1, 2), "user": "ada"},
        rows={"customers": "region = :region"},
        hide={"customers": frozenset({"email"}), "salaries": frozenset()},
        mask={"customers": {"phone": "'***'", "name": None}, "salaries": {}},
        hidden=frozenset({"salaries"}),
    )


def test_nobody_names_themselves_another_user() -> None:
    policies = Policies.model_validate({"users": {"eve": {"user": "ada"}}, "sources": [{"source": "shop.sqlite"}]})
    assert policies.of("shop.sqlite", "eve").values == {"user": "eve"}


def test_an_exempt_user_reads_the_table(written: Path) -> None:
    found = Policies.read(written).of("shop.sqlite", "root")
    assert (dict(found.rows), found.hidden) == ({}, frozenset({"salaries"}))


def test_the_same_source_by_another_address(written: Path) -> None:
    policies = Policies.read(written)
    assert policies.of(str(Path("shop.sqlite").absolute()), "ada").hidden == {"salaries"}
    with pytest.raises(SourceWithoutPolicy, match="demo"):
        policies.of("demo", "ada")


@pytest.mark.parametrize("scheme", ["postgresql", "mysql"])
def test_a_source_that_is_not_named_is_told_without_its_password(written: Path, scheme: str) -> None:
    with pytest.raises(SourceWithoutPolicy, match="ada:.*@127.0.0.1/shop") as told:
        Policies.read(written).of(f"{scheme}://ada:g%40heim@127.0.0.1/shop?sslpassword=geheim2", "ada")
    assert "heim" not in f"{told.value}{told.value.details}"


def test_json_says_the_same(tmp_path: Path) -> None:
    row: dict[str, Any] = {"source": "demo", "tables": {"launches": {"except": ["root"], "hidden": True}}}
    (tmp_path / "p.json").write_text(json.dumps({"sources": [row]}))
    assert Policies.read(tmp_path / "p.json").of("demo", "ada").hidden == {"launches"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("sources: [{source: x, table: {}}]", "sources.0.table"),
        ("users: {}", "sources"),
        ("sources: [{source: x, tables: {t: {hide: email}}}]", "hide"),
        ("sources: [", "policies.yaml"),
        ("- 1", "policies.yaml"),
        ("sources: [{source: x, tables: {t: {hiden: true}}}]", "hiden"),
    ],
)
def test_a_document_that_is_not_understood_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "policies.yaml").write_text(text)
    with pytest.raises(PoliciesInvalid, match=reason):
        Policies.read(tmp_path / "policies.yaml")


def test_a_document_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PoliciesInvalid, match="No such file"):
        Policies.read(tmp_path / "none.yaml")


GROUPS = {
    "users": {"ada": {"region": "EU"}},
    "groups": {"sales": {"region": "US", "teams": [1, 2]}, "support": {"region": "APAC", "teams": [2, 3], "level": 1}},
    "sources": [
        {
            "source": "shop.sqlite",
            "tables": {"orders": {"rows": "team IN (:groups)", "except_groups": ["audit"]}, "plans": {"hidden": True}},
        }
    ],
}


@pytest.mark.parametrize(
    ("user", "groups", "values"),
    [
        ("ada", None, {"region": "EU", "user": "ada"}),
        ("ada", [], {"region": "EU", "user": "ada", "groups": ()}),
        ("bob", ["sales"], {"region": "US", "teams": (1, 2), "user": "bob", "groups": ("sales",)}),
        (
            "bob",
            ["support", "sales"],
            {
                "region": ("US", "APAC"),
                "teams": (1, 2, 3),
                "level": 1,
                "user": "bob",
                "groups": ("sales", "support"),
            },
        ),
        ("ada", ["sales"], {"region": "EU", "teams": (1, 2), "user": "ada", "groups": ("sales",)}),
        ("eve", ["unknown"], {"user": "eve", "groups": ("unknown",)}),
    ],
)
def test_groups_give_their_members_values(user: str, groups: Any, values: Any) -> None:
    assert Policies.model_validate(GROUPS).of("shop.sqlite", user, groups).values == values


def test_members_of_an_exempt_group_read_the_table() -> None:
    policies = Policies.model_validate(GROUPS)
    assert dict(policies.of("shop.sqlite", "bob", ["audit"]).rows) == {}
    assert dict(policies.of("shop.sqlite", "audit", ["sales"]).rows) == {"orders": "team IN (:groups)"}
    assert policies.of("shop.sqlite", "bob", ["audit"]).hidden == {"plans"}


def test_no_values_make_a_user_a_member_of_a_group() -> None:
    given = {**GROUPS, "users": {"eve": {"groups": ["sales"]}}}
    assert Policies.model_validate(given).of("shop.sqlite", "eve", []).values == {"user": "eve", "groups": ()}
