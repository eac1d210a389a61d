"""How long it takes to find the topics of 200 messages of 500 characters, in English and in Chinese.

python benchmarks/topics.py [--quick] [--json]
"""

from __future__ import annotations

import argparse
import json
import time

from talk import Talk

from longthread.memory.summary.topics import extract_topics

MESSAGES, CHARACTERS = 200, 500


def messages(chinese: bool) -> list[str]:
    """Made-up talk: words as frequent as those of a language are."""
    talk = Talk()
    found = []
    while len(found) < MESSAGES:
        text = ""
        while len(text) < CHARACTERS:
            text += talk.sentence(chinese) + ("。" if chinese else ". ")
        found.append(text[:CHARACTERS])
    return found


def measure(times: int) -> dict[str, float]:
    """The median time, in milliseconds, by language."""
    found = {}
    for name, chinese in (("english_ms", False), ("chinese_ms", True)):
        texts = messages(chinese)
        took = []
        for _ in range(times):
            started = time.perf_counter()
            extract_topics(texts)
            took.append(1000 * (time.perf_counter() - started))
        found[name] = round(sorted(took)[len(took) // 2], 1)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="three times, and not thirty")
    parser.add_argument("--json", action="store_true", help="print only the JSON object")
    args = parser.parse_args()
    found = measure(3 if args.quick else 30)
    if not args.json:
        print(*(f"{name} {value}" for name, value in found.items()), sep="  ")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
