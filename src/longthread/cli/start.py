"""What the `longthread` command begins with: loading the rest takes a second, in which it can be broken off too."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line."""
    try:
        from longthread.cli import app

        app.main()
    except KeyboardInterrupt:
        sys.exit(130)
