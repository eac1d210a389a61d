"""Of the ten vectors that are nearest to a question, how many recall finds through their signatures.

python benchmarks/nearest.py [--quick] [--json] [--entries N] [--dims N]

By kinds of embedders: one whose vectors stand in 40 clusters, one whose vectors differ by noise alone, and both with
numbers of one sign, or with a bias by which any two vectors are alike. Questions are near some vector.
"""

from __future__ import annotations

import argparse
import json
import time

import numpy as np
from numpy.typing import NDArray

from longthread.memory.embedder import unit
from longthread.memory.index.signature_index import SignatureIndex, put_together
from longthread.memory.nearest import short_list
from longthread.memory.recall import FUSED
from longthread.store.signatures import Signatures
from longthread.store.vectors import BLOCK, BlockHead

QUESTIONS, NEAREST = 40, 10
Floats = NDArray[np.float32]


def kinds(count: int, dims: int) -> dict[str, Floats]:
    """Vectors of each kind."""
    numbers = np.random.default_rng(1)
    centers = numbers.standard_normal((40, dims), dtype=np.float32)
    noise = numbers.standard_normal((count, dims), dtype=np.float32)
    same = numbers.standard_normal(dims, dtype=np.float32)
    found = {"clustered": unit(centers[numbers.integers(0, 40, count)] + np.float32(0.6) * noise), "noisy": unit(noise)}
    found |= {f"{name}_one_sign": unit(np.abs(given)) for name, given in list(found.items())}
    bias = 3 * same / np.linalg.norm(same)
    return found | {f"{name}_biased": unit(found[name] + bias) for name in ("clustered", "noisy")}


def shelved(given: Floats) -> SignatureIndex:
    """Vectors as recall has them in memory."""
    blocks = {
        BlockHead("t", at // BLOCK, ""): Signatures.of(range(at, min(at + BLOCK, len(given))), given[at : at + BLOCK])
        for at in range(0, len(given), BLOCK)
    }
    return put_together(list(blocks), blocks, None)


def measure(given: Floats, spread: float) -> dict[str, float]:
    """The share of the nearest that are among those that recall reads, and how long choosing them takes."""
    numbers = np.random.default_rng(7)
    made, hits, took = shelved(given), 0, []
    for _ in range(QUESTIONS):
        noise = numbers.standard_normal(given.shape[1], dtype=np.float32)
        asked = unit(given[numbers.integers(0, len(given))] + np.float32(spread) * noise)
        started = time.thread_time()
        read = {seq for _, seq in short_list(made, asked, FUSED, None)}
        took.append(1000 * (time.thread_time() - started))
        hits += len(read & set(np.argsort(-(given @ asked))[:NEAREST].tolist()))
    return {"recall": round(hits / QUESTIONS / NEAREST, 4), "cpu_ms": round(sorted(took)[QUESTIONS // 2], 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="10,000 vectors")
    parser.add_argument("--json", action="store_true", help="print only the JSON object")
    parser.add_argument("--entries", type=int, default=0, help="how many vectors (100,000)")
    parser.add_argument("--dims", type=int, default=384, help="numbers of each (384)")
    args = parser.parse_args()
    found = {}
    for name, given in kinds(args.entries or (10_000 if args.quick else 100_000), args.dims).items():
        for spread in (0.01, 0.04):
            found[f"{name}_{spread}"] = measure(given, spread)
            if not args.json:
                print(f"{name} {spread}", found[f"{name}_{spread}"], flush=True)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
