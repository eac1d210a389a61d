"""Each statement about users' or threads' rows says whose they are: by the user, or by a thread that its caller has
found or locked for the user. `ELSE` has all others, and why they may."""

from __future__ import annotations

import re
from collections.abc import Mapping, Set

import pytest

from longthread.store.driver import Driver
from longthread.store.queries import queries
from longthread.store.tables import read_tables

_TABLE = re.compile(r"\b(?:FROM|JOIN|UPDATE|INTO)\s+(\w+)")
_COMMENT = re.compile(r"--[^\n]*")
_OF_USER = re.compile(
    r"user_id\b[^;]*:user_id|:user_id[^;]*user_id|\(:user_id|user_id = :id"
    r"|(?:to_id|actor|asker|decided_by|made_by|subject|\bid) = :user_id"
)
_OF_THREAD = re.compile(
    r"\b(?:thread_id|session_id|asked_in|parent_thread_id) (?:=|<>) (?:CAST\()?:\w+|:thread_id\b|:session_id\b"
)
_IS_THREAD = re.compile(r"\bid = :id\b|VALUES \(:id")

ELSE: Mapping[str, Set[str]] = {
    "found by a secret, which only its owner has": {
        "select_share",
        "select_board_link",
        "select_session",
        "touch_session",
        "delete_session",
        "select_link",
        "delete_link",
    },
    "of a board that the caller has found or locked for its user": {
        "update_board",
        "refresh_board",
        "select_board_links",
        "delete_board_link",
        "delete_expired_board_links",
    },
    "of a memory that the caller has found for its user": {"put_memory_said", "edit_memory", "put_memory_vector"},
    "of threads that the caller has found for their user": {
        "count_queued_questions_of_threads",
        "select_run_states",
        "select_vectors_between",
        "write_client",
        "write_state_signature",
        "count_access",
        "lock_threads",
    },
    "of the threads of deletions, which a user's request began": {
        "select_pending_deletion",
        "delete_pending_deletion",
        "select_deletions_without_job",
    },
    "of runs that this process executes": {"select_held_runs", "select_leases", "insert_texts"},
    "of a key that the request has shown, or of the run that it began": {
        "select_key",
        "touch_key",
        "count_runs_of_key",
        "select_budget_of_key",
        "select_spent_by_key",
    },
    "of an upload, whose user the caller compares or has asked for": {"select_upload", "delete_upload"},
    "of a login provider's user, whom the provider has named": {"select_identity"},
    "of a project that the caller was found to be a member of": {"delete_project_members", "select_project_members"},
    "for administrators, who see names": {
        "select_all_projects",
        "select_keys",
        "select_names_of_keys",
        "select_groups",
        "select_members",
    },
    "of the one link that makes the first administrator": {"select_setup_link", "delete_setup_link"},
    "the server's own work for everyone, which answers nobody": {
        "call_off_job",
        "claim_runs",
        "count_belongings",
        "count_queued_questions",
        "count_runs",
        "delete_ended_sessions",
        "delete_job",
        "fail_job",
        "foreign_threads",
        "give_back_job",
        "give_up_job",
        "repeat_job",
        "select_any_unowned",
        "select_boards_without_job",
        "select_claimable",
        "select_job_owner",
        "select_startable_questions",
        "select_threads_without_nodes",
        "select_unwritten_summaries",
        "select_users_of_langgraph",
        "select_users_with_loose",
        "select_waiting_jobs",
    },
}


@pytest.mark.one_backend
async def test_each_statement_says_whose_rows_it_means(store: Driver) -> None:
    async with store.reading() as tx:
        tables = await read_tables(tx, whole=True)
    owned = {table.name for table in tables.all if table.thread or "user_id" in table.by_name}
    checked, left = 0, set[str]()
    for dialect in ("sqlite", "postgres"):
        for name, text in queries(dialect).items():
            sql = _COMMENT.sub("", text)
            about = owned & set(_TABLE.findall(sql))
            checked += bool(about)
            is_of_thread = _OF_THREAD.search(sql) or ("threads" in about and _IS_THREAD.search(sql))
            if about and not _OF_USER.search(sql) and not is_of_thread:
                left.add(name)
    assert checked > 700
    assert left == set().union(*ELSE.values()), "compare the user or the thread in the statement, or say why not"
