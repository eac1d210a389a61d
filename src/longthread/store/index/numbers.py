"""Vectors on their way into a database and out of it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def vector_text(vector: NDArray[np.float32]) -> str:
    """A vector as PostgreSQL reads it; nine digits tell any number of 32 bits."""
    return f"[{','.join(f'{number:.9g}' for number in vector)}]"


def numbers(data: bytes, dims: int) -> NDArray[np.float32]:
    """A vector as it was read. PostgreSQL sends two counts of 16 bits and the numbers, the highest byte first."""
    found: NDArray[np.float32] = (
        np.frombuffer(data, "<f4") if len(data) == 4 * dims else np.frombuffer(data, ">f4", -1, 4).astype(np.float32)
    )
    return found
