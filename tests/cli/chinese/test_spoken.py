"""The command line speaks Chinese where the locale, LONGTHREAD_LANG or `--lang` asks for it."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer import testing

from longthread.cli import language
from longthread.cli.app import app, main
from longthread.cli.language import translate, translate_note
from longthread.errors import (
    ArchiveInvalid,
    InvalidInput,
    ModelFailed,
    QuestionsInvalid,
    StoreUnavailable,
    ThreadNotFound,
)
from longthread.phrasebook import Phrasebook
from longthread.store.schema import pending
from longthread.store.transfer.archive_reader import check_beginning
from longthread_evals.gold_questions import read_questions

pytestmark = pytest.mark.one_backend

Run = Callable[..., Any]


def is_chinese(text: str) -> bool:
    return re.search("[\u4e00-\u9fff]", text) is not None


@pytest.mark.parametrize(
    ("variables", "arguments", "spoken"),
    [
        ({"LANG": "zh_CN.UTF-8"}, (), True),
        ({"LC_MESSAGES": "zh_CN.UTF-8", "LANG": "en_US.UTF-8"}, (), True),
        ({"LC_ALL": "zh_TW.UTF-8", "LC_MESSAGES": "en_US.UTF-8"}, (), True),
        ({"LC_ALL": "C", "LANG": "zh_CN.UTF-8"}, (), False),
        ({"LC_ALL": "", "LANG": "zh_CN.UTF-8"}, (), True),
        ({"LANG": "de_DE.UTF-8"}, (), False),
        ({}, (), False),
        ({"LANG": "de_DE.UTF-8", "LONGTHREAD_LANG": "zh"}, (), True),
        ({"LANG": "zh_CN.UTF-8", "LONGTHREAD_LANG": "en"}, (), False),
        ({"LONGTHREAD_LANG": "zh"}, ("ask", "x", "--lang", "en"), False),
        ({}, ("--lang=zh", "ask", "x"), True),
        ({}, ("ask", "--", "--lang", "zh"), False),
        ({}, ("ask", "--lang"), False),
        ({}, ("eval", "context", "--lang", "zh"), False),
        ({}, ("--lang", "zh", "eval", "context", "--lang", "en"), True),
    ],
)
def test_the_option_beats_the_setting_beats_the_locale(
    variables: dict[str, str],
    arguments: tuple[str, ...],
    spoken: bool,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("LONGTHREAD_LANG", "LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    language.choose(arguments)
    assert language.is_chinese() is spoken
    monkeypatch.setenv("LONGTHREAD_LANG", "en")
    language.choose(())


def test_the_setting_is_read_from_dotenv_and_must_name_a_language(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LONGTHREAD_LANG", raising=False)
    (tmp_path / ".env").write_text("LONGTHREAD_LANG=zh\n")
    language.choose(())
    assert language.is_chinese()
    monkeypatch.setenv("LONGTHREAD_LANG", "fr")
    with pytest.raises(InvalidInput, match=r"^LONGTHREAD_LANG is 'fr'; allowed is `en` or `zh`\.$"):
        language.choose(())
    monkeypatch.setenv("LONGTHREAD_LANG", "en")
    language.choose(())


@pytest.mark.parametrize("arguments", [("--lang", "zh", "--help"), ("--help", "--lang", "zh")])
def test_help_is_chinese_wherever_the_option_stands(arguments: tuple[str, ...], chinese: None) -> None:
    shown = testing.CliRunner().invoke(app, arguments, env={"COLUMNS": "200", "LONGTHREAD_LANG": "en"}).output
    assert "用法：longthread [OPTIONS] COMMAND" in shown and "用自然语言查询数据库" in shown
    assert "列出、查看、应用和删除智能体。" in shown and "退出码：0 完成" in shown
    assert not re.search(r"[a-z]{3,} [a-z]{3,} [a-z]{3,}", shown)  # no English sentence is left
    shown = testing.CliRunner().invoke(app, ["ask", *arguments], env={"COLUMNS": "200", "LONGTHREAD_LANG": "en"}).output
    assert "显示本帮助并退出。" in shown and "要查询的数据源" in shown and "[默认：auto]" in shown
    assert "--lang" not in shown.replace("longthread ask --lang", "")


def test_what_is_wrong_with_arguments_is_said_in_chinese(run: Run, chinese: None) -> None:
    assert "没有命令“thread”。是不是 'threads'？" in run("thread", code=2).output
    assert "应为整数" in run("threads", "list", "--limit", "x", code=2).output
    assert "没有选项 --nope" in run("threads", "list", "--nope", code=2).output
    assert "用 longthread ask --help 查看帮助。" in run("ask", code=2).output


def test_an_error_says_what_happened_and_what_to_do_in_chinese(
    run: Run, chinese: None, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    run("db", "upgrade")
    monkeypatch.setattr(sys, "argv", ["longthread", "threads", "show", "nope", "--json"])
    with pytest.raises(SystemExit) as ended:
        main()
    told = capfd.readouterr()
    assert ended.value.code == 2
    assert told.err == "错误：没有会话 nope。用 `longthread threads list` 查看已有的会话。\n"
    message = "There is no thread nope. `longthread threads list` shows those there are."
    described = {"type": "thread_not_found", "message": message, "params": {"thread": "nope"}}
    assert json.loads(told.out) == {"type": "failed", "error": described}


def test_a_conversation_in_chinese_and_what_a_program_reads_stays(run: Run, chinese: None) -> None:
    asked = run("ask", "How many rockets are there?", "--source", "demo", "--thread", "t1")
    assert re.search(r"会话 t1  模型 demo", asked.stderr) and "行" in asked.stderr
    listed = run("threads", "list").stdout
    assert listed.startswith("t1\tHow many rockets are there?\t")
    events = [json.loads(line) for line in run("ask", "x", "--thread", "last", "--json").stdout.splitlines()]
    assert {"finished"} <= {event["type"] for event in events} and not is_chinese(json.dumps(events[0]))
    assert json.loads(run("db", "status", "--json").stdout)["threads"] == 1
    assert "1 个会话，" in run("db", "status").stdout and "结构版本" in run("db", "status").stdout
    assert run("threads", "tag", "t1", "Nothing was found.").stdout == "Nothing was found.\n"
    assert run("threads", "export", "t1", "--to", "t1.jsonl").stderr.endswith("已将 1 个会话导出到 t1.jsonl。\n")
    assert run("forget", "--thread", "t1", "--dry-run").stdout.startswith("将彻底删除：会话 t1：1 个会话，")
    refused = run("threads", "delete", "t1", code=1, text="n\n")
    assert "删除“How many rockets are there?”及其" in refused.stderr
    assert run("memories", "add", "The user prefers metric units.").stdout.startswith("已记住：")


@pytest.mark.parametrize(
    ("note", "said"),
    [
        ('a b.xlsx: The sheet "Old" is left out: it is hidden.', "a b.xlsx：工作表“Old”已略去：它是隐藏的。"),
        ('The sheet "Q" is left out: it is hidden.', "工作表“Q”已略去：它是隐藏的。"),
        ('The sheet "Q: 1" is left out: it is empty.', "工作表“Q: 1”已略去：它是空的。"),
        (
            'Column "g": shares, which the workbook shows in percent: 0.5 is 50%.',
            "列“g”：工作簿以百分比显示，0.5 即 50%。",
        ),
        ('Column "g": its cells are in $, €, which do not add up.', "列“g”：数值的单位不同（$, €），不能相加。"),
        ('Sales: Column "a b": in €, which is not part of the numbers.', "Sales：列“a b”：单位是 €，数字不含单位。"),
        (
            'Column "g": only some of its cells are in %, so their formats are not used.',
            "列“g”：只有部分单元格的单位是 %，因此不采用单元格的格式。",
        ),
        ("empty.csv is left out: it is empty.", "empty.csv 已略去：它是空的。"),
        (
            "a.xlsx is left out: a.xlsx has a password. Save it without one.",
            "a.xlsx 已略去：a.xlsx 有密码。请去掉密码后保存。",
        ),
        (
            "x.db is left out: it is a database. Give it as a source of its own.",
            "x.db 已略去：它是数据库，请单独作为数据源给出。",
        ),
        ("3 more are left out: .pdf (3).", "另有 3 个已略去：.pdf (3)。"),
        ('Sales: 2 lines above the header are left out: "A: b.", "c".', 'Sales：表头上方的 2 行已略去："A: b.", "c"。'),
        ('Sales: Notes under the table are left out: "Source: x…".', 'Sales：表格下方的注释已略去："Source: x…"。'),
        ("No t.city is 'Bon'. The nearest values are: 'Bonn'.", "没有 t.city 为 'Bon' 的行。最接近的值：'Bonn'。"),
        ("3 long values were cut; each says how long it is.", "3 个过长的值已截短，各注明了长度。"),
        ("The model call failed: it was closed.", translate),
        ("What nothing says.", "What nothing says."),
    ],
)
def test_a_note_says_in_chinese_what_it_is_on(note: str, said: Any, chinese: None) -> None:
    assert translate_note(note) == (said if isinstance(said, str) else said(note))


def test_the_command_line_tells_notes_on_files_in_chinese(run: Run, chinese: None, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a.csv").write_text("a\n1\n", encoding="utf-8")
    (tmp_path / "folder" / "empty.csv").write_bytes(b"")
    folder = str(tmp_path / "folder")
    assert "empty.csv 已略去：它是空的。" in run("doctor", "--source", folder).stdout
    assert "empty.csv 已略去：它是空的。" in run("ask", "a 有多少行？", "--source", folder).stderr


def test_a_phrasebook_recognises_whole_texts_lines_and_sentences() -> None:
    book = Phrasebook(
        {
            "There is no {kind} {name}. {hint}": "没有{kind!t} {name}。{hint!t}",
            "agent": "智能体",
            "Try {}.": "试试 {0}。",
            "{} is {}; allowed is {}.": "{0} 是 {1}，应为 {2}。",
            "Thread {thread} waits: approve {thread}.": "会话 {thread} 在等待：approve {thread}。",
        }
    )
    assert book.translate("There is no agent agent. Try ada.") == "没有智能体 agent。试试 ada。"
    assert book.translate("There is no agent ada.") == "没有智能体 ada。"
    assert book.translate("A is 1; allowed is 2. B is 3; allowed is 4.") == "A 是 1，应为 2。B 是 3，应为 4。"
    assert book.translate("Nobody knows this. Try it.") == "Nobody knows this. 试试 it。"
    assert book.translate("Nothing:\n  Try it.") == "Nothing:\n  试试 it。"
    assert book.translate("Thread a waits: approve a.") == "会话 a 在等待：approve a。"
    assert book.translate("Thread a waits: approve b.") == "Thread a waits: approve b."
    assert book.translate("") == ""


def test_the_commit_that_reads_an_old_store_or_export_is_named_in_chinese(chinese: None) -> None:
    with pytest.raises(StoreUnavailable) as store:
        pending(48, "c.db")
    with pytest.raises(ArchiveInvalid) as export:
        check_beginning(io.BytesIO(b'{"longthread_export":1,"schema":48,"threads":0}\n'), "x.jsonl")
    for error in (store, export):
        told = translate(str(error.value))
        assert "结构版本是 48，早于第一个正式版本" in told
        assert "Longthread 的提交 9a783799" in told


@pytest.mark.parametrize(
    ("text", "place"), [('{"question": "?", "sql": ""}', "第 1 行"), ('[{"question": "?", "sql": ""}]', "第 1 个问题")]
)
def test_a_question_of_an_eval_that_names_no_database_is_named(
    tmp_path: Path, chinese: None, text: str, place: str
) -> None:
    (tmp_path / "questions.json").write_text(text)
    with pytest.raises(QuestionsInvalid) as error:
        read_questions(tmp_path / "questions.json")
    assert f"评测：{place}没有写明数据库：请给它 `db`" in translate(str(error.value))


def test_the_reason_of_an_error_is_translated_and_its_values_stay(chinese: None) -> None:
    reason = "there is none yet. `longthread db upgrade` makes one."
    told = translate(str(StoreUnavailable(where="There is no file.db", reason=reason)))
    assert told.startswith(
        "无法打开位于 There is no file.db 的会话存储：还没有。可用 `longthread db upgrade` 创建。如果"
    )
    assert translate(str(ThreadNotFound(thread="a. b"))).startswith("没有会话 a. b。")
    failed = ModelFailed(model="m", thread="t", reason="quota {0} exceeded, 100% used.")
    assert translate(str(failed)).startswith("模型 m 出错：quota {0} exceeded, 100% used. 会话已保留")
