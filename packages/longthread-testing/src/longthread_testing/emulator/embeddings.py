"""OpenAI's embeddings on the wire."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import Response


def embeddings(body: Mapping[str, Any], vectors: Sequence[Sequence[float]]) -> Response:
    """Return the reply to a request for vectors; NaN and infinities are sent as such, as some servers do."""
    packed = body.get("encoding_format") == "base64"
    data = [
        {
            "object": "embedding",
            "index": index,
            "embedding": _pack_vector(vector) if packed else [float(n) for n in vector],
        }
        for index, vector in enumerate(vectors)
    ]
    usage = {"prompt_tokens": len(data), "total_tokens": len(data)}
    reply = {"object": "list", "data": data, "model": body.get("model"), "usage": usage}
    return Response(json.dumps(reply), media_type="application/json")


def _pack_vector(vector: Sequence[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
