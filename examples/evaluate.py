"""Measure how many of your questions a model answers with the right rows.

    python examples/evaluate.py [MODEL]

`longthread eval analyst` compares rows, not words. The demo model answers unless you name another one, such as
openai:gpt-5, and set its key.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

GOLD = [
    {"question": "How many rockets are there?", "sql": "SELECT count(*) FROM rockets"},
    {"question": "How many rockets are there by country?", "sql": "SELECT country, count(*) FROM rockets GROUP BY 1"},
    {"question": "Forecast the launches of next year", "sql": "SELECT 80"},
]


def main(folder: Path, model: str) -> None:
    file = folder / "questions.jsonl"
    file.write_text("".join(json.dumps(line | {"db": "space"}) + "\n" for line in GOLD))
    command = ["longthread", "eval", "analyst", str(file), "--source", "demo", "--model", model]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    *lines, total = map(json.loads, done.stdout.splitlines())
    for line in lines:
        print(f"{line['verdict']}: {line['question']}")
    print(f"{total['right']} of {total['questions']} right")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        main(Path(temporary), sys.argv[1] if len(sys.argv) > 1 else "demo")
