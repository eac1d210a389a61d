"""What a contributor reads is true: `make help`, the files of CONTRIBUTING's recipes."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_make_help_lists_every_target() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = re.findall(r"^\.PHONY: (.+)$", makefile, re.MULTILINE)[0].split()
    printed = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    lines = [line.split(maxsplit=1) for line in printed.splitlines()]
    assert sorted(target for target, _ in lines) == sorted(targets)
    assert all(what.endswith(".") and len(what) <= 80 for _, what in lines)
