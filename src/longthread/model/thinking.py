"""What a reasoning model says to itself in front of its reply, where a server leaves that in the text."""

from __future__ import annotations

import re

# Some chat templates open the block themselves: then only its end is in the reply.
_LEADING = re.compile(r"\s*<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)|(?:(?!<think).)*?</think(?:ing)?>", re.DOTALL)


def without_thinking(reply: str) -> str:
    """A reply without what leads up to it in a `<think>` block; nothing, where that block has no end."""
    return _LEADING.sub("", reply, count=1) if _LEADING.match(reply) else reply
