"""How many requests a minute an API key may send: counted in the memory of each process, for its part of them."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable

from longthread.access.principal import KeyLimits
from longthread.errors import TooManyRequests
from longthread.model.lru import LRU

MINUTE = 60.0
_MOST_KEYS = 10_000


class RequestRates:
    """The requests of the last minute, by key. `share` is how many processes a key's requests spread over."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.share = 1
        self._clock = clock
        self._sent: LRU[str, deque[float]] = LRU(_MOST_KEYS)

    def take(self, key: KeyLimits) -> None:
        """Count a request. Raises TooManyRequests: the key has sent as many in the last minute as it may."""
        if key.requests_per_minute is None:
            return
        now, most = self._clock(), max(1, math.ceil(key.requests_per_minute / max(1, self.share)))
        sent = self._sent.get(key.id)
        if sent is None:
            sent = deque()
            self._sent.put(key.id, sent)
        while sent and now - sent[0] >= MINUTE:
            sent.popleft()
        if len(sent) >= most:
            seconds = max(1, math.ceil(MINUTE - (now - sent[len(sent) - most])))
            raise TooManyRequests(limit=f"{key.requests_per_minute} requests a minute", seconds=seconds)
        sent.append(now)
