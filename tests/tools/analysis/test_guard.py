from __future__ import annotations

import json
from pathlib import Path

import pytest

from longthread.errors import SqlRefused
from longthread.tools.analysis.guard import Guard

READS = [
    ("sqlite", "SELECT 1"),
    ("sqlite", "select * from t;"),
    ("sqlite", "  SELECT 1 ;  \n"),
    ("sqlite", "SELECT 1; -- done"),
    ("sqlite", "-- first\nSELECT /* inside */ a FROM t -- last"),
    ("sqlite", "SELECT 'a; DROP TABLE t' AS text"),
    ("sqlite", "SELECT 'it''s; -- fine', \"weird ; name\" FROM \"select\""),
    ("sqlite", "WITH x AS (SELECT 1 AS n) SELECT n FROM x"),
    ("sqlite", "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 9) SELECT * FROM c"),
    ("sqlite", "SELECT a FROM t UNION ALL SELECT b FROM u EXCEPT SELECT 1 INTERSECT SELECT 2"),
    ("sqlite", "(SELECT 1) UNION (SELECT 2)"),
    ("sqlite", "VALUES (1, 'a'), (2, 'b')"),
    ("sqlite", "EXPLAIN QUERY PLAN SELECT * FROM t"),
    ("sqlite", "explain select 1"),
    ("sqlite", "SELECT rank() OVER (PARTITION BY a ORDER BY b DESC) FROM t"),
    ("sqlite", "SELECT strftime('%Y', d), printf('%.2f', x), iif(a, 1, 2), total(x), group_concat(n, ', ') FROM t"),
    ("sqlite", "SELECT name FROM sqlite_master WHERE type = 'table'"),
    ("sqlite", "SELECT * FROM t WHERE a GLOB 'x*' AND b LIKE '%y%' ESCAPE '!' LIMIT 2 - (SELECT 1) % 2 OFFSET 3"),
    ("sqlite", "SELECT json_extract(j, '$.a'), j ->> 'b' FROM t, json_each(t.j)"),
    ("sqlite", "SELECT 名称 FROM 运载火箭 WHERE 国家 = '中国'"),
    ("sqlite", "SELECT CASE WHEN a > 1 THEN 'update' ELSE 'delete' END AS \"insert\" FROM t"),
    ("sqlite", "SELECT zeroblob(10), replace(a, 'x', 'y') FROM t"),
    ("postgresql", "SELECT count(*) FILTER (WHERE a > 1), percentile_cont(0.5) WITHIN GROUP (ORDER BY a) FROM t"),
    ("postgresql", "SELECT DISTINCT ON (a) a, b::date, c ->> 'k' FROM s.t WHERE d @> '{}'::jsonb ORDER BY a"),
    ("postgresql", "SELECT * FROM generate_series(1, 10) g, LATERAL (SELECT g * 2) x"),
    ("postgresql", "SELECT date_trunc('month', d), to_char(d, 'YYYY'), now() - interval '1 day' FROM t"),
    ("postgresql", "EXPLAIN (ANALYZE, FORMAT JSON) SELECT 1"),
    ("postgresql", "EXPLAIN ANALYZE VERBOSE SELECT 1"),
    ("postgresql", "/* 1 */ EXPLAIN /* 2 */ (COSTS off, BUFFERS /* ( */) (SELECT 1)"),
    ("postgresql", "EXPLAIN VERBOSE (SELECT 1) UNION (SELECT 2)"),
    ("postgresql", "SELECT $$it's; fine$$"),
    ("postgresql", "SELECT table_name FROM information_schema.tables"),
    ("postgresql", "SELECT relname FROM pg_catalog.pg_class"),
    ("postgresql", "SELECT st_distance(a.geom, b.geom) FROM a, b"),
    ("postgresql", "TABLE t"),
    ("duckdb", "FROM t SELECT a"),
    ("duckdb", "SELECT * EXCLUDE (a) FROM t QUALIFY row_number() OVER (ORDER BY b) = 1"),
    ("duckdb", "SUMMARIZE t"),
    ("duckdb", "SHOW TABLES"),
    ("postgresql", "SELECT ROW(1, 2) = ROW(1, 2), EXISTS (SELECT 1), a IS DISTINCT FROM b FROM t"),
    ("tsql", "SELECT TOP 5 name AS n FROM dbo.users"),
    ("duckdb", "DESCRIBE t"),
    ("duckdb", "PIVOT t ON a USING sum(b)"),
    ("duckdb", "SELECT list_transform(l, x -> x + 1), strptime(s, '%Y'), epoch_ms(1) FROM t"),
    ("duckdb", "SELECT a, sum(b) FROM t GROUP BY ALL ORDER BY ALL"),
    ("duckdb", "SELECT count(*) FROM range(1000000000000)"),
    ("mysql", "SELECT `a``b` AS \"x\", 'it''s', 'a\\'b', 5 - -1 FROM t -- last"),
    ("mysql", "SELECT /* one */ count(*) # two\nFROM t -- three\n WHERE a <=> 1"),
    ("mysql", "SELECT '/*! ', '-- ', '#', `--1`, `/*!` FROM t"),
    ("mysql", "EXPLAIN FORMAT=JSON SELECT 1"),
    ("mysql", "SHOW TABLES"),
    ("mysql", "SELECT * FROM t USE INDEX (i) WHERE a REGEXP 'x' LIMIT 1, 2"),
    ("mysql", "SELECT '{# no comment #}', `{#`, \"{#\" FROM t"),
    ("postgresql", "SELECT '\u200b', \"a\ufeffb\", $$\u200b{#$$ FROM t GROUP\n\tBY 2 -- \u200b"),
    ("sqlite", "SELECT date(date(date(date(date(date('now'))))))"),
    ("duckdb", "SELECT 1\u3000AS\u00a0一"),
]

HARMS = [
    ("sqlite", "", "empty"),
    ("sqlite", "-- nothing", "empty"),
    ("sqlite", "SELECT 1; SELECT 2", "more than one"),
    ("sqlite", "SELECT 1; DROP TABLE t", "more than one"),
    ("sqlite", "SELECT FROM WHERE", "parsed"),
    ("sqlite", "INSERT INTO t VALUES (1)", "inserts"),
    ("sqlite", "WITH x AS (SELECT 1) DELETE FROM t", "deletes"),
    ("sqlite", "UPDATE t SET a = 1 RETURNING a", "updates"),
    ("sqlite", "REPLACE INTO t VALUES (1)", ""),
    ("sqlite", "CREATE TABLE x AS SELECT 1", "creates"),
    ("sqlite", "DROP TABLE t", "drops"),
    ("sqlite", "ALTER TABLE t ADD COLUMN b", "command"),
    ("sqlite", "ATTACH 'x' AS y", "attaches"),
    ("sqlite", "PRAGMA table_info(t)", "PRAGMA"),
    ("sqlite", "SELECT * FROM pragma_table_info('t')", "pragma_table_info"),
    ("sqlite", "SELECT * FROM sqlite_dbpage", "sqlite_dbpage"),
    ("sqlite", "VACUUM", "command"),
    ("sqlite", "VACUUM INTO '/tmp/x'", "command"),
    ("sqlite", "BEGIN", ""),
    ("sqlite", "SELECT LOAD_EXTENSION('x')", "load_extension"),
    ("sqlite", "SELECT (SELECT writefile('x', 'y'))", "writefile"),
    ("sqlite", "SELECT zeroblob(900000000)", "zeroblob"),
    ("sqlite", "SELECT printf('%.*c', 900000000, 'x')", "printf"),
    ("sqlite", "SELECT printf('%900000000d', 1)", "printf"),
    ("sqlite", "SELECT printf('%.*c', id, 'x') FROM t", "printf"),
    ("sqlite", "EXPLAIN DELETE FROM t", "deletes"),
    ("sqlite", "SELECT 1\0", "NUL"),
    ("sqlite", "SELECT " + "(" * 3000 + "1" + ")" * 3000, "nested"),
    ("sqlite", "SELECT '" + "x" * 20_000 + "'", "has 20009 characters, and the limit is 20000"),
    ("postgresql", "WITH d AS (DELETE FROM t RETURNING *) SELECT * FROM d", "deletes"),
    ("postgresql", "SELECT * INTO x FROM t", "INTO"),
    ("postgresql", "SELECT * FROM t FOR UPDATE", "locks"),
    ("postgresql", "EXPLAIN (ANALYZE) DELETE FROM t", "deletes"),
    ("postgresql", "EXPLAIN (ANALYZE /* ) SELECT 1 -- */ ) SELECT pg_sleep(9)", "pg_sleep"),
    ("postgresql", "EXPLAIN (FORMAT ' ) SELECT 1 --') SELECT pg_sleep(9)", "pg_sleep"),
    ("postgresql", "EXPLAIN (pg_sleep(9))", ""),
    *((name, f"SELECT {'date(' * 40}1{')' * 40}", "too long") for name in ("sqlite", "duckdb", "postgresql", "mysql")),
    ("mysql", f"SELECT {'ARRAY[' * 40}1{']' * 40}", "too long"),
    ("duckdb", "SELECT {: 1}", "cannot be parsed"),
    ("postgresql", "SELECT INTERVAL E'1 day'\n'\\'' , pg_sleep(3) --'", "goes on"),
    ("postgresql", "EXPLAIN (ANALYZE", "empty"),
    ("postgresql", "EXPLAIN EXPLAIN SELECT 1", ""),
    ("mysql", "EXPLAIN FORMAT=", "empty"),
    ("postgresql", "COPY t TO '/tmp/x'", "copies"),
    ("postgresql", "DO $$ BEGIN END $$", "command"),
    ("postgresql", "CALL p()", "command"),
    ("postgresql", "SET x = 1", "setting"),
    ("postgresql", "SHOW data_directory", "command"),
    ("postgresql", "SELECT pg_catalog.pg_read_file('/etc/passwd')", "pg_read_file"),
    ("postgresql", 'SELECT "pg_sleep"(10)', "pg_sleep"),
    ("postgresql", "SELECT set_config('a', 'b', false)", "set_config"),
    ("postgresql", "SELECT nextval('s')", "nextval"),
    ("postgresql", "SELECT * FROM pg_shadow", "pg_shadow"),
    ("postgresql", "SELECT * FROM information_schema.user_mapping_options", "user_mapping_options"),
    ("postgresql", "SELECT query_to_xml('select 1', true, true, '')", "query_to_xml"),
    ("postgresql", "SELECT repeat(repeat('x', 1000000), 1000)", "repeat"),
    ("duckdb", "SELECT * FROM 'data.csv'", "file"),
    ("duckdb", "SELECT * FROM '/etc/passwd'", "file"),
    ("duckdb", 'SELECT * FROM "https://x.example/a.parquet"', "file"),
    ("duckdb", "SELECT * FROM read_csv_auto('x')", "read_csv"),
    ("duckdb", "SELECT * FROM glob('*')", "glob"),
    ("duckdb", "SELECT * FROM duckdb_secrets()", "duckdb_secrets"),
    ("duckdb", "SELECT * FROM query_table('t')", "query_table"),
    ("duckdb", "SELECT list_sum(range(2000000000))", "elements"),
    ("duckdb", "INSTALL httpfs", "installs"),
    ("duckdb", "COPY t TO 'x.csv'", "copies"),
    ("mysql", "SELECT 1 /*!50000 INTO OUTFILE 'x' */", "executable comment"),
    ("duckdb", "SUMMARIZE 'x.csv'", "file"),
    ("duckdb", "FROM 'x.csv'", "file"),
    ("mysql", "SELECT @@version", ""),
    ("mysql", "SHOW GRANTS", "SHOW"),
    ("tsql", "SELECT @@version", "variable"),
    ("tsql", "SELECT 1 SHUTDOWN", "more than one"),
    ("tsql", "SELECT a FROM t WAITFOR DELAY '0:0:5'", ""),
    ("mysql", "SELECT sleep(10)", "sleep"),
    ("mysql", "SELECT 1 /*M! , LOAD_FILE('x') */", "executable comment"),
    ("mysql", "SELECT 1 /* ' */ /*! , LOAD_FILE('x') */ -- '", "executable comment"),
    ("mysql", "SELECT /* /* */ SLEEP(1) /* */ */", "comment"),
    ("mysql", "SELECT 1 --1, SLEEP(5)", "comment"),
    ("mysql", "SELECT 1 -- \r /* \n , SLEEP(1) -- */", "comment"),
    ("mysql", "SELECT /*+ SET_VAR(sql_mode='') */ 1", "hint"),
    ("mysql", "SELECT {fn LOAD_FILE('x')}", "load_file"),
    ("mysql", "SELECT `sleep`(5)", "sleep"),
    ("mysql", "SELECT -{#\nx SLEEP(5)} -- #} 2", "{#"),
    ("duckdb", "SELECT 1 AS a\u200bFROM\u200bt", "invisible"),
    ("sqlite", "SELECT * FROM \ufefft", "invisible"),
    ("postgresql", "SELECT a\u0008b FROM t", "invisible"),
    ("mysql", "SELECT BENCHMARK(1000000, MD5('x'))", "benchmark"),
    ("mysql", "SELECT GET_LOCK('x', 9)", "get_lock"),
    ("mysql", "SELECT LAST_INSERT_ID(5)", "last_insert_id"),
    ("mysql", "SELECT NEXTVAL(s)", "nextval"),
    ("mysql", "SELECT shop.abs(1)", "database's own"),
    ("mysql", "SELECT first || ' ' || last FROM t", "CONCAT"),
    ("mysql", "SELECT tax(1)", "tax"),
    ("mysql", "SELECT @x := 1", "variable"),
    ("mysql", "SELECT a INTO @x FROM t", ""),
    ("mysql", "SELECT a FROM t LIMIT 1 INTO OUTFILE '/tmp/x'", ""),
    ("mysql", "(SELECT 1) INTO DUMPFILE '/tmp/x'", ""),
    ("mysql", "SELECT * FROM t LOCK IN SHARE MODE", "locks"),
    ("mysql", "HANDLER t OPEN", ""),
    ("mysql", "DO SLEEP(1)", ""),
    ("mysql", "BEGIN NOT ATOMIC DELETE FROM t; END", ""),
    ("mysql", "SET STATEMENT max_statement_time = 0 FOR SELECT 1", ""),
    ("mysql", "EXECUTE IMMEDIATE 'DELETE FROM t'", ""),
    ("mysql", "EXPLAIN FORMAT=JSON DELETE FROM t", "deletes"),
    ("mysql", "EXPLAIN FOR CONNECTION 5", ""),
    ("mysql", "LOAD DATA LOCAL INFILE 'x' INTO TABLE t", ""),
    ("mysql", "SELECT * FROM t PROCEDURE ANALYSE()", ""),
    ("mysql", "SHOW TABLES FROM mysql", "SHOW"),
    ("mysql", "TABLE performance_schema.threads", "threads"),
    ("mysql", "SELECT * FROM information_schema.processlist", "processlist"),
    ("mysql", "SELECT * FROM mysql.user", "user"),
    ("tsql", "SELECT * FROM srv.db.dbo.t", "another server"),
    ("tsql", "EXEC xp_cmdshell 'dir'", ""),
]


@pytest.mark.parametrize(("dialect", "sql"), READS)
def test_lets_reads_through(dialect: str, sql: str) -> None:
    assert Guard(dialect).check(sql).rstrip("; \n").strip() in sql


@pytest.mark.parametrize(("dialect", "sql", "reason"), HARMS)
def test_refuses_what_does_more_than_read(dialect: str, sql: str, reason: str) -> None:
    with pytest.raises(SqlRefused, match="not run") as refused:
        Guard(dialect).check(sql)
    assert reason in str(refused.value)


def test_the_closing_semicolon_is_dropped() -> None:
    assert Guard("sqlite").check(" SELECT 1 ; ") == "SELECT 1"


def test_functions_of_the_database_may_be_called_when_named() -> None:
    guard = Guard("postgresql")
    with pytest.raises(SqlRefused):
        guard.check("SELECT tax(price) FROM t")
    assert guard.check("SELECT Tax(price) FROM t", functions={"tax"})
    with pytest.raises(SqlRefused):
        guard.check("SELECT pg_sleep(1)", functions={"pg_sleep"})


def test_a_function_of_the_database_is_not_known_by_its_name() -> None:
    guard = Guard("postgresql")
    for sql in ("SELECT length(a)", 'SELECT "length" (a)', "SELECT s.Length/* */(a)", "SELECT (t).length FROM t"):
        assert guard.judge(sql)
        assert guard.judge(sql, defined={"length"}, functions={"length"})
        with pytest.raises(SqlRefused, match="database's own"):
            guard.judge(sql, defined={"length"})
    assert guard.judge("SELECT t.length, length AS m FROM t GROUP BY length", defined={"length"})


def test_a_table_may_be_named_like_a_file() -> None:
    guard = Guard("duckdb")
    assert guard.check('SELECT * FROM "sales.csv"', tables=["sales.csv"])


def test_comments_that_only_mysql_runs_are_comments_elsewhere() -> None:
    assert Guard("sqlite").check("SELECT 1 /*! hint */")
    assert Guard("mysql").check("SELECT '/*! text */'")


def test_the_shared_attacks(shared_data: Path) -> None:
    missed = []
    for line in (shared_data / "sql_safety" / "attacks.jsonl").read_text().splitlines():
        attack = json.loads(line)
        try:
            Guard(attack["dialect"]).check(attack["sql"])
        except SqlRefused:
            continue
        if attack["must"] == "refuse":
            missed.append(attack["sql"])
    assert missed == []


def test_the_shared_gold_queries_are_allowed(shared_data: Path) -> None:
    refused = {}
    for line in (shared_data / "defog" / "gold.jsonl").read_text().splitlines():
        for sql in json.loads(line)["sql"]:
            try:
                Guard("sqlite").check(sql)
            except SqlRefused as error:
                refused[sql] = str(error)
    assert refused == {}
