"""Use OpenAI's Responses by ids (`previous_response_id`) with a provider that stores nothing, through the gateway.

    python examples/gateway_responses.py

A scripted provider stands for a real one. For that, run `longthread gateway --openai-url https://…`, and give your
SDK `base_url="http://127.0.0.1:8766/v1"`.
"""

import re
import subprocess
import tempfile
from pathlib import Path

import openai

from longthread.testing import ProviderEmulator, ProviderRules


def answer(messages):
    """Say how many messages the provider got."""
    return f"I got {len(messages)} messages."


def ask_twice(address: str) -> str:
    with openai.OpenAI(base_url=address, api_key="any", max_retries=0) as client:
        first = client.responses.create(model="gpt-5", input="What is a log?")
        try:
            second = client.responses.create(model="gpt-5", input="And a view?", previous_response_id=first.id)
        except openai.APIStatusError as refused:
            return refused.body["message"]
        return second.output_text


def main(folder: Path) -> None:
    with ProviderEmulator(answer, rules=ProviderRules(stored=False)) as provider:
        print(f"without the gateway: {ask_twice(provider.base_url)}")
        command = ["longthread", "gateway", "--port", "0", "--openai-url", provider.base_url]
        command += ["--database", str(folder / "conversations.db")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as gateway:
            address = next(found[0] for line in gateway.stdout if (found := re.search(r"http://\S+:\d+/v1", line)))
            print(f"through the gateway: {ask_twice(address)}")
            gateway.terminate()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        main(Path(temporary))
