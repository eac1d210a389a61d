"""Finds the thinking of a reasoning model in the text of its reply. Tags in code or quotes do not count."""

from __future__ import annotations

import re
from collections.abc import Iterator

_NAMES = (
    r"think(?:ing)?|thoughts?|thought_process|reasoning|reflection|analysis|scratchpad|inner_?monologue|cot|"
    r"chain_of_thought|seed:think|seed:cot_budget_reflect|ant_?thinking|ant[-:]thinking|antml:thinking"
)
_MARKS = r"(?:thought|thinking|think|reasoning)"
OPENS = (
    rf"<(?:{_NAMES})(?:\s[^<>\n]{{0,80}})?>|\[THINK(?:ING)?\]|◁think▷|<\|(?:begin|start)_(?:of_)?{_MARKS}\|>|"
    rf"<\|{_MARKS}\|>|<unused94>(?:thought\b)?|<\|channel>(?:thought|analysis)\b"
)
"""A case-insensitive pattern for the beginning of thinking."""
CLOSES = (
    rf"</(?:{_NAMES})\s*>|\[/THINK(?:ING)?\]|◁/think▷|<\|end_(?:of_)?{_MARKS}\|>|<\|/{_MARKS}\|>|<unused95>|<channel\|>"
)
"""A pattern for its end."""
_TAG = re.compile(rf"{OPENS}|{CLOSES}", re.I)
_TOKEN = re.compile(
    rf"(?P<fence>^[ \t]*(?:```|~~~)[^`\n]*$)|(?<!`)(`{{1,3}})(?!`)[^`\n]+\2(?!`)|"
    rf'"[^"\n]*"|“[^”\n]*”|「[^」\n]*」|‘[^’\n]*’|(?P<open>{OPENS})|(?P<close>{CLOSES})',
    re.I | re.M,
)
_QUOTES = "'’‘\"`"
_WRAPPED = re.compile(
    r"\s*(?:<(answer|output|response|final|final_answer|solution)>(.*)</\1>|"
    r"<\|begin_of_solution\|>(.*?)(?:<\|end_of_solution\|>)?|<\|START_RESPONSE\|>(.*?)(?:<\|END_RESPONSE\|>)?)\s*",
    re.I | re.S,
)
_PHRASES = re.compile(r"\s*Here(?:'s| is) my thought process:(.*?)Here(?:'s| is) my response:", re.I | re.S)
_ENDS = (
    "<|im_end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end|>",
    "<|return|>",
    "<|end_of_text|>",
    "<|endoftext|>",
    "</s>",
    "<｜end▁of▁sentence｜>",
    "<eos>",
    "<end_of_turn>",
)

_CHANNEL = re.compile(
    r"(?:<\|start\|>(?P<role>[^<]{0,120}))?(?:<\|channel\|>(?P<channel>[^<]{0,120}))?(?:<\|constrain\|>[^<]{0,40})?"
    r"<\|message\|>"
)
_SEGMENT_END = re.compile(r"<\|(?:end|return|call|start|channel)\|>")
_BARE_CHANNELS = re.compile(r"\Aanalysis(?![a-z ])(.*?)(?:<\|end\|>)?(?:<\|start\|>)?assistant\s?final(.*)\Z", re.S)
"""Channels whose tokens the server has removed."""


def without_thinking(reply: str) -> str:
    """A reply without its thinking; empty if that does not end."""
    return split_thinking(reply)[1]


def split_thinking(reply: str) -> tuple[str, str]:
    """The thinking of a reply, and the rest. A closing tag alone ends thinking from the start of the reply, as some
    chat templates open it themselves; without a closing tag everything is thinking."""
    if "<|message|>" in reply:
        return _by_channel(reply)
    if found := _BARE_CHANNELS.match(reply.lstrip()) or _PHRASES.match(reply):
        rest = found[2] if found.re is _BARE_CHANNELS else reply[found.end() :]
        return found[1].strip(), _without_end(rest)
    if not _TAG.search(reply):
        return "", _without_end(reply)
    thinking, rest = _by_tag(reply)
    wrapped = _WRAPPED.fullmatch(rest)
    if wrapped:
        rest = next(part for part in wrapped.groups()[1:] if part is not None)
    return "\n\n".join(thinking), _without_end(rest)


def _without_end(text: str) -> str:
    """Removes end tokens of models."""
    # `<s>5</s>` is strikethrough.
    ends = tuple(end for end in _ENDS if end != "</s>" or "<s>" not in text)
    while (bare := text.rstrip()).endswith(ends):
        text = bare[: bare.rindex("<")]
    return text


def _by_tag(reply: str) -> tuple[list[str], str]:
    thinking: list[str] = []
    shown: list[str] = []
    at, opened = 0, False
    for kind, start, end in _tags(reply):
        if kind == "open" and not opened:
            shown.append(reply[at:start])
            at, opened = end, True
        elif kind == "close":
            before = [reply[at:start]] if opened else [*shown, reply[at:start]]
            shown = shown if opened else []
            thinking.append("".join(before).strip())
            at, opened = end, False
    (thinking if opened else shown).append(reply[at:].strip() if opened else reply[at:])
    return [part for part in thinking if part], "".join(shown)


def _tags(reply: str) -> Iterator[tuple[str, int, int]]:
    """The kind, start and end of each tag outside of code and quotes. Fences within thinking are ignored, as they may
    have no end."""
    tokens = list(_TOKEN.finditer(reply))
    last_fence = max((n for n, token in enumerate(tokens) if token["fence"] is not None), default=-1)
    last_close = max((n for n, token in enumerate(tokens) if token["close"] is not None), default=-1)
    fenced = opened = False
    for n, token in enumerate(tokens):
        kind = token.lastgroup if token.lastgroup in ("open", "close", "fence") else None
        if kind == "fence" and not opened:
            fenced = bool(token["fence"].strip("`~ \t")) if fenced else n < last_fence
        elif kind in ("open", "close") and not fenced and not _is_quoted(reply, token):
            if kind == "open" and n > last_close and not _may_open(reply, token.start()):
                continue
            opened = kind == "open"
            yield kind, token.start(), token.end()


def _is_quoted(reply: str, token: re.Match[str]) -> bool:
    before, behind = reply[token.start() - 1 : token.start()], reply[token.end() : token.end() + 1]
    return bool(before) and before in _QUOTES and bool(behind) and behind in _QUOTES


def _may_open(reply: str, at: int) -> bool:
    """Whether unclosed thinking may begin there: not within a sentence."""
    before = reply[max(0, at - 40) : at]
    return not before.strip() or before.rstrip(" \t")[-1:] in "\n.!?。！？:：>"


def _by_channel(reply: str) -> tuple[str, str]:
    """Harmony: the channel `final` is the answer, messages to tools stay as they are, all else is thinking."""
    thinking: list[str] = []
    final: list[str] = []
    calls: list[str] = []
    at = 0
    for head in _CHANNEL.finditer(reply):
        if head.start() < at:
            continue
        if not final and not thinking and not calls:
            thinking.append(reply[: head.start()])
        end = _SEGMENT_END.search(reply, head.end())
        at = end.start() if end else len(reply)
        body, about = reply[head.end() : at], f"{head['role'] or ''} {head['channel'] or ''}"
        if " to=" in f" {about}":
            calls.append(reply[head.start() : at])
        elif (head["channel"] or "final").strip().startswith("final"):
            final.append(body)
        else:
            thinking.append(body)
    rest = "\n".join(calls) or "".join(final)
    parts = [part.strip() for part in ([*thinking, *final] if calls else thinking)]
    return "\n\n".join(part for part in parts if part), _without_end(rest)
