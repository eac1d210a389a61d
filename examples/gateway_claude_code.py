"""Put the gateway between Claude Code and its provider: what a client drops, such as thinking, is put back.

    python examples/gateway_claude_code.py

Anthropic's SDK sends here what Claude Code sends, and loses the thinking; a scripted provider keeps Anthropic's rules.
For the real ones, run `longthread gateway`, and in another terminal:

    ANTHROPIC_BASE_URL=http://127.0.0.1:8766 claude
"""

import re
import subprocess
import tempfile
from pathlib import Path

import anthropic

from longthread.testing import ProviderEmulator, ProviderRules

TOOL = {"name": "Read", "description": "Reads a file.", "input_schema": {"type": "object"}}
SCRIPT = [{"action": "Read", "args": {"file_path": "a.txt"}}, {"finish": "The file says 42."}]


def work(address: str) -> str:
    """Have a file read, as a coding agent does: ask, make the call, and send its result behind all that was said."""
    client = anthropic.Anthropic(base_url=address, api_key="any", max_retries=0)
    ask = {"model": "claude-sonnet-5", "max_tokens": 2000, "tools": [TOOL]}
    ask["thinking"] = {"type": "enabled", "budget_tokens": 1024}
    messages = [{"role": "user", "content": "What does a.txt say?"}]
    with client, client.messages.stream(messages=messages, **ask) as stream:
        reply = stream.get_final_message()
    [call] = [block for block in reply.content if block.type == "tool_use"]
    kept = {"type": "tool_use", "id": call.id, "name": call.name, "input": call.input}  # and the thinking is dropped
    result = {"type": "tool_result", "tool_use_id": call.id, "content": "42"}
    messages += [{"role": "assistant", "content": [kept]}, {"role": "user", "content": [result]}]
    with anthropic.Anthropic(base_url=address, api_key="any", max_retries=0) as client:
        try:
            return client.messages.create(messages=messages, **ask).content[-1].text
        except anthropic.BadRequestError as refused:
            return refused.body["error"]["message"][:80]


def main(folder: Path) -> None:
    rules = ProviderRules(signatures=True)
    with ProviderEmulator(SCRIPT, rules=rules) as provider:
        print(f"without the gateway: {work(provider.anthropic_url)}")
    with ProviderEmulator(SCRIPT, rules=rules) as provider:
        command = ["longthread", "gateway", "--port", "0", "--anthropic-url", provider.anthropic_url]
        command += ["--database", str(folder / "conversations.db")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as gateway:
            address = next(found[0] for line in gateway.stdout if (found := re.search(r"http://\S+:\d+", line)))
            print(f"through the gateway: {work(address)}")
            gateway.terminate()
        sent = [block["type"] for block in provider.requests[-1].body["messages"][1]["content"]]
        print(f"the provider got: {sent}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        main(Path(temporary))
