"""Kill a process in the middle of a run, and go on with the run in another one: no finished step is made again.

    python examples/resume_after_kill.py

A scripted provider stands for a model's server. For a real one, leave it out and set LONGTHREAD_MODEL and its key: the
two commands are the same. A server (`longthread serve`) goes on with such runs by itself.
"""

import os
import subprocess
import tempfile
import time
from pathlib import Path

from longthread.testing import ProviderEmulator, Slow

COUNT = {"action": "run_sql", "args": {"sql": "SELECT count(*) FROM rockets"}}
ANSWER = {"finish": "There are 41 rockets [q1]."}


def main(folder: Path) -> None:
    with ProviderEmulator([COUNT, Slow(ANSWER, seconds=60), ANSWER]) as provider:
        settings = {
            "LONGTHREAD_MODEL": "any-model",
            "LLM_BASE_URL": provider.base_url,
            "LONGTHREAD_DATABASE": str(folder / "conversations.db"),
        }
        environment = os.environ | settings
        ask = ["longthread", "ask", "How many rockets are there?", "--source", "demo"]
        asking = subprocess.Popen(ask, env=environment, stderr=subprocess.DEVNULL)
        while len(provider.requests) < 2:  # the query has run, and the model writes the answer
            time.sleep(0.02)
        asking.kill()
        asking.wait()

        def longthread(*arguments: str) -> str:
            done = subprocess.run(["longthread", *arguments], env=environment, capture_output=True, text=True)
            return done.stdout

        print(longthread("threads", "list"))
        print(longthread("resume", "last"))
        print(
            f"{len(provider.requests)} requests to the model: the query's, the one that was killed, and its repetition"
        )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        main(Path(temporary))
