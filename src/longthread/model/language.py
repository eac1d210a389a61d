"""What short texts of people and models say: their language, a request to continue a paused run, a date or time."""

from __future__ import annotations

import re
import unicodedata
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta

from longthread.errors import InvalidInput

_HAN = re.compile(r"[\u4e00-\u9fff]")
_KANA_OR_HANGUL = re.compile(r"[\u3041-\u3096\u30a1-\u30fa\u31f0-\u31ff\uff66-\uff9d\uac00-\ud7a3]")
_CHINESE_ALONE = re.compile("[吗嗎呢请这這们們么麼哪怎为谁给还让没沒几说对你您]")
"""Characters of frequent words that Japanese and Korean do not use."""
_WORD = re.compile(r"[A-Za-z]+")
_ENGLISH = re.compile(
    r"\b(?:the|this|that|these|those|my|we|our|you|your|his|she|its|they|them|their|am|are|was|were|been|do|does|did|done"
    r"|have|has|had|will|would|can|could|shall|should|may|might|must|of|about|than|there|here|how|what|which|who|whose"
    r"|why|please|tell|give)\b",
    re.IGNORECASE,
)
"""Frequent words that do not occur in SQL or code."""
_LONGEST = 120
"""Characters. A longer message asks for something else."""
_MARKS = re.compile(r"[\W_]+")
_POLITE = re.compile(
    r"\b(?:please|pls|plz|kindly|yes|yeah|yep|yup|sure|ok|okay|k|fine|all right|alright|right|good|great|nice|perfect|"
    r"cool|well|so|then|now|just|and|do|thanks|thank you|thx|of course|absolutely|definitely|exactly|agreed|hey|hi|"
    r"let s|lets|let us|(?:can|could|would|will|may|should) (?:you|we|i)|you (?:can|may|should)|"
    r"(?:i|we) (?:want|would like|d like)(?: you)? to|for me|a (?:bit|little)|further|if (?:possible|you can))\b|"
    r"可不可以|能不能|可以|可否|能否|没问题|沒問題|没关系|麻烦|麻煩|拜托|劳驾|辛苦|谢谢|謝謝|多谢|感谢|同意|确认|確認|"
    r"当然|當然|好的|那就|那么|那麼|一下|请|請|您|你们|咱们|我们|你|我|好|嗯|恩|哦|噢|喔|(?<![执執进進运運])行|对|對|是的|是|"
    r"那|就|再|还|還|先|要|想|能|帮|吧|呗|啦|了|啊|呀|哈|嘛|吗|嗎|呢"
)
"""Polite words, agreement and pronouns around the request."""
_AGREEMENT = re.compile(
    r"(?:yes|yeah|yep|yup|y|sure thing|sure|ok|okay|k|fine|all right|alright|of course|absolutely|definitely|agreed|"
    r"please do|do it|do so|go for it|go|是的|是|好的|好滴|好嘞|好|可以|行|没问题|沒問題|当然|當然|同意|确认|確認|"
    r"确定|確定|要的|要|嗯|恩|对|對)"
    r"(?: |please|do it|do|thanks|thank you|thx|请|請|谢谢|謝謝|吧|啊|呀|哦|啦|的|yes|ok|go|是|好|嗯|行|对|對|要)*"
)
"""An answer to the question whether to go on: yes and no more than that."""
_REQUEST = re.compile(
    r"(?:(?:continue|go on|go ahead|keep (?:going|working|on|at it)|carry on|proceed|resume|press on)"
    r"(?: on| going)?"
    r"(?: (?:with |to )?(?:it|that|this|there|(?:the |this |that |your |my )?"
    r"(?:task|work|analysis|query|search|run|job|plan|execution|process|rest|next step|remaining steps))"
    r"| (?:working|executing|running|processing|searching|analy[sz]ing|querying)(?: on (?:it|that|this))?)?"
    r"(?: (?:from )?(?:there|here|where (?:you|we|it) (?:left off|stopped|paused|were|ended)))?"
    r"|(?:继续|繼續|接着|接著|接下去|往下)"
    r"(?:执行|執行|运行|運行|进行|進行|處理|处理|查询|查詢|查|分析|工作|做|干|来|來|走|跑|说|說|讲|講|回答|完成|操作|推进|下去|"
    r"下一步|任务|任務|步骤|步驟|上面|刚才|剛才|之前|剩下|余下|未完成|的)*"
    r"| )+"
)
"""The request itself, once or more, with the words for the interrupted work."""


def is_chinese(text: str) -> bool:
    """Whether to answer a text in Chinese: not for Japanese, Korean, or English with a Chinese name, but for Chinese
    with SQL, kana or hangul in it."""
    characters = len(_HAN.findall(text))
    if not characters or (_KANA_OR_HANGUL.search(text) and not _CHINESE_ALONE.search(text)):
        return False
    return characters >= len(_WORD.findall(text)) or not _ENGLISH.search(text)


def asks_to_continue(message: str) -> bool:
    """Whether `message` only asks to continue. A message with other content is a question of its own."""
    if len(message) > _LONGEST:
        return False
    words = " ".join(_POLITE.sub(" ", _plain(message)).split())
    return bool(words) and _REQUEST.fullmatch(words) is not None


def agrees(message: str) -> bool:
    """Whether `message` only says yes: right after a pause, which asks whether to go on, it goes on. Elsewhere it is an
    ordinary message."""
    return len(message) <= _LONGEST and _AGREEMENT.fullmatch(_plain(message)) is not None


def _plain(message: str) -> str:
    return " ".join(_MARKS.sub(" ", unicodedata.normalize("NFKC", message).casefold()).split())


def moment_of(text: str | None, name: str, *, ends: bool = False) -> datetime | None:
    """Parses the argument `name` as ISO 8601, by default in UTC; None for an empty text. With `ends` a date means the
    end of its day. Raises InvalidInput."""
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        reason = f"{name} is {text!r}; give a date or time such as 2027-05-08 or 2027-05-08T14:30."
        raise InvalidInput(reason=reason) from None
    if ends:
        moment = end_of(moment, text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def end_of(moment: datetime, text: str) -> datetime:
    """The end of the day if the text is only a date."""
    with suppress(OverflowError, ValueError):
        date.fromisoformat(text.strip())
        return moment + timedelta(days=1)
    return moment
