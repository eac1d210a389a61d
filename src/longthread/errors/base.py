"""What every error has: a message, the fields that it names, a code and an exit code; and the errors of bad input."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from string import Formatter
from typing import TYPE_CHECKING, Any, ClassVar, dataclass_transform

from longthread.documentation import documentation
from longthread.extras import install_command

__all__ = [
    "CursorUnknown",
    "EvalInvalid",
    "ExtraMissing",
    "InvalidInput",
    "LongthreadError",
    "MessageTooLong",
    "PluginFailed",
    "PositionUnknown",
    "QuestionTooLong",
    "QuestionsInvalid",
    "SourceMissing",
    "StatementsInvalid",
]


@dataclass_transform(kw_only_default=True)
class _WithFields(Exception):
    """An exception whose message names its fields."""

    message: ClassVar[str] = ""
    """What happened and what to do. Each `{name}` is a field of the error."""
    code: ClassVar[str]
    """The `type` of an observation and of an HTTP problem; by default the class's name, as `thread_not_found`."""
    exit_code: ClassVar[int] = 1
    """What the command line exits with."""
    reason = ""
    _optional: ClassVar[frozenset[str]] = frozenset()
    _fields: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, *, code: str = "", exit_code: int | None = None) -> None:
        super().__init_subclass__()
        cls.message = " ".join(cls.message.split())
        cls.code = code or re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()
        cls.exit_code = cls.exit_code if exit_code is None else exit_code
        cls._optional |= inspect.get_annotations(cls).keys() & vars(cls).keys()
        named = [name for _, name, _, _ in Formatter().parse(cls.message) if name]
        cls._fields = tuple(dict.fromkeys([*named, *sorted(cls._optional)]))

    def __init__(self, **details: Any) -> None:
        if wrong := sorted((details.keys() - self._fields) | ({*self._fields} - self._optional - details.keys())):
            raise TypeError(f"{type(self).__name__} has the fields {sorted(self._fields)}; wrong: {', '.join(wrong)}")
        vars(self).update(details)
        super().__init__(self._text())

    @property
    def details(self) -> Mapping[str, Any]:
        """The values of the fields."""
        return {name: getattr(self, name) for name in self._fields}

    @classmethod
    def field_types(cls) -> dict[str, str]:
        """The types of the fields that every such error has, as they are written."""
        types = {name: kind for each in cls.__mro__[::-1] for name, kind in inspect.get_annotations(each).items()}
        return {name: types.get(name, "str") for name in cls._fields if name not in cls._optional}

    def described(self) -> dict[str, Any]:
        """The error for programs: its code, its message, and those of its fields that are text or numbers."""
        told = {name: value for name, value in self.details.items() if not isinstance(value, bool)}
        params = {name: value for name, value in told.items() if isinstance(value, (str, int, float))}
        return {"type": self.code, "message": str(self), "params": params}

    def _text(self) -> str:
        return " ".join(self.message.format_map(self.details).split())


class LongthreadError(_WithFields, code="error"):
    message = "Longthread could not do this. {reason}"
    if TYPE_CHECKING:
        reason: str = ""  # for mypy, every error may have one; when it is raised, those whose message names it must


@contextmanager
def convert_errors(
    convert: Callable[[Exception], Exception],
    *,
    keep: type[Exception] | tuple[type[Exception], ...] = LongthreadError,
) -> Iterator[None]:
    """Raise `convert(error)` for what the code of a plugin, of an application or of a provider raises in the block: it
    may be anything. Errors of the classes `keep` pass."""
    try:
        yield
    except keep:
        raise
    except Exception as error:
        raise convert(error) from error


class ExtraMissing(LongthreadError, exit_code=2):
    message = "{what} needs the Python package {package}, which is not installed: {command}"
    what: str
    package: str
    command: str

    def __init__(self, *, what: str, package: str, extra: str) -> None:
        _WithFields.__init__(self, what=what, package=package, command=install_command(extra))


class PluginFailed(LongthreadError):
    message = "The plugin {plugin} cannot be used: {reason} `longthread plugins list` shows what is installed."
    plugin: str


class InvalidInput(LongthreadError, exit_code=2):
    message = "{reason}"


class CursorUnknown(InvalidInput):
    message = "This cursor is not one that was given out. Leave it out to begin at the start."


class PositionUnknown(InvalidInput):
    message = "Last-Event-ID and `after` take the `id` of an event of a stream of the same runs in order."


class QuestionTooLong(InvalidInput):
    message = """The question has {size} characters, and the limit is {limit}. Put the data into a file and give that as
    a --source, or raise LONGTHREAD_MAX_QUESTION."""
    size: str
    limit: str


class MessageTooLong(InvalidInput):
    message = """The message has {size} characters with its calls, and the limit is {limit}. Shorten it, or raise
    LONGTHREAD_MAX_QUESTION."""
    size: str
    limit: str


class SourceMissing(InvalidInput):
    message = "There is no source to ask. Give one with --source, or try --source demo."


class EvalInvalid(InvalidInput):
    message = """{where} cannot be measured with: {reason} It holds entries and queries, one JSON object a line;
    {page} shows them."""
    where: Path | str
    page: str = documentation("guide/recall")


class QuestionsInvalid(InvalidInput):
    message = """{where} cannot be measured with: {reason} It holds questions with gold SQL: one JSON object a line, or
    BIRD's or Spider's array; {page} shows them."""
    where: Path | str
    page: str = documentation("reference/analyst-eval")


class StatementsInvalid(InvalidInput):
    message = """{where} cannot be judged: {reason} It holds SQL statements, one JSON object a line;
    {page} shows them."""
    where: Path | str
    page: str = documentation("guide/sql")
