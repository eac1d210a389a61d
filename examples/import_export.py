"""Take conversations to another store, read them as Markdown, and delete a person's data.

    python examples/import_export.py

The commands are the same for any store, such as `--database postgresql://…`. The demo model answers.
"""

import os
import subprocess
import tempfile
from pathlib import Path


def main(folder: Path) -> None:
    def longthread(*arguments: str, database: str = "here.db") -> str:
        environment = os.environ | {"LONGTHREAD_MODEL": "demo", "LONGTHREAD_DATABASE": str(folder / database)}
        done = subprocess.run(
            ["longthread", *arguments], env=environment, cwd=folder, capture_output=True, text=True, check=True
        )
        return done.stdout

    longthread("ask", "How many rockets are there?", "--source", "demo", "--thread", "rockets")
    longthread("threads", "export", "--all", "--to", "all.jsonl")
    longthread("threads", "export", "rockets", "--to", "rockets.md")
    print((folder / "rockets.md").read_text("utf-8"))

    print(longthread("import", "all.jsonl", database="there.db"))
    print(longthread("ask", "and by country?", "--thread", "rockets", database="there.db"))
    print(longthread("forget", "--user", "default", "--yes"))
    print(longthread("threads", "list"))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        main(Path(temporary))
