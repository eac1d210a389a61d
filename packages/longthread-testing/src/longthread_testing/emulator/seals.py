"""Signatures and encrypted content: opaque texts that only their maker can check, by HMAC-SHA256."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any


def canonical(value: Any) -> bytes:
    """Return JSON that is equal for equal values, whatever the order of their keys."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()


def seal(secret: bytes, claims: Mapping[str, Any]) -> str:
    """Return an opaque text over `claims`."""
    body = canonical(claims)
    return base64.b64encode(_mac(secret, body) + body).decode()


def unseal(secret: bytes, text: Any) -> dict[str, Any] | None:
    """Return the claims of a text made by `seal`; None if it is another's, altered, or no text."""
    try:
        raw = base64.b64decode(text, validate=True)
    except (TypeError, ValueError, binascii.Error):
        return None
    if not hmac.compare_digest(raw[:16], _mac(secret, raw[16:])):
        return None
    claims: dict[str, Any] = json.loads(raw[16:])
    return claims


def digest(*values: Any) -> str:
    """Return a short hash of JSON values."""
    return hashlib.blake2b(canonical(values), digest_size=12).hexdigest()


def _mac(secret: bytes, body: bytes) -> bytes:
    return hmac.digest(secret, body, "sha256")[:16]
