# ruff: noqa: E501 - a statement reads better in one line
"""MySQL sources, on a real MariaDB (or on the server of LONGTHREAD_TEST_MYSQL_URL)."""

from __future__ import annotations

import asyncio
import json
import random
import socket
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pymysql
import pytest
from tests import mysqlserver

from longthread.errors import (
    ExtraMissing,
    SourceEmpty,
    SourceError,
    SourceLocked,
    SourceLoginFailed,
    SourceUnreachable,
    SourceUnreadable,
    SourceUnsupported,
    SqlRefused,
    SqlTimeout,
)
from longthread.tools.analysis.address import SourceUrl
from longthread.tools.analysis.guard import Guard
from longthread.tools.analysis.open import open_source
from longthread.tools.analysis.source import Source
from longthread.tools.analysis.toolbox import analysis_tools

pytestmark = pytest.mark.mysql
Opened = Callable[..., Awaitable[Source]]

SCRIPT = """
CREATE TABLE rockets (id int AUTO_INCREMENT PRIMARY KEY, name varchar(40) NOT NULL COMMENT '名称', `first flight` date,
                      price decimal(10, 2), kind enum('printed', 'dated') NOT NULL) COMMENT '运载火箭';
CREATE TABLE launches (id int, rocket_id int, site text, PRIMARY KEY (id),
                       CONSTRAINT flown FOREIGN KEY (rocket_id) REFERENCES rockets (id)) ENGINE = InnoDB;
INSERT INTO rockets (name, `first flight`, price, kind)
    WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 200)
    SELECT concat('rocket ', i), date('2020-01-01') + INTERVAL i DAY, i * 1.25, 1 + i % 2 FROM n;
CREATE VIEW cheap AS SELECT name, price FROM rockets WHERE price < 10;
CREATE TABLE 客户 (编号 int PRIMARY KEY, 姓名 varchar(20), 备注 text);
INSERT INTO 客户 VALUES (1, '王芳', '火箭🚀'), (2, '李雷', NULL);
CREATE TABLE old (id int, note varchar(20)) ENGINE = MyISAM;
INSERT INTO old VALUES (1, 'kept');
CREATE FUNCTION sneaky() RETURNS int READS SQL DATA RETURN 1;
CREATE FUNCTION st_sneaky() RETURNS int READS SQL DATA RETURN 1;
CREATE FUNCTION initcap(x text) RETURNS int READS SQL DATA RETURN (SELECT count(*) FROM old);
"""
ENDLESS = "SELECT count(*) FROM rockets a, rockets b, rockets c, rockets d, rockets e WHERE a.id + b.id + c.id + d.id + e.id < 0"
SPARE = "SELECT count(*) FROM information_schema.processlist WHERE info LIKE '%rockets e%' AND id <> connection_id()"


@pytest.fixture(scope="module")
def made_url(mysql_server: str) -> Iterator[str]:
    """A database that all tests of this file read."""
    with mysqlserver.database(mysql_server) as url:
        mysqlserver.run(url, SCRIPT)
        yield url


@pytest.fixture
async def source(made_url: str, opened: Opened) -> Source:
    return await opened(made_url, seconds=10)


def told(url: str, sql: str) -> list[Any]:
    """What the server itself says."""
    with closing(mysqlserver.connected(url)) as connection, connection.cursor() as cursor:
        cursor.execute(sql)
        return list(cursor.fetchall())


@contextmanager
def reader(url: str, server: str, rights: str) -> Iterator[str]:
    """The URL of an account that has some rights on a database, with the password `s3crét`."""
    given = SourceUrl.parse(url)
    name = f"r{given.database}"[-30:]
    grant = f"GRANT {rights} ON {given.database}.* TO {name}"
    mysqlserver.run(server, f"CREATE USER {name} IDENTIFIED BY 's3crét'; {grant}")
    try:
        yield replace(given, username=name, password="s3crét").text()
    finally:
        mysqlserver.run(server, f"DROP USER {name}")


async def test_the_catalog(source: Source, ask: Any) -> None:
    data = (await ask(source, "list_tables"))["data"]
    assert sorted(data["tables"]) == sorted(["cheap", "launches", "old", "rockets", "客户"])
    assert data["about"]["rockets"] == {"rows": 200, "kind": "table", "comment": "运载火箭"}
    assert data["about"]["cheap"]["kind"] == "view"
    assert data["columns"]["客户"] == ["编号", "姓名", "备注"]
    rockets = (await ask(source, "describe_table", table="rockets"))["data"]
    columns = {column["name"]: column for column in rockets["columns"]}
    assert rockets["primary_key"] == ["id"]
    assert columns["name"]["comment"] == "名称"
    assert (columns["first flight"]["min"], columns["first flight"]["max"]) == ("2020-01-02", "2020-07-19")
    assert (columns["price"]["min"], columns["price"]["max"]) == (1.25, 250)
    assert columns["kind"]["values"] == ["printed", "dated"]
    assert rockets["referenced_by"] == [{"table": "launches", "columns": ["rocket_id"], "references": ["id"]}]
    sample = (await ask(source, "sample_rows", table="`客户`"))["data"]
    assert sample["rows"] == [[1, "王芳", "火箭🚀"], [2, "李雷", None]]


async def test_an_account_that_may_only_read_sees_keys_too(made_url: str, mysql_server: str, opened: Opened) -> None:
    with reader(made_url, mysql_server, "SELECT") as url:
        schema = await (await opened(url)).schema()
    assert schema.tables["launches"].primary_key == ("id",)
    assert [key.table for key in schema.tables["launches"].foreign_keys] == ["rockets"]


TYPES = """
CREATE TABLE kinds (d decimal(30, 10), whole decimal(5, 0), f float, g double, u bigint unsigned, t tinyint, y year, b bit(3),
    day date, at datetime(3), stamp timestamp NULL, clock time, j json, raw blob, text_ longtext, e enum('a', 'b'),
    s set('x', 'y'), place point, bin varbinary(4), big5 varchar(9) CHARACTER SET gbk);
SET SESSION sql_mode = '', time_zone = '+00:00';
INSERT INTO kinds VALUES (1.5, 7, 1.5, 0.1, 18446744073709551615, -5, 2024, b'101', '2024-02-29', '2024-02-29 10:00:00.125',
    '2024-02-29 10:00:00', '-838:59:59', '{"a": [1, "火"]}', x'00ff', '汉字 😀', 'b', 'x,y', ST_GeomFromText('POINT(1 2)'), x'ff', '汉字');
INSERT INTO kinds (day, at, d) VALUES ('0000-00-00', '0000-00-00', 123456789.0123456789);
"""


async def test_values_of_every_type(mysql_url: str, opened: Opened, ask: Any) -> None:
    mysqlserver.run(mysql_url, TYPES)
    source = await opened(mysql_url)
    found = (await ask(source, "run_sql", sql="SELECT * FROM kinds WHERE e = 'b'"))["data"]
    row = dict(zip(found["columns"], found["rows"][0], strict=True))
    if isinstance(row["j"], str):  # MariaDB keeps JSON as text
        row["j"] = json.loads(row["j"])
    assert row["stamp"].startswith("2024-02-2") and "T" in row.pop("stamp")
    assert row == {
        "d": 1.5, "whole": 7, "f": 1.5, "g": 0.1, "u": "18446744073709551615", "t": -5, "y": 2024, "b": "101",
        "day": "2024-02-29", "at": "2024-02-29T10:00:00.125", "clock": "-838:59:59", "j": {"a": [1, "火"]},
        "raw": "0x00ff", "text_": "汉字 😀", "e": "b", "s": "x,y", "place": "0x000000000101000000000000000000f03f0000000000000040", "bin": "0xff",
        "big5": "汉字",
    }  # fmt: skip
    odd = (await ask(source, "run_sql", sql="SELECT day, at, d, u FROM kinds WHERE d > 2"))["data"]["rows"]
    assert odd == [["0000-00-00", "0000-00-00T00:00:00.000", "123456789.0123456789", None]]
    described = await ask(source, "describe_table", table="kinds")
    shapes = {column["name"]: column for column in described["data"]["columns"]}
    assert shapes["e"]["values"] == ["b"] and shapes["s"]["values"] == ["x,y"]
    assert "distinct" not in shapes["place"] and "distinct" not in shapes["raw"]
    written = await ask(source, "run_sql", sql=r"""SELECT '%s %d' AS "two words", 'a\'b''c', "it's" """)
    assert written["data"]["columns"][0] == "two words"
    assert written["data"]["rows"] == [["%s %d", "a'b'c", "it's"]]


async def test_what_the_guard_says(source: Source, ask: Any) -> None:
    for sql, kind, says in (
        ("SELECT nam FROM rockets", "unknown_column", "name (of rockets)"),
        ("SELECT 姓 FROM 客户", "unknown_column", "姓名"),
        ("SELECT `rockets`.`nam` FROM rockets", "unknown_column", "name"),
        ("SELECT 1 FROM rocket", "unknown_table", "rockets"),
        ("SELECT 1 FROM elsewhere.rockets", "unknown_table", "elsewhere.rockets"),
        ("SELECT * FROM (elsewhere.rockets)", "unknown_table", "elsewhere.rockets"),
        ("SELECT * FROM (rockets r, elsewhere.rockets)", "unknown_table", "elsewhere.rockets"),
        ("SELECT * FROM rockets JOIN ((elsewhere.x JOIN old)) ON 1", "unknown_table", "elsewhere.x"),
        ("DESCRIBE elsewhere.rockets", "unknown_table", "elsewhere.rockets"),
        ("DESC SELECT * FROM elsewhere.rockets", "unknown_table", "elsewhere.rockets"),
        ("SELECT initcap(name) FROM rockets", "sql_refused", "initcap"),
        ("SELECT user FROM mysql.user", "sql_refused", "database system"),
        ("SELECT sneaky()", "sql_refused", "sneaky"),
        ("SELECT st_sneaky()", "sql_refused", "st_sneaky"),
        ("SELECT id FROM old FOR UPDATE", "sql_refused", "locks"),
        ("SELECT ST_X('no point')", "sql_failed", ""),
    ):
        error = (await ask(source, "run_sql", sql=sql))["error"]
        assert (error["type"], says in error["message"]) == (kind, True), error
    home = str(SourceUrl.parse(source.spec).database)
    assert (await ask(source, "run_sql", sql=f"SELECT count(*) FROM `{home}`.rockets"))["data"]["rows"] == [[200]]
    assert (await ask(source, "run_sql", sql="SHOW TABLES"))["data"]["row_count"] == 5
    assert (await ask(source, "run_sql", sql="EXPLAIN SELECT * FROM rockets"))["ok"]


WRITES = [
    "DELETE FROM rockets", "UPDATE old SET note = 'x'", "INSERT INTO old VALUES (2, 'x')", "REPLACE INTO old VALUES (1, 'x')",
    "TRUNCATE old", "DROP TABLE old", "ALTER TABLE old ADD x int", "CREATE TABLE x (a int)", "RENAME TABLE old TO older",
    "CREATE USER somebody", "GRANT ALL ON *.* TO root@localhost", "LOCK TABLES old WRITE", "SELECT id FROM rockets FOR UPDATE",
    "LOAD DATA INFILE '/etc/hostname' INTO TABLE old", "SELECT writes()", "SELECT 1; DELETE FROM old",
]  # fmt: skip


async def test_the_server_refuses_to_write(mysql_url: str, opened: Opened) -> None:
    """Without the guard, and without the look at a statement's first word."""
    mysqlserver.run(mysql_url, SCRIPT)
    # One that lies about what it does.
    function = (
        "CREATE FUNCTION writes() RETURNS int READS SQL DATA BEGIN DELETE FROM old; DELETE FROM rockets; RETURN 1; END"
    )
    with closing(mysqlserver.connected(mysql_url)) as connection, connection.cursor() as cursor:
        cursor.execute(function)
    source = await opened(mysql_url)
    for sql in WRITES:
        with pytest.raises(SourceError) as refused:
            await source.work(lambda connection, sql=sql: connection.execute(sql))  # type: ignore[misc]
        assert ";" in sql or "READ ONLY" in str(refused.value), (sql, refused.value)
    with pytest.raises(SourceError):
        await source.work(
            lambda connection: connection.execute("LOAD DATA LOCAL INFILE '/etc/hostname' INTO TABLE old")
        )
    assert told(mysql_url, "SELECT (SELECT count(*) FROM rockets), (SELECT note FROM old)") == [(200, "kept")]


async def test_no_other_kind_of_statement_is_sent(source: Source) -> None:
    for sql in (
        "SET SESSION TRANSACTION READ WRITE",
        "COMMIT",
        "DO sleep(1)",
        "BEGIN NOT ATOMIC DELETE FROM old; END",
        "x",
    ):
        with pytest.raises(SqlRefused):
            await source.work(lambda connection, sql=sql: connection.query(sql))  # type: ignore[misc]


async def test_a_session_is_as_new_for_the_next(made_url: str, opened: Opened) -> None:
    source = await opened(made_url, workers=1)

    def spoil(connection: Any) -> None:
        for sql in (
            "SET SESSION TRANSACTION READ WRITE",
            "SET @kept = 1, sql_mode = 'ANSI_QUOTES'",
            "SET NAMES latin1",
        ):
            connection.execute(sql)

    asked = "SELECT @kept, @@sql_mode LIKE '%ANSI_QUOTES%', @@character_set_client, @@autocommit, connection_id()"
    before = await source.work(lambda connection: list(connection.execute("SELECT connection_id()")))
    await source.work(spoil)
    after = await source.work(lambda connection: list(connection.execute(asked)))
    assert after == [[None, 0, "utf8mb4", 0, before[0][0]]]
    with pytest.raises(SqlRefused):
        await source.work(lambda connection: connection.execute("DELETE FROM old"))


async def test_texts_are_read_as_the_guard_reads_them(
    made_url: str, opened: Opened, ask: Any, mysql_server: str
) -> None:
    """Whatever the server's own mode is: in these, a backslash is a letter, and double quotes are those of names."""
    before = told(mysql_server, "SELECT @@global.sql_mode")[0][0]
    mysqlserver.run(mysql_server, "SET GLOBAL sql_mode = 'NO_BACKSLASH_ESCAPES,ANSI_QUOTES'")
    try:
        source = await opened(made_url, seconds=2)
        found = await ask(source, "run_sql", sql=r"""SELECT 'a\' OR sleep(9) -- ', "x" """)
    finally:
        mysqlserver.run(mysql_server, f"SET GLOBAL sql_mode = '{before}'")
    assert found["data"]["rows"] == [["a' OR sleep(9) -- ", "x"]]


async def _until(url: str, number: int) -> None:
    """Waits until the server runs that many of the endless queries."""
    for _ in range(200):
        if told(url, SPARE) == [(number,)]:
            return
        await asyncio.sleep(0.05)
    raise AssertionError(told(url, SPARE))


async def test_the_server_ends_what_took_too_long(made_url: str, opened: Opened, ask: Any) -> None:
    source = await opened(made_url, seconds=0.5)
    found = await ask(source, "run_sql", sql=ENDLESS)
    assert found["error"]["type"] == "sql_timeout"
    await _until(made_url, 0)


async def test_a_value_of_what_was_stopped_is_none(source: Source) -> None:
    """Some functions give one when they are interrupted."""
    with pytest.raises(SqlTimeout):
        await source.work(lambda connection: list(connection.query("SELECT sleep(9)")), seconds=0.2)


async def test_the_server_ends_what_is_cancelled(made_url: str, source: Source) -> None:
    task = asyncio.create_task(source.work(lambda connection: connection.query(ENDLESS).first()))
    await _until(made_url, 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await _until(made_url, 0)


async def test_a_server_that_answers_no_more_is_left(made_url: str, opened: Opened) -> None:
    """Interrupts that do not arrive: the line is cut, and the server has a limit of its own."""
    source = await opened(made_url, seconds=0.2)
    source._engine._kill = lambda session: None  # type: ignore[attr-defined]
    source.drop_idle()
    started = time.monotonic()
    with pytest.raises(SqlTimeout):
        await source.work(lambda connection: connection.query(ENDLESS).first())
    assert time.monotonic() - started < 5
    limits = (
        "SELECT @@max_statement_time"
        if "maria" in told(made_url, "SELECT version()")[0][0].casefold()
        else "SELECT @@max_execution_time / 1000"
    )
    assert float((await source.work(lambda connection: list(connection.execute(limits))))[0][0]) == 10.2
    mysqlserver.run(made_url, f"KILL {told(made_url, SPARE.replace('count(*)', 'max(id)'))[0][0]}")


async def test_a_large_result_is_left_unread(made_url: str, opened: Opened, ask: Any) -> None:
    source = await opened(made_url, counted_rows=1000, seconds=20)
    data = (await ask(source, "run_sql", sql="SELECT a.id FROM rockets a, rockets b, rockets c, rockets d, rockets e"))[
        "data"
    ]
    assert (data["shown"], data["row_count"]) == ("100 of more than 1000", 100)
    await _until(made_url, 0)
    assert (await ask(source, "run_sql", sql="SELECT 1"))["data"]["rows"] == [[1]]


async def test_a_session_that_was_ended_is_replaced(made_url: str, opened: Opened, ask: Any) -> None:
    source = await opened(made_url, workers=1)
    own = await source.work(lambda connection: list(connection.execute("SELECT connection_id()")))
    mysqlserver.run(made_url, f"KILL {own[0][0]}")
    assert (await ask(source, "run_sql", sql="SELECT 1"))["ok"]

    def killed_within(connection: Any) -> None:
        number = connection.execute("SELECT connection_id()").first()[0]
        mysqlserver.run(made_url, f"KILL {number}")
        connection.query("SELECT 1").first()

    with pytest.raises(SourceUnreachable):
        await source.work(killed_within)
    assert (await ask(source, "run_sql", sql="SELECT 1"))["ok"]
    times = iter((killed_within, lambda connection: None))
    await source.work(lambda connection: next(times)(connection))


async def test_a_locked_table_is_said_to_be(made_url: str, opened: Opened, ask: Any) -> None:
    source = await opened(made_url, lock_seconds=1)
    with closing(mysqlserver.connected(made_url)) as connection, connection.cursor() as cursor:
        cursor.execute("LOCK TABLES old WRITE")
        with pytest.raises(SourceLocked):
            await source.work(lambda connection: connection.query("SELECT * FROM old").first())


async def test_the_fingerprint_follows_the_schema(mysql_url: str, opened: Opened) -> None:
    mysqlserver.run(mysql_url, "CREATE TABLE t (a int)")
    source = await opened(mysql_url)
    seen = [await source.fingerprint()]
    mysqlserver.run(mysql_url, "INSERT INTO t VALUES (1)")
    assert await source.fingerprint() == seen[0]
    for change in (
        "ALTER TABLE t ADD b int",
        "ALTER TABLE t MODIFY b int COMMENT 'x'",
        "ALTER TABLE t ADD PRIMARY KEY (a)",
    ):
        mysqlserver.run(mysql_url, change)
        seen.append(await source.fingerprint())
    assert len(set(seen)) == 4


async def test_a_source_is_opened_again_without_its_password(
    made_url: str, mysql_server: str, opened: Opened, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("MYSQL_PWD", raising=False)
    with reader(made_url, mysql_server, "SELECT") as url:
        source = await opened(url)
        assert "s3cr" not in source.spec and "***" not in source.spec
        with pytest.raises(SourceLoginFailed, match="keeps no password.*set MYSQL_PWD, or write it into ~/.my.cnf"):
            await open_source(source.spec)
        with pytest.raises(SourceLoginFailed, match="Access denied") as wrong:
            await open_source(replace(SourceUrl.parse(url), password="wr0ng").text())
        assert "wr0ng" not in str(wrong.value)
        (tmp_path / ".my.cnf").write_text("[client]\npassword = s3crét\n", "utf-8")
        await opened(source.spec)
        (tmp_path / ".my.cnf").unlink()
        monkeypatch.setenv("MYSQL_PWD", "s3crét")
        assert await (await opened(source.spec.replace("mysql:", "mariadb+pymysql:"))).fingerprint()


async def test_what_cannot_be_opened_says_why(
    mysql_url: str, mysql_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SourceEmpty):
        await open_source(mysql_url)
    missing = mysql_url.replace("longthread_test_", "longthread_missing_")
    with pytest.raises(SourceUnreadable, match="(?i)unknown database.*not there, or this account may not use it"):
        await open_source(missing)
    with reader(mysql_url, mysql_server, "SELECT") as url, pytest.raises(SourceUnreadable, match="what is granted"):
        await open_source(replace(SourceUrl.parse(url), database="mysql").text())
    with pytest.raises(SourceUnsupported, match="names no database"):
        await open_source(mysql_server)
    with pytest.raises(SourceUnsupported, match="local_infile is not known"):
        await open_source(f"{mysql_url}?local_infile=1")
    with pytest.raises(SourceUnsupported, match="charset is not known; known are charset=utf8mb4, ssl_ca"):
        await open_source(f"{mysql_url}?charset=latin1")
    with pytest.raises(SourceEmpty):
        await open_source(f"{mysql_url}?charset=utf8mb4")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        with pytest.raises(SourceUnreachable, match="refused") as down:
            await open_source(f"mysql://me:hunter2@127.0.0.1:{closed.getsockname()[1]}/x")
    assert "hunter2" not in str(down.value)
    monkeypatch.setitem(sys.modules, "pymysql", None)
    for name in [name for name in sys.modules if "engines.mysql" in name]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ExtraMissing, match=r"pip install 'pymysql\[rsa\]"):
        await open_source(mysql_url)


async def test_a_server_that_says_nothing_is_waited_for_no_longer_than_it_may(opened: Opened) -> None:
    silent = socket.create_server(("127.0.0.1", 0))  # one that never accepts
    with silent, pytest.raises(SourceUnreachable):
        await opened(f"mysql://me:hunter2@127.0.0.1:{silent.getsockname()[1]}/x", connect_seconds=1)


PIECES = [
    "'", '"', "`", "\\", "''", "\\'", "--", "-- ", "#", "/*", "*/", "/*!", "/*M!", "/* ", "\n", "\r", "\t", "\x0b", " ", ",",
    "hidden()", ",hidden()", "1", "'a'", '"b"', "`c`", "N'", "x'", "_binary'", "@", ":=", ".", "(", ")", "--1", ";", "$$",
    "{fn ", "}", "\u00a0", "\u3000", "火", "AS x", "!",
]  # fmt: skip


def test_no_text_hides_a_call_from_the_guard(mysql_url: str) -> None:
    """What the guard lets through is run: none of it calls the function, however quotes and comments are mixed."""
    mysqlserver.run(mysql_url, "CREATE FUNCTION hidden() RETURNS varchar(9) DETERMINISTIC RETURN 'CALLED'")
    chance, guard = random.Random(7), Guard("mysql")
    ran = 0
    with closing(mysqlserver.connected(mysql_url)) as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_mode = ''")
        for _ in range(3_000):
            sql = "SELECT 1 " + "".join(chance.choice(PIECES) for _ in range(chance.randint(2, 9))) + " , hidden() -- x"
            try:
                guard.check(sql)
                cursor.execute(sql)
            except (SqlRefused, pymysql.Error):
                continue
            ran += 1
            assert not [row for row in cursor.fetchall() if "CALLED" in row], sql
    assert ran > 50


GREETING = (
    b"\x0a8.0\0" + bytes(4) + b"saltsalt\0" + (512 | 32768).to_bytes(2, "little") + b"\x2d\x02\0" + b"\x08\0\x15"
    + bytes(10) + b"saltsaltsalt\0mysql_native_password\0"
)  # fmt: skip


async def test_a_password_is_not_sent_in_plain_text(opened: Opened) -> None:
    """To a server that asks for it on a line that anybody may read."""
    heard = bytearray()

    def answer(server: socket.socket) -> None:
        line, _ = server.accept()
        with line:
            line.sendall(len(GREETING).to_bytes(3, "little") + b"\0" + GREETING)
            heard.extend(line.recv(4096))
            switch = b"\xfemysql_clear_password\0"
            line.sendall(len(switch).to_bytes(3, "little") + b"\2" + switch)
            while got := line.recv(4096):
                heard.extend(got)

    with socket.create_server(("127.0.0.1", 0)) as server:
        answering = asyncio.create_task(asyncio.to_thread(answer, server))
        with pytest.raises(SourceUnreachable, match="plain text"):
            await opened(f"mysql://me:hunter2@127.0.0.1:{server.getsockname()[1]}/x", connect_seconds=5)
        await answering
    assert b"me" in heard and b"hunter2" not in heard


async def test_a_password_need_not_be_utf_8(mysql_url: str, opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MYSQL_PWD", "\udcff")
    with pytest.raises(SourceLoginFailed):
        await opened(mysql_url)


async def test_a_row_that_is_too_large_is_not_put_together(
    source: Source, ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longthread.tools.analysis.engines.mysql._LARGEST", 1_000_000)
    texts = ", ".join("x" for _ in range(30))
    sql = f"WITH t AS (SELECT repeat('a', id * 200) AS x FROM rockets) SELECT {texts} FROM t ORDER BY 1"
    found = await ask(source, "run_sql", sql=sql)
    assert (found["error"]["type"], "1,000,000 bytes" in found["error"]["message"]) == ("sql_failed", True)
    assert (await ask(source, "run_sql", sql="SELECT 1"))["data"]["rows"] == [[1]]


async def test_a_line_that_ends_between_two_rows(source: Source, made_url: str) -> None:
    def killed(connection: Any) -> None:
        number = connection.execute("SELECT connection_id()").first()[0]
        rows = iter(connection.query("SELECT repeat('a', 9000) FROM rockets a, rockets b, rockets c"))
        next(rows)
        mysqlserver.run(made_url, f"KILL {number}")
        for _ in rows:
            pass

    with pytest.raises(SourceUnreachable):
        await source.work(killed)

    def abandoned(connection: Any) -> None:
        rows = iter(connection.query("SELECT repeat('a', 9000) FROM rockets a, rockets b, rockets c"))
        next(rows)
        connection.abandon()
        for _ in rows:
            pass

    with pytest.raises(SqlTimeout):
        await source.work(abandoned)


async def test_a_statement_with_the_right_case_of_a_table_is_run(source: Source) -> None:
    run_sql = next(tool for tool in analysis_tools(source) if tool.name == "run_sql")
    if (await run_sql.call({"sql": "SELECT name FROM ROCKETS WHERE id = 1"}))["ok"]:
        return  # a server that folds names runs both
    assert (await run_sql.call({"sql": "SELECT name FROM rockets WHERE id = 1"}))["data"]["rows"] == [["rocket 1"]]
