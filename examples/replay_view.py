"""Show again what the model saw in a past call, and what had changed since an earlier one.

    python examples/replay_view.py

A view is computed from the log, so any past call can be shown: by another process, and months later. The demo model
answers; for a real one, set LONGTHREAD_MODEL and its key.
"""

import json
import os
import subprocess
import tempfile
from pathlib import Path


def main(folder: Path) -> None:
    environment = os.environ | {"LONGTHREAD_MODEL": "demo", "LONGTHREAD_DATABASE": str(folder / "conversations.db")}

    def longthread(*arguments: str) -> str:
        command = ["longthread", *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    longthread("ask", "How many rockets are there?", "--source", "demo")
    longthread("ask", "and by country?", "--thread", "last")
    print(longthread("view", "last", "--diff", "1"))  # the last call, against the first one

    view = json.loads(longthread("view", "last", "--json"))
    print(f"call {view['call']} of {view['calls']}: {view['tokens']} tokens, of a budget of {view['usage']['budget']}")
    for entry in view["entries"]:
        print(f"{entry['role']:9} {entry['how']:9} {entry['text'].splitlines()[0][:80]}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        main(Path(temporary))
