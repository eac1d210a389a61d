"""Users: another user's data is as if it did not exist."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from tests.contract.base import USER, Contract, position, rows_of, thread_with

from longthread.errors import ShareNotFound, ThreadNotFound
from longthread.memory.forget import forget_user
from longthread.store import endpoints, listing, log, share_links
from longthread.store.driver import Driver
from longthread.store.share_links import ShareLink


class KeyContract(Contract):
    """`longthread.store.endpoints`."""

    async def test_a_key_is_one_users_and_goes_with_them(self, store: Driver) -> None:
        async with store.writing() as tx:
            for user in (USER, "other"):
                await endpoints.save_key(tx, "openai", f"old {user}".encode(), user_id=user)
                await endpoints.save_key(tx, "openai", f"new {user}".encode(), user_id=user)
            await endpoints.save_key(tx, "groq", b"\0", user_id=USER)
            found = await endpoints.list_keys(tx, USER)
            assert [(each.provider, each.sealed) for each in found] == [("groq", b"\0"), ("openai", b"new u")]
            assert await endpoints.remove_key(tx, "groq", user_id=USER)
            assert not await endpoints.remove_key(tx, "groq", user_id="other")
        await forget_user(store, USER)
        async with store.reading() as tx:
            assert await endpoints.list_keys(tx, USER) == []
            assert len(await endpoints.list_keys(tx, "other")) == 1


class ShareContract(Contract):
    """`longthread.store.share_links`."""

    async def test_a_link_is_found_by_its_token_until_it_is_revoked_or_expires(self, store: Driver) -> None:
        await thread_with(store, "a", user_id=USER)
        soon, past = datetime(2040, 1, 1, tzinfo=UTC), datetime(2020, 1, 1, tzinfo=UTC)
        made: list[tuple[ShareLink, str]] = []
        async with store.writing() as tx:
            for until in (soon, None, past):
                made.append(await share_links.create(tx, "t", user_id=USER, tip=1, run_id="r", expires_at=until))
            assert await share_links.of_thread(tx, "t") == [made[0][0], made[1][0]]
            assert await share_links.find(tx, made[0][1]) == made[0][0]
            for token in (made[2][1], "", "x", "\ud800"):
                with pytest.raises(ShareNotFound):
                    await share_links.find(tx, token)
            with pytest.raises(ThreadNotFound):
                await share_links.revoke(tx, "t", made[0][0].id, user_id="other")
            await share_links.revoke(tx, "t", made[0][0].id, user_id=USER)
            with pytest.raises(ShareNotFound):
                await share_links.revoke(tx, "t", made[0][0].id, user_id=USER)
            await share_links.create(tx, "t", user_id=USER, tip=1, run_id=None, expires_at=None)
        assert (await rows_of(store))["share_links"] == 2, "the expired one is gone"
        async with store.writing() as tx:
            await log.delete_thread(tx, "t", user_id=USER)
            with pytest.raises(ShareNotFound):
                await share_links.find(tx, made[1][1])


class UserContract(Contract):
    """No route leads from one user to another's thread."""

    async def test_a_user_never_sees_anothers_thread(self, store: Driver) -> None:
        await thread_with(store, "secret", user_id="owner")
        async with store.writing() as tx:
            for attempt in (
                lambda: log.find_thread(tx, "t", user_id="other"),
                lambda: log.create_thread(tx, "t", user_id="other"),
                lambda: log.rename_thread(tx, "t", "mine", user_id="other"),
                lambda: log.delete_thread(tx, "t", user_id="other"),
            ):
                with pytest.raises(ThreadNotFound):
                    await attempt()
            assert await listing.list_threads(tx, user_id="other") == []
            assert await listing.search_threads(tx, "text", user_id="other") == []
            assert await listing.threads_that_begin(tx, "t", user_id="other") == []
        async with store.reading() as tx:
            assert (await log.find_thread(tx, "t", user_id="owner")).title is None
        assert await position(store) == (1, 1)

    @pytest.mark.parametrize("other", ["OWNER", "owner ", " owner", "Owner", "ówner", "%", ""])
    async def test_names_that_look_alike_are_different_users(self, store: Driver, other: str) -> None:
        await thread_with(store, "a", user_id="owner")
        await thread_with(store, "a", thread_id="theirs", user_id=other)
        for user, mine in (("owner", "t"), (other, "theirs")):
            async with store.reading() as tx:
                assert [thread.id for thread in await listing.list_threads(tx, user_id=user)] == [mine]
                assert [thread.id for thread, _ in await listing.search_threads(tx, "text", user_id=user)] == [mine]

    async def test_ids_that_look_alike_are_different_threads(self, store: Driver) -> None:
        names = ["t", "T", "t ", "ｔ", "é", "e\u0301"]
        for name in names:
            await thread_with(store, f"in {name}", thread_id=name)
        async with store.reading() as tx:
            assert sorted(t.id for t in await listing.list_threads(tx, user_id="u")) == sorted(names)
            for name in names:
                [entry] = await log.branch(tx, name, 1)
                assert entry.id == f"in {name}"
