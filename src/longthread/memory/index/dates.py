"""Days and times as people write them, and questions that ask for them."""

from __future__ import annotations

import re
import unicodedata

MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)

_NUMBER_OF = {month[:3]: number for number, month in enumerate(MONTHS, 1)}
_MONTH = "|".join(f"{month[:3]}(?:{month[3:]})?" if len(month) > 3 else month for month in MONTHS).replace(
    "sep(?:tember)?", "sep(?:t(?:ember)?)?"
)
_DAY = r"(0?[1-9]|[12]\d|3[01])"
_NO_DAY = r"(?![.:]\d| ?%| (?:times|percent|people|minutes|hours|days|weeks|months|years|euros|dollars|miles|km|kg)\b)"
"""What does not follow a day: "May 5 times", "May 5.50"."""
_SAID_BEFORE = r"(?<![a-z] )|(?<=\bon )|(?<=\bin )|(?<=\bby )|(?<=\bof )|(?<=\bto )|(?<=\bthe )|(?<=\band )|(?<=\bis )|"
_SAID_BEFORE += r"(?<=\bwas )|(?<=\bfor )|(?<=\bfrom )|(?<=\btill )|(?<=\blast )|(?<=\bnext )|(?<=\bthis )|"
_SAID_BEFORE += r"(?<=\bsince )|(?<=\buntil )|(?<=\bafter )|(?<=\bbefore )"
_MONTH_FIRST = re.compile(rf"\b({_MONTH})\.? (?:the )?{_DAY}(?:st|nd|rd|th)?\b{_NO_DAY}", re.IGNORECASE)
_DAY_FIRST = re.compile(rf"(?<!\d){_DAY}(st|nd|rd|th|\.)?( of)? ({_MONTH})\b", re.IGNORECASE)
_BEFORE_MONTH = re.compile(rf"(?:{_SAID_BEFORE})\Z", re.IGNORECASE)
_AFTER_MONTH = re.compile(r" *(?:[^\w ]|\d|\Z|(?:at|in|and|or|to|for|from|until|with|is|was|we|i)\b)", re.IGNORECASE)
_ALSO_VERBS = ("may", "march")

_HAN_DIGITS = "一二三四五六七八九"
_HAN_MONTH = "十[一二]?|[一二三四五六七八九]"
_HAN_DAY = "三十一?|二?十[一二三四五六七八九]?|廿[一二三四五六七八九]?|[一二三四五六七八九]"
_NO_COUNT = "(?! ?[个個天人元年月])"
_HAN_DATE = re.compile(
    rf"(?<![\d一二三四五六七八九十廿第])(0?[1-9]|1[0-2]|{_HAN_MONTH}) ?月 ?(0?[1-9]|[12]\d|3[01]|{_HAN_DAY})"
    rf"(?= ?[日号號]|[^\d\u4e00-\u9fff]|\Z){_NO_COUNT}"
)
_NUMERIC = re.compile(rf"(?<!\d)\d{{4}}[-/.](0?[1-9]|1[0-2])[-/.]{_DAY}(?!\d)")
_NO_DAY_SIGN = "(?![楼樓线線门門馆館院机機店厅廳桌车車房室库庫位码碼座床坑井球])"
"""What follows 号 where it counts things: 3号楼."""
_DAY_SIGN = re.compile(rf"(?<!\d)([12]?\d|3[01])[号號]{_NO_DAY_SIGN}")
_NO_CLOCK = (
    "(?!建议|建議|原因|理由|意见|意見|要求|注意|内容|內容|好处|好處|优点|優點|缺点|缺點|心得|体会|體會|经验|經驗|"
    "想法|看法|说明|說明|问题|問題|技巧|提示|措施|收获|收穫|感悟|总结|總結|不同|区别|區別|启示|啟示|规定|規定|事项|"
    "事項|特点|特點|作用|[和与、，]?要点)"
)
"""What follows 点 where it counts points: 10点建议."""

_WEEKDAY = "(?:mon|tues|wednes|thurs|fri|satur|sun)days?"
_TIME = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|ago|last|next(?! to\b)|"
    r"this (?:week|month|year|morning|afternoon|evening|weekend)|"
    r"since|until|recently|january|february|april|june|july|august|september|october|november|december|"
    rf"{_WEEKDAY}|weekend|weeks?|months?|years?|days?|hours?|minutes|in (?:may|march)|"
    r"(?<!room )(?<!number )(?<!no\. )(?<!flat )(?<!code )(?<!gate )(?<!flight )(?<!page )(?<!house )(?<!line )"
    r"(?<!pin )(?:1[5-9]|20)\d\d|"
    r"\d{1,2}(?::\d\d|st|nd|rd|th)|\d{1,2}(?::\d\d)? ?[ap](?:m\b|\.m\.)|o['’]clock|noon|midnight|"
    r"morning|evening|night|"
    r"(?:on|next|last|this|every|by|until|from) (?:mon|tues?|wed|thu(?:rs?)?|fri|sat|sun))(?!\w)|"
    r"昨天|今天|明天|前天|后天|後天|今年|去年|明年|\d{4}年|[〇零一二三四五六七八九]{4}年|上周|上週|下周|下週|"
    r"[周週][一二三四五六日天末]|[礼禮]拜[一二三四五六日天]|星期[一二三四五六日天]|星期|上个月|上個月|下个月|下個月|"
    r"早上|上午|中午|正午|下午|傍晚|晚上|半夜|凌晨|清晨|"
    rf"\d{{1,2}}[月日]|\d{{1,2}}[点點]{_NO_CLOCK}|[一二两兩三四五六七八九十][点點](?:半|钟|鐘|整|[一三]刻)",
    re.IGNORECASE,
)
_WEEKDAY_SHORT = re.compile(
    r"\b(?:Mon|Tues?|Wed|Thu(?:rs?)?|Fri|Sat|Sun)\b(?=\.|,| \d)|\b(?:Mon|Tues?|Wed|Thurs?|Fri)\b"
)
_WHEN = re.compile(
    r"\b(?:when|what (?:time|date|day|month|year)|how long|which (?:date|day|month|year)|"
    r"what(?:['’]s| is| was) the (?:\w+ )?(?:date|day|month|year|time)\b(?! zone))\b|"
    r"什么时候|什麼時候|什么时间|什麼時間|什么日子|什麼日子|何时|何時|星期[几幾]|[周週][几幾]|[礼禮]拜[几幾]|"
    rf"哪一?[天年]|哪个月|哪個月|[几幾]月|[几幾][点點]{_NO_CLOCK}|[几幾][号號]{_NO_DAY_SIGN}",
    re.IGNORECASE,
)


def asks_when(question: str) -> bool:
    return _WHEN.search(question) is not None


def has_time(text: str) -> bool:
    """Whether a text says when something is."""
    text = unicodedata.normalize("NFKC", text)
    return any(form.search(text) for form in (_TIME, _WEEKDAY_SHORT, _DAY_SIGN)) or bool(days(text))


def with_day_signs(text: str) -> str:
    """Replace 27号 by 27日."""
    return _DAY_SIGN.sub(r"\1日", text) if "号" in text or "號" in text else text


def days(text: str) -> list[str]:
    """Return the days that a text names as `4月27日`, one term for every language and order."""
    found = [(_number(date[1]), _number(date[2])) for date in _HAN_DATE.finditer(text)] if "月" in text else []
    if any(digit in text for digit in "123456789"):
        found += [(int(date[1]), int(date[2])) for date in _NUMERIC.finditer(text)]
        found += [(_month(date[1]), int(date[2])) for date in _MONTH_FIRST.finditer(text) if _is_month(date, 1)]
        found += [(_month(date[4]), int(date[1])) for date in _DAY_FIRST.finditer(text) if _is_month(date, 4)]
    return [f"{month}月{day}日" for month, day in found]


def _month(name: str) -> int:
    return _NUMBER_OF[name[:3].lower()]


def _is_month(date: re.Match[str], group: int) -> bool:
    """Whether a word is a month where it may be a verb: "you may 5 times", "the 5 may come"."""
    if date[group] not in _ALSO_VERBS:
        return True
    if group == 1:
        return _BEFORE_MONTH.search(date.string[max(0, date.start() - 8) : date.start()]) is not None
    return bool(date[2] or date[3]) or _AFTER_MONTH.match(date.string, date.end()) is not None


def _number(text: str) -> int:
    """Read a number below 100 in Chinese or Arabic digits."""
    if text.isdecimal():
        return int(text)
    tens, ten, ones = text.replace("廿", "二十").rpartition("十")
    return (_digit(tens) or 1) * 10 * bool(ten) + _digit(ones)


def _digit(text: str) -> int:
    return _HAN_DIGITS.find(text) + 1 if text else 0
