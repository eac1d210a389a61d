"""The variables that are set, in the environment and in `.env`, their values in files, and the secrets of tools."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path

from dotenv import dotenv_values
from pydantic import SecretStr

from longthread.errors import InvalidInput

DOTENV = Path(".env")
"""The file read after the environment, in the working directory."""
SECRET_PREFIX = "LONGTHREAD_SECRET_"
"""What the variables of tools' secrets begin with."""
SECRET_KEY = "LONGTHREAD_SECRET_KEY"
"""The setting whose name begins as those of tools' secrets do. It is none of them."""
IN_FILE = "_FILE"
"""The end of a variable that names a file with the value, as secrets of containers are given."""
LARGEST_VALUE = 65_536
"""How many bytes such a file may have."""


def tool_secrets(names: Collection[str], *, env_file: Path | None = DOTENV) -> dict[str, SecretStr]:
    """The secrets of a tool that are set: the variables LONGTHREAD_SECRET_<NAME>, in the environment or `env_file`, by
    name. LONGTHREAD_SECRET_<NAME>_FILE names a file with the secret. No other variable is looked at.

    Raises:
        InvalidInput: such a file cannot be read.
    """
    given: dict[str, SecretStr] = {}
    for source in read_variables(env_file):
        for own in (SECRET_KEY, f"{SECRET_KEY}{IN_FILE}"):
            source.pop(own, None)
        for name in names:
            if value := find_value(source, f"{SECRET_PREFIX}{name}".upper()):
                given[name] = SecretStr(value)
    return given


def find_value(source: Mapping[str, str], name: str) -> str | None:
    """Return a variable's value, or what is in the file that the variable NAME_FILE names; None: neither is set.

    Raises:
        InvalidInput: both are set, or the file cannot be read.
    """
    named = f"{name}{IN_FILE}"
    if named not in source:
        return source.get(name)
    if name in source:
        raise InvalidInput(reason=f"{name} and {named} are both set. Leave one of them out.")
    return _read_value(Path(source[named]).expanduser(), named)


def _read_value(file: Path, named: str) -> str | None:
    """Return the text of a file, without white space around it; None: it has none."""
    try:
        with file.open("rb") as opened:
            content = opened.read(LARGEST_VALUE + 1)
        text = content.decode("utf-8") if len(content) <= LARGEST_VALUE else ""
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InvalidInput(reason=f"{named} is {file}, which cannot be read: {why}.") from None
    if len(content) > LARGEST_VALUE:
        raise InvalidInput(reason=f"{named} is {file}, which has more than {LARGEST_VALUE:,} bytes.")
    return text.strip() or None


def read_variables(env_file: Path | None) -> tuple[dict[str, str], dict[str, str]]:
    """Return the variables that are set, by upper-case name: those of the file, and those of the environment."""
    is_there = env_file is not None and (env_file.is_file() or env_file.is_fifo())
    sources = dotenv_values(env_file, encoding="utf-8") if is_there else {}, os.environ
    of_file, of_process = ({name.upper(): value for name, value in each.items() if value} for each in sources)
    return of_file, of_process
