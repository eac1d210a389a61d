"""Check the subject of a commit, as a commit-msg hook does: `python .ci/subject.py FILE`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

LONGEST = 72
_NO_IMPERATIVE = re.compile(r"[A-Za-z]+(?:ed|ing)")
_IMPERATIVES = {"bring", "embed", "feed", "need", "ring", "seed", "shed", "speed", "spring", "string"}
_WRITTEN_BY_GIT = ("Merge ", "Revert ", "fixup! ", "squash! ", "amend! ")


def find_faults(subject: str) -> list[str]:
    """Say what is wrong with a subject; nothing is wrong with those that Git writes."""
    if subject.startswith(_WRITTEN_BY_GIT):
        return []
    verb = subject.split(maxsplit=1)[0] if subject.strip() else ""
    wrong = {
        "It is empty.": not verb,
        f"It has {len(subject)} characters; {LONGEST} are the most.": len(subject) > LONGEST,
        "It begins with no capital letter.": bool(verb) and not verb[0].isupper(),
        "It ends with a full stop.": subject.endswith("."),
        f"Say what the commit does, as an order: `Add`, and not `{verb}`.": verb.lower() not in _IMPERATIVES
        and _NO_IMPERATIVE.fullmatch(verb) is not None,
    }
    return [fault for fault, is_so in wrong.items() if is_so]


if __name__ == "__main__":
    lines = Path(sys.argv[1]).read_text("utf-8").splitlines()
    subject = next((line for line in lines if not line.startswith("#")), "")
    sys.exit("\n".join(f"The subject of the commit: {fault}" for fault in find_faults(subject)) or None)
