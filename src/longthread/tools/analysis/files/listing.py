"""Which files of a folder are tables, their names, and the encoding of a text file, by its mark or its bytes."""

from __future__ import annotations

import codecs
import re
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from longthread.errors import InvalidInput

_READERS = {
    ".csv": "csv", ".tsv": "csv", ".tab": "csv", ".txt": "csv",
    ".parquet": "parquet", ".pq": "parquet",
    ".json": "json", ".jsonl": "json", ".ndjson": "json",
    ".xlsx": "xlsx", ".xlsm": "xlsx", ".xls": "xlsx",
}  # fmt: skip
_PACKABLE = frozenset({"csv", "json"})
COMPRESSED = (".gz", ".zst")
_DATABASES = frozenset({".sqlite", ".sqlite3", ".db", ".db3", ".s3db", ".gpkg", ".duckdb", ".ddb"})
_UNREAD_SHEETS = frozenset({".xlsb", ".ods"})
_NAMED = 20
"""Skipped files that are listed by name."""
KINDS = "CSV, TSV, Parquet, JSON, JSON Lines and Excel (.xlsx, .xls)"


def reader_of(path: Path) -> str | None:
    """The reader for a file's name: `csv`, `parquet`, `json`, `xlsx` or None."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in COMPRESSED:
        suffixes.pop()
        kind = _READERS.get(suffixes[-1]) if suffixes else None
        return kind if kind in _PACKABLE else None
    return _READERS.get(suffixes[-1]) if suffixes else None


def data_files(folder: Path) -> list[Path]:
    """The data files in `folder`, by name, without hidden ones and .txt."""
    return [path for path in _visible(folder) if _why_not(path) is None]


def left_out(folder: Path) -> list[str]:
    """Sentences on the other files in `folder`: why each is no table, and counts of the rest."""
    why = [(path, reason) for path in _visible(folder) if (reason := _why_not(path)) is not None]
    notes = [f"{path.name} is left out: {reason}" for path, reason in why[:_NAMED]]
    rest = Counter(path.suffix.lower() or "without a suffix" for path, _ in why[_NAMED:])
    if rest:
        kinds = ", ".join(f"{kind} ({count})" for kind, count in rest.most_common(5))
        notes.append(f"{len(why) - _NAMED} more are left out: {kinds}.")
    return notes


def unread_sheet(path: Path) -> str | None:
    """The advice for a workbook of an unsupported format; None for any other file."""
    if path.suffix.lower() not in _UNREAD_SHEETS:
        return None
    return f"{path.suffix.lower()} workbooks are not read. Save it as .xlsx."


def _visible(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if not path.name.startswith((".", "~$")))


def _why_not(path: Path) -> str | None:
    suffix = path.suffix.lower()
    if path.is_dir():
        return "it is a folder. Give it as a source of its own."
    if not path.is_file():
        return "it is no file, or leads to none."
    if suffix in _DATABASES:
        return "it is a database. Give it as a source of its own."
    if suffix == ".txt":
        return "a folder's .txt files are taken for plain text. Name it .csv if it is a table."
    if (reason := unread_sheet(path)) is not None:
        return reason
    return None if reader_of(path) else f"its kind is not known. Longthread reads {KINDS} files."


def base_name(text: str) -> str:
    """A name of letters, digits and underscores."""
    return re.sub(r"\W+", "_", text).strip("_") or "data"


def stem_of(path: Path) -> str:
    """A table name from a file's name without its suffixes."""
    ends = path.suffixes[-2:] if path.suffix.lower() in COMPRESSED else path.suffixes[-1:]
    return base_name(path.name.removesuffix("".join(ends)))


_BLOCK = 1_048_576
_PROBED = 65_536
_EVIDENCE = 200_000
"""Bytes of non-ASCII lines that rank the encodings."""
_OF_A_BLOCK = 8_192
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_LIKELY = ("cp1252", "gb18030", "big5hkscs", "cp932", "cp949", "euc-jp", "cp1251", "cp1250")
_WIDER = {"big5hkscs": ("cp950", "big5hkscs"), "euc_jis_2004": ("euc_jp", "euc_jis_2004")}
"""The codecs to try for a detected encoding."""
_CENTRAL_EUROPE = 0.6
"""Weight of cp1250: the detector cannot tell it from cp1252, which is more common."""
_ODD = 0.2
"""Share of odd characters above which a single-byte encoding is unlikely."""
_SIGNS = frozenset("€°“”‘’–—£©®«»…·½¼¾²³µ§ºª¿¡\xa0¥™•×÷±„‚№¢")
_NAMES = {
    "cp1252": "Windows-1252",
    "cp1251": "Windows-1251",
    "cp1250": "Windows-1250",
    "gb18030": "GB18030",
    "cp950": "Big5",
    "big5hkscs": "Big5",
    "cp932": "Shift-JIS",
    "cp949": "EUC-KR",
    "euc_jp": "EUC-JP",
    "euc_jis_2004": "EUC-JP",
}
_MOSTLY = 0.9
"""Share of UTF-8 lines above which the others count as damaged."""


def find_codec(encoding: str) -> str:
    """The text codec of that name. Raises InvalidInput."""
    try:
        codec = codecs.lookup(encoding)
        "a".encode(encoding)
    except (LookupError, ValueError):
        reason = f"There is no encoding {encoding[:40]!r}. Give one such as utf-8, cp1252, big5, shift_jis or gb18030."
        raise InvalidInput(reason=reason) from None
    return codec.name


def recode_file(path: Path, made: Path, encoding: str, *, errors: str = "strict", to: str = "utf-8") -> bool:
    """Write a text file in another encoding; whether it is in `encoding`."""
    try:
        with (
            path.open(encoding=encoding, errors=errors, newline="") as given,
            made.open("w", encoding=to, newline="") as copy,
        ):
            shutil.copyfileobj(given, copy)
    except UnicodeError:
        return False
    return True


def name_encoding(encoding: str) -> str:
    """An encoding's name for people."""
    return _NAMES.get(encoding, encoding.upper())


def likely(path: Path) -> list[str]:
    """The possible encodings of a file, the likeliest first; none if it is binary. `utf-8-damaged` has a few bad
    lines."""
    with path.open("rb") as file:
        head = file.read(_PROBED)
    for mark, name in _MARKS:
        if head.startswith(mark):
            return [name]
    if b"\0" in head:
        return _two_bytes(head)
    if sum(byte < 9 or 13 < byte < 32 for byte in head) * 20 > len(head):
        return []
    if _is_utf8(_blocks(path)):
        return ["utf-8"]
    evidence = _evidence(_blocks(path))
    good = sum(_is_utf8([line]) for line in evidence)
    damaged = ["utf-8-damaged"] if len(evidence) > 1 and good >= _MOSTLY * len(evidence) else []
    return damaged + rank_encodings(b"\n".join(evidence))


def rank_encodings(data: bytes) -> list[str]:
    """Encodings of bytes that are not UTF-8, the likeliest first."""
    import chardet  # seldom needed, and slow to import

    found = chardet.detect_all(data, ignore_threshold=True, include_encodings=_LIKELY, compat_names=False)
    scores = {str(one["encoding"]): _weigh_encoding(data, str(one["encoding"]), one["confidence"]) for one in found}
    best = sorted(scores, key=lambda name: scores[name], reverse=True)
    if best and best[0] == "cp1250" and data.decode("cp1250", "replace") == data.decode("cp1252", "replace"):
        best.insert(0, "cp1252")
    return [codec for name in (*best, "cp1252") for codec in _WIDER.get(name, (name,))]


def _weigh_encoding(data: bytes, encoding: str, confidence: float) -> float:
    if not encoding.startswith("cp125"):
        return confidence
    if _oddness(data.decode(encoding, "replace")) > _ODD:
        return confidence / 100 - 1
    return confidence * (_CENTRAL_EUROPE if encoding == "cp1250" else 1)


def _oddness(text: str) -> float:
    """Share of non-ASCII characters in odd places, such as capitals within words: a sign of a wrong encoding."""
    count = odd = 0.0
    for before, character, after in zip(" " + text, text, text[1:] + " ", strict=False):
        if character.isascii():
            continue
        count += 1
        if character.isupper():
            odd += before.islower() or (before.isalpha() and after.islower()) / 2
        elif not character.isalpha():
            odd += character not in _SIGNS or (character not in "’·" and before.isalpha() and after.isalpha())
    return odd / max(count, 1)


def _two_bytes(head: bytes) -> list[str]:
    """UTF-16 without a mark, in the byte order that gives text; a binary file has none."""
    even = head[: len(head) // 2 * 2]
    found = {}
    for encoding in ("utf-16-le", "utf-16-be"):
        text = even.decode(encoding, "replace")
        wrong = sum((c < " " and c not in "\t\r\n") or c == "�" or "\ue000" <= c <= "\uf8ff" for c in text)
        usual = sum(c.isascii() for c in text) - wrong
        has_lines = "\n" in text or "\r" in text or not (b"\n" in head or b"\r" in head)
        if usual > 0 and wrong * 20 <= len(text) and has_lines:
            found[encoding] = usual
    return [max(found, key=lambda name: found[name])] if found else []


def _blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            yield block


def _is_utf8(blocks: Iterable[bytes]) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for block in blocks:
            decoder.decode(block)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _evidence(blocks: Iterable[bytes]) -> list[bytes]:
    """Non-ASCII lines from all over the file."""
    found: list[bytes] = []
    left, size = b"", 0
    for block in blocks:
        lines = (left + block).split(b"\n")
        left = lines.pop() if len(lines) > 1 else b""
        taken = 0
        for line in lines:
            if not line.isascii() and taken < _OF_A_BLOCK and size + taken < _EVIDENCE:
                found.append(line[:_OF_A_BLOCK])
                taken += len(found[-1])
        size += taken
    if not left.isascii() and size < _EVIDENCE:
        found.append(left[:_OF_A_BLOCK])
    return found
