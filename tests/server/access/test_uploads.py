"""Uploaded files are of the user who sent them: another one's is as if it did not exist."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from tests.server.access.team import Team, code_of, team_of
from tests.server.conftest import Serve

pytestmark = pytest.mark.one_backend

CSV = b"name,n\na,1\n"


@pytest.fixture
def team(serve: Serve) -> Iterator[Team]:
    with team_of(serve(["An answer."], auth="login")) as team:
        yield team


def upload(client: httpx.Client, name: str = "a.csv") -> str:
    answer = client.post("/api/uploads", params={"name": name}, content=CSV)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["upload"])


def test_an_upload_is_of_who_sent_it(team: Team) -> None:
    bob = team.join("Bob", role="admin")
    mine = upload(bob)
    unknown = "0192f0c1-5a0e-7cc3-98c4-dc0c0c07398f"

    def refusals(upload_id: str) -> list[str]:
        source = {"name": "stolen", "uploads": [upload_id]}
        answers = [team.admin.delete(f"/api/uploads/{upload_id}"), team.admin.post("/api/sources", json=source)]
        assert [code_of(each) for each in answers] == [(404, "upload_not_found")] * 2
        return [each.text.replace(upload_id, "ID") for each in answers]

    assert refusals(mine) == refusals(unknown)
    assert bob.delete(f"/api/uploads/{mine}").status_code == 204
    assert code_of(bob.delete(f"/api/uploads/{mine}")) == (404, "upload_not_found")
    kept = upload(bob, "b.csv")
    assert bob.post("/api/sources", json={"name": "b", "uploads": [kept]}).status_code == 201
    assert code_of(bob.delete(f"/api/uploads/{kept}")) == (409, "definition_in_use")
    assert refusals(kept) == refusals(unknown)


def test_what_came_before_there_were_users_is_the_first_users(serve: Serve) -> None:
    before = serve(["An answer."])
    mine = upload(before.client)
    before.stop()
    with team_of(serve(["An answer."], auth="login")) as team:
        bob = team.join("Bob", role="admin")
        assert code_of(bob.delete(f"/api/uploads/{mine}")) == (404, "upload_not_found")
        assert team.admin.delete(f"/api/uploads/{mine}").status_code == 204


def test_a_builder_adds_files_and_no_addresses(team: Team, shop: str) -> None:
    bob, eve, max_ = team.join("Bob", role="builder"), team.join("Eve", role="builder"), team.join("Max")
    refused = max_.post("/api/uploads", params={"name": "a.csv"}, content=CSV)
    assert code_of(refused) == (403, "role_missing")
    added = bob.post("/api/sources", json={"name": "mine", "uploads": [upload(bob)]})
    assert added.status_code == 201, added.text
    assert (added.json()["address"], added.json()["files"]) == (None, ["a.csv"])
    assert [each["name"] for each in bob.get("/api/sources").json()["sources"]] == ["demo", "mine"]
    assert bob.get("/api/sources/mine/preview").json()["of"] == 1
    for where in (shop, "/etc/passwd", "postgres://localhost/x"):
        refused = bob.post("/api/sources", json={"name": "there", "address": where})
        assert code_of(refused) == (403, "role_missing")
    assert [each["name"] for each in eve.get("/api/sources").json()["sources"]] == ["demo"]
    assert upload(eve), "no conflict with a file that she does not see"
    replaced = bob.post("/api/uploads", params={"name": "a.csv", "on_conflict": "replace"}, content=CSV + b"b,2\n")
    assert replaced.json()["source"]["name"] == "mine"
    again = eve.post("/api/uploads", params={"name": "a.csv", "on_conflict": "replace"}, content=CSV)
    assert again.json()["source"] is None
