"""Errors are told by codes that programs go by: they stay as they are."""

from __future__ import annotations

import re
from collections.abc import Iterator

from longthread import errors
from longthread.errors import LongthreadError, ModelNotUsable, NotAsExpected, StoreConflict, ThreadNotFound

KNOWN = """
    address_unavailable agent_of_thread agent_off
    api_failed api_refused api_status archive_invalid arguments_invalid called_on_its_loop
    catalog_invalid checkpoint_unreadable code_failed code_stopped code_unavailable definition_ambiguous
    definition_built_in definition_in_use definition_not_found embedder_unavailable entry_not_found error
    eval_invalid extra_missing import_incomplete invalid_input json_parse_error lease_lost mcp_failed
    mcp_tool_failed memory_not_found
    message_not_storable model_failed model_unavailable not_a_checkpoint_database not_copied not_imported
    not_storable nothing_to_resume number_not_storable policies_invalid policy_unusable port_in_use
    question_too_long result_not_found result_too_long run_elsewhere run_in_progress run_not_found saver_closed
    secret_unusable server_error source_crashed source_empty source_error source_locked source_login_failed
    source_not_allowed source_not_found source_unreachable source_unreadable source_unsupported
    source_without_policy sql_failed sql_refused sql_timeout sql_too_large statements_invalid store_conflict
    store_damaged store_error store_full store_read_only store_too_new store_unavailable text_not_storable
    thread_conflict thread_not_found thread_taken too_many_memories tool_invalid unknown_column unknown_table
    version_not_found window_too_small worker_failed
"""


def classes(of: type[LongthreadError] = LongthreadError) -> Iterator[type[LongthreadError]]:
    yield of
    for each in of.__subclasses__():
        yield from classes(each)


def test_no_code_is_lost_when_a_class_is_named_anew() -> None:
    assert {*KNOWN.split()} <= {each.code for each in classes()}


def test_a_code_is_the_name_of_its_class_unless_it_is_given() -> None:
    assert ThreadNotFound.code == "thread_not_found"
    assert (NotAsExpected.code, ModelNotUsable.code) == (StoreConflict.code, "model_unavailable")

    class MadeUp(StoreConflict):
        """Made up."""

    assert (MadeUp.code, MadeUp.exit_code) == ("made_up", StoreConflict.exit_code)


def test_a_code_is_that_of_one_class_or_of_those_below_it() -> None:
    first: dict[str, type[LongthreadError]] = {}
    for each in classes():
        if each.__module__ == errors.__name__:
            assert re.fullmatch(r"[a-z]+(_[a-z]+)*", each.code)
            assert issubclass(each, first.setdefault(each.code, each))
