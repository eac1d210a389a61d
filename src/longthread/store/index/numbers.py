"""Encoding of vectors for databases."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def vector_text(vector: NDArray[np.float32]) -> str:
    """Return a vector as PostgreSQL's text; nine digits identify a 32-bit float."""
    return f"[{','.join(f'{number:.9g}' for number in vector)}]"


def numbers(data: bytes, dims: int) -> NDArray[np.float32]:
    """Decode a vector. PostgreSQL sends two 16-bit counts, then big-endian numbers."""
    found: NDArray[np.float32] = (
        np.frombuffer(data, "<f4") if len(data) == 4 * dims else np.frombuffer(data, ">f4", -1, 4).astype(np.float32)
    )
    return found
