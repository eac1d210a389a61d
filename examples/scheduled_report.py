"""Write a report by a schedule: the same questions every Monday, their answers as Markdown and their rows as CSV.

    python examples/scheduled_report.py         # by cron: 0 7 * * 1 cd /srv/reports && python scheduled_report.py

All reports are one conversation, so each can be asked about later. The demo model answers; for a real one, set
LONGTHREAD_MODEL and its key, and LONGTHREAD_SOURCE to your database.
"""

import asyncio
import os
import subprocess
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from longthread import Analyst, Settings

QUESTIONS = {
    "launches": "How many launches by year since 2023?",
    "failures": "How many launches failed by year since 2023?",
}
THREAD = "weekly-report"


async def ask_all(settings: Settings) -> dict[str, dict]:
    """Ask the questions, and return how each run ended."""
    async with Analyst.open(settings) as analyst:
        ends = {}
        for name, question in QUESTIONS.items():
            ends[name] = await (await analyst.ask(question, user_id=settings.user, thread_id=THREAD)).wait()
        return ends


def write_report(folder: Path, settings: Settings) -> str:
    """Write the rows of each answer to a file, and return the report."""
    page = [f"# Report of {datetime.now(UTC):%Y-%m-%d}"]
    for name, end in asyncio.run(ask_all(settings)).items():
        page += [f"## {QUESTIONS[name]}", end.data["answer"] if end.type == "finished" else f"No answer: {end.data}"]
        if end.type == "finished":
            file, query = folder / f"{name}.csv", end.data["queries"][-1]["query"]
            command = ["longthread", "threads", "result", THREAD, query, "--to", str(file), "--force"]
            subprocess.run([*command, "--database", settings.database], check=True)
    return "\n\n".join(page)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        where = Path(temporary)
        source = os.environ.get("LONGTHREAD_SOURCE", "demo")
        print(write_report(where, Settings.load(source=source, database=str(where / "conversations.db"))))
        print((where / "failures.csv").read_text("utf-8-sig"))
