"""The SQL protocol, for models that write SQL better than calls: they write a statement, and then the answer.

In the first prompt, the *writing*, the model sees the schema and the conversation, and replies with one SELECT in a
fence; a failure comes back as a message, and it tries again. Mostly the rows are the answer (`rows_answer`). Where a
question wants words, the model sees it, the statement and its rows in a second prompt, the *answering*. All functions
here are pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from longthread.context.system_prompt import continued_note, project_note
from longthread.errors import SqlRepeated
from longthread.llm.json_protocol import ActionCall, Finish, Malformed, ParsedReply, parse_reply
from longthread.llm.reply_text import WORDS_BESIDE, argument_of, sql_of
from longthread.llm.rows_answer import BY_ROWS
from longthread.messages.message import Message
from longthread.model.catalog import QUERIES, RUN_SQL
from longthread.model.fold import PARSE_ERROR, observation_of
from longthread.model.run import CORRECT, statement_form
from longthread.model.thinking import split_thinking
from longthread.tools.analysis.dialects.dialect import find_dialect
from longthread.tools.tool import Tool
from longthread.view.compose import digest_of
from longthread.view.tokens import ANY

WRITING = """\
You write one {dialect} SELECT that answers the question. Reply with the SQL in a ```sql fence and nothing else."""
OR_WORDS = "If the message asks for no data, answer it in words instead."
"""Said of a message that may ask for none: elsewhere it makes a small model leave out what the question groups by."""
ANSWERING = """\
Answer the question in one or two sentences, in its language, from the rows of the query alone. \
Behind each number write the query's label in brackets. If the rows do not answer the question, say so."""
RETRY = "That failed: {reason}"
IN_WORDS = "Answer in words, from the rows."
"""Said to a model that repeats its statement instead of an answer."""
_EMPTY = f"That gave no rows. {{notes}} {CORRECT}"
_EARLIER_ROWS = 3
"""Rows of a result that later questions see."""
_ROWS = 30
"""Rows of a result that its answer is written from."""
_CELL = 100
"""Characters of a cell."""
_FENCE = re.compile(r"```(?:\w*)[ \t]*\n?(?P<sql>.*?)(?:```|\Z)", re.S)
_BEGINS = re.compile(r"(?:--[^\n]*\n\s*|/\*.*?\*/\s*|\(\s*)*(?:SELECT|WITH)\b", re.I | re.S)
_BARE = re.compile(
    r"(?:--[^\n]*\n\s*|/\*.*?\*/\s*|\(\s*)*"
    r"(?:(?:SELECT|select)\s|Select\s.*\bFrom\s|(?i:WITH\s+(?:RECURSIVE\s+)?[\w\"`]+\s*(?:\([^()]*\)\s*)?AS\b[\w\s]*\())",
    re.S,
)
"""The beginning of a statement without a fence, which no sentence has: "With 3 customers, the UK leads"."""
_FIRST_SENTENCE = re.compile(r".*?(?:\.(?=\s)|\Z)", re.S)
_LABEL = re.compile(r"\[q\d+")
_LABELS = re.compile(r"\[q\d+[^\]]*\]")
_RELATIVE = re.compile(
    r"\b(?:today\w*|now|nowadays|current\w*|present\w*|this|these|last|latest|past|previous\w*|prior|recent\w*|next|"
    r"upcoming|coming|future|ago|yesterday\w*|tomorrow\w*|tonight|since|until|till|so far|to date|ytd|mtd|qtd|"
    r"ages?|aged|old|overdue|expir\w*|still|yet|already)\b|"
    r"今|昨|明[天日年早晚]|后天|後天|前[天日年]|去年|本[年月周季週]|[这這][个個些年月周季週]|当[前年月日天]|當[前年月日天]|上[个個年月周季週半]|"
    r"下[个個年月周季週半]|最近|近[来來一二两兩三四五六七八九十几幾\d期]|过去|過去|目前|现在|現在|至今|以来|以來|之前|以前|年龄|年齡|岁|歲|"
    r"到期|过期|過期|逾期|还没|還沒|已经|已經",
    re.I,
)
"""Words of a time that depends on the day on which they are said."""
_TALK = re.compile(
    r"^\W*(?:hi|hello|hey|good (?:morning|afternoon|evening|night|job|work)|thanks?|thank you|thx|cheers|ok|okay|great|"
    r"nice|perfect|cool|well done|sorry|bye|goodbye|help|test|yes|no)\b(?:\W+\w+){0,3}\W*$"
    r"|\b(?:who|what|how) are you\b|\bwhat can you\b|\bcan you (?:help|do|speak|read|see|remember)\b|\byour name\b"
    r"|^\W*(?:please,? )?(?:remember|forget|note|always|never|from now on|call me|my name is|i am|i'm|i like|i prefer|"
    r"(?:i|we) (?:want|need|would like)(?! to\b| a list\b| the\b| all\b)|we are|we prefer|use|speak|answer|reply|"
    r"explain|translate)\b"
    r"|^\W*(?:你好|您好|嗨|早上好|下午好|晚上好|谢谢|多谢|感谢|好的|好吧|不错|很好|太好了|辛苦了|对不起|再见|帮助|测试|是的|不是)"
    r".{0,10}$|[你您]是[谁什]|[你您](?:能|可以|会)(?:做|干|帮|记)|[你您]叫什么"
    r"|^\W*请?(?:记住|忘记|忘掉|以后|今后|从现在起|每次|总是|始终|一律|我叫|我是|我喜欢|我偏好|我们是|解释|翻译)"
    r"|^\W*(?:请|请你)?(?:使?用).{1,8}(?:回答|回复|表示|显示|单位)|^\W*我(?:想|要|希望)(?!知道|看|查|了解|问|找|统计|分析)",
    re.I,
)
"""What people say in addition to questions: thanks, questions about the analyst, wishes."""


def sql_prompt(
    *,
    dialect: str,
    schema: str,
    today: datetime | None,
    answering: bool,
    talks: bool = False,
    continues: str | None = None,
    instructions: str | None = None,
    project: str = "",
    most: int | None = None,
) -> str:
    """Return the system prompt of the writing, with the schema, or of the answering.

    `today` is None where no question needs it. `talks` says that the newest message may ask for no data. `instructions`
    are an agent's own, `project` are those of the conversation's project. `most` is the tokens of the whole, which is
    cut in its middle. None: no limit.
    """
    rules = ANSWERING if answering else WRITING.format(dialect=find_dialect(dialect).title)
    parts = [*([instructions] if instructions else []), rules, *([project_note(project)] if project else [])]
    if not answering:
        parts += [f"Schema:\n{schema}", *([f"Today is {today:%Y-%m-%d}."] if today is not None else [])]
        parts += [OR_WORDS] if talks else []
    head = "\n\n".join(parts)
    if most is not None:
        head = digest_of(head, most, ANY).text
    return head if continues is None else f"{head}\n\n{continued_note(continues)}"


def needs_today(messages: Sequence[Message]) -> bool:
    """Return whether a question speaks of a time that depends on the day. Where none does, a small model that knows the
    day filters by it all the same."""
    return any(message.role == "user" and _RELATIVE.search(str(message.text)) for message in messages)


def is_talk(message: str) -> bool:
    """Return whether a user's message may ask for no data: thanks, a wish, a question about the analyst itself."""
    return _TALK.search(message) is not None


def is_answering(messages: Sequence[Message]) -> bool:
    """Return whether the next reply is the answer: the last message is a result with rows, or only replies that could
    not be read follow it. A result without rows that says which values there are goes back to the writing once."""
    messages = messages[: _end_of_read(messages)]
    last = messages[-1] if messages else None
    if last is None or last.role != "tool" or last.name not in QUERIES:
        return False
    observation = observation_of(str(last.text))
    return bool(observation.get("ok")) and not (_is_empty(observation) and _is_first_result(messages))


def place_of_answered(messages: Sequence[Message]) -> int:
    """Return the place of the call whose rows the answering answers from."""
    return max(place for place in range(_end_of_read(messages)) if messages[place].role == "assistant")


def _end_of_read(messages: Sequence[Message]) -> int:
    """Return the number of messages before the replies at the end that could not be read."""
    end = len(messages)
    while end and _is_unread(messages[end - 1]):
        end -= 1
    return end


def _is_unread(message: Message) -> bool:
    return message.name == PARSE_ERROR or any(call["name"] == PARSE_ERROR for call in message.tool_calls)


def _is_empty(observation: Mapping[str, Any]) -> bool:
    data = observation.get("data") or {}
    return not data.get("rows") and bool(data.get("notes"))


def _is_first_result(messages: Sequence[Message]) -> bool:
    own: list[Message] = []
    for message in reversed(messages):
        if message.role == "user":
            break
        own.append(message)
    results = [each for each in own if each.role == "tool" and observation_of(str(each.text)).get("ok")]
    return len(results) == 1


def render_writing(messages: Sequence[Message]) -> list[Message]:
    """Convert a history to the form of the writing: statements in fences, results as short tables."""
    shown: list[Message] = []
    failure = ""
    is_repeated = bool(messages) and failure_of(messages[-1]) == SqlRepeated.code
    for message in _until_question(messages) if is_repeated else _without_repeated(messages):
        role, text = "user" if message.role == "tool" else message.role, write_message(message)
        if message.role == "tool":
            failure, before = failure_of(message), failure
            # A model that the hints have not helped gets the error alone.
            text = _FIRST_SENTENCE.match(text)[0] if failure and failure == before else text  # type: ignore[index]
        if not text.strip():
            continue
        if shown and shown[-1].role == role:  # some servers refuse two messages of one role in a row
            shown[-1] = Message(role, f"{shown[-1].text}\n\n{text}", id=shown[-1].id)
        else:
            shown.append(Message(role, text, id=message.id))
    return shown


def _until_question(messages: Sequence[Message]) -> Sequence[Message]:
    """Return a history up to its newest question: a small model that sees its failed statement writes it again, also
    at another temperature."""
    return messages[: max((place for place, message in enumerate(messages) if message.role == "user"), default=0) + 1]


def _without_repeated(messages: Sequence[Message]) -> list[Message]:
    """Return a history without the statements that were not run because they had failed before. A model that sees a
    statement twice writes it a third time."""
    kept: list[Message] = []
    for message in messages:
        if failure_of(message) != SqlRepeated.code:
            kept.append(message)
        elif kept and kept[-1].tool_calls:
            kept.pop()  # its call
    return kept


def failure_of(message: Message) -> str:
    """Return the type of a result's error; empty for another message."""
    error = observation_of(str(message.text)).get("error") if message.role == "tool" else None
    return str(error.get("type")) if isinstance(error, Mapping) else ""


def is_stuck(messages: Sequence[Message]) -> bool:
    """Return whether the last statement had failed before, or the last two results are errors of one type."""
    kinds = [failure_of(message) for message in messages if message.role == "tool"][-2:]
    return kinds[-1:] == [SqlRepeated.code] or (len(kinds) == 2 and kinds[0] == kinds[1] != "")


def write_message(message: Message) -> str:
    """Return the text of a message in the writing: a statement in a fence, a result as a short table. It is empty for
    an answer from rows: they stand right before it, and the model goes on to write statements alone."""
    if message.note.get("by") == BY_ROWS:
        return ""
    if message.role == "tool":
        return _result_text(str(message.text), _EARLIER_ROWS)
    if message.role == "assistant" and message.tool_calls:
        sql = message.tool_calls[0]["args"].get("sql")
        if isinstance(sql, str):
            return f"```sql\n{sql}\n```"
    return str(message.text)


def _result_text(text: str, most: int) -> str:
    observation = observation_of(text)
    data, error = observation.get("data"), observation.get("error")
    if isinstance(error, Mapping):
        return RETRY.format(reason=error.get("message", ""))
    if not isinstance(data, Mapping) or not isinstance(data.get("rows"), list):
        return text
    if _is_empty(observation):
        return _EMPTY.format(notes=" ".join(map(str, data["notes"])))
    return "\n".join(table_lines(data, most))


def table_lines(data: Mapping[str, Any], most: int) -> Iterator[str]:
    """Yield a result as lines: its label and size, its columns, and at most so many rows."""
    rows = list(data.get("rows") or [])
    total = data.get("total")
    size = f"{min(most, len(rows))} of {total if total is not None else 'more'} rows"
    yield f"Result [{data.get('query', '')}], {size}:"
    yield " | ".join(map(str, data.get("columns") or []))
    for row in rows[:most]:
        yield " | ".join(_cell(cell) for cell in row) if isinstance(row, list) else str(row)


def _cell(value: Any) -> str:
    text = "NULL" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    line = " ".join(text.split())
    return line if len(line) <= _CELL else f"{line[: _CELL - 1]}…"


def render_answering(messages: Sequence[Message]) -> list[Message]:
    """Convert a question, its call and its result to the one message of the answering. What stands before the
    question (memories, notes) stays before it."""
    parts: list[str] = []
    for message in messages:
        if message.role == "tool":
            data = observation_of(str(message.text)).get("data")
            if isinstance(data, Mapping):
                notes = [f"Note: {note}" for note in data.get("notes") or ()]
                parts.append("\n".join([*table_lines(data, _ROWS), *notes]))
            else:  # a view that had no room for it has cut it
                parts.append(str(message.text))
        elif message.role == "assistant" and message.tool_calls:
            parts.append(f"SQL: {message.tool_calls[0]['args'].get('sql', '')}")
        else:
            parts.append(str(message.text))
    return [Message("user", "\n\n".join(filter(str.strip, parts)), id=messages[-1].id if messages else None)]


def parse_written(text: str, tools: Sequence[Tool], ran: Collection[str]) -> ParsedReply:
    """Parse a reply of the writing: SQL in any form is run; words without SQL are the answer. Never raises."""
    thinking, body = split_thinking(text)
    if sql := find_statement(body):
        return ActionCall(thinking, RUN_SQL, {"sql": sql})
    return parse_reply(text, strict=False, tools=tools, ran=ran)


def parse_answer(text: str, ran: Collection[str], tools: Sequence[Tool] = (), question: str = "") -> ParsedReply:
    """Parse a reply of the answering: words are the answer, also around a statement. A statement alone is run, and is
    no answer if it was; nor is the `question`, said again. Never raises."""
    thinking, body = split_thinking(text)
    reply: ParsedReply = Finish(thinking, body)
    if not find_lone_statement(body):
        reply = parse_reply(text, strict=False, tools=tools, ran=ran)
    if isinstance(reply, Finish) and (sql := find_lone_statement(reply.text)):
        reply = ActionCall(reply.thought, RUN_SQL, {"sql": sql})
    if isinstance(reply, ActionCall) and statement_form(str(reply.args.get("sql", ""))) in ran:
        return Malformed(IN_WORDS)
    if isinstance(reply, Finish) and question and _bare_words(reply.text) == _bare_words(question):
        return Malformed(IN_WORDS)
    return replace(reply, text=reply.text.strip()) if isinstance(reply, Finish) else reply


def _bare_words(text: str) -> str:
    """Return a text without labels and the marks at its end."""
    return _LABELS.sub("", text).strip().rstrip("?？.。!！ ").casefold()


def label_answer(text: str, messages: Sequence[Message]) -> str:
    """Return an answer with the label of the query whose rows it was written from. Small models forget it, and an
    answer of this protocol has one query."""
    results = (
        observation_of(str(message.text)).get("data") for message in reversed(messages) if message.name in QUERIES
    )
    label = next((data["query"] for data in results if isinstance(data, Mapping) and data.get("query")), None)
    needs_one = label is not None and re.search(r"\d", text) and not _LABEL.search(text)
    return f"{text} [{label}]" if needs_one else text


def find_lone_statement(body: str) -> str | None:
    """Return the statement of a reply that says nothing else, or only announces it; None if it has other words."""
    if sql := sql_of(body):
        return sql
    text = body.strip()
    if "```" in text:
        return find_statement(text) if not _FENCE.sub("", text).strip() else None
    return argument_of(text) or (text if _BARE.match(text) and not WORDS_BESIDE.search(text) else None)


def find_statement(body: str) -> str | None:
    """Return the first statement of a reply: in a fence, bare, or as the argument of a call."""
    for fence in _FENCE.finditer(body):
        inside = fence["sql"].strip()
        if _BEGINS.match(inside):
            return inside
        if sql := argument_of(inside):
            return sql
    text = body.strip()
    if _BEGINS.match(text) and not re.search(r"[.!。！]\s*\Z", text):
        return text
    return argument_of(text)
