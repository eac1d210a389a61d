"""Schema linking: names, comments and values, English and Chinese."""

from __future__ import annotations

import pytest

from longthread.tools.analysis.schema_linking import Linker, atoms, document, split_name, stem, terms


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("countries", "country"),
        ("hired", "hire"),
        ("movies", "movie"),
        ("classes", "class"),
        ("shipping", "shipped"),
        ("people", "person"),
        ("addresses", "address"),
        ("cancelled", "canceled"),
        ("studies", "studied"),
        ("prices", "price"),
    ],
)
def test_forms_of_a_word_have_one_stem(one: str, other: str) -> None:
    assert stem(one) == stem(other)


@pytest.mark.parametrize("word", ["status", "address", "analysis", "speed", "bus", "is", "his"])
def test_words_that_only_look_like_plurals_keep_their_end(word: str) -> None:
    assert stem(word) == word


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("InvoiceLineID", "invoice line id"),
        ("tbl_order_items", "tbl order items"),
        ("HTTPServer2", "http server 2"),
        ("客户_名", "客户 名"),
    ],
)
def test_identifiers_are_split(name: str, words: str) -> None:
    assert split_name(name) == words


def test_chinese_is_searched_by_bigrams() -> None:
    assert terms("运载火箭 rockets") == ["运载", "载火", "火箭", "rocket"]
    assert atoms("客户2") == ("客", "户", "2")


def test_a_table_is_found_by_name_comment_and_value() -> None:
    documents = {
        "orders": document("orders", columns=["id", "amount"]),
        "t1": document("t1", texts=["运载火箭"]),
        "genres": document("genres", columns=["name"], texts=["Rock", "Jazz"]),
    }
    linker = Linker(documents)
    assert linker.rank("How many orders?")[0][0] == "orders"
    assert linker.rank("火箭有哪些")[0][0] == "t1"
    assert linker.rank("jazz")[0][0] == "genres"
    assert linker.rank("nothing of the kind") == []


def test_a_glossary_widens_a_question() -> None:
    linker = Linker({"customers": document("customers"), "logs": document("logs")}, expand=lambda _: ["customer"])
    assert [name for name, _ in linker.rank("客户")] == ["customers"]


def test_a_rare_word_weighs_more_than_a_common_one_among_a_thousand_tables() -> None:
    documents = {f"log_{n}": document(f"log_{n}", columns=["time", "customer"]) for n in range(1000)}
    documents["refunds"] = document("refunds", columns=["customer", "reason"])
    assert Linker(documents).rank("refund reason of a customer", limit=5)[0][0] == "refunds"
