"""The process that CPython's runs are forked from.

python -P -m longthread.tools.code.nest DESCRIPTOR
"""

from __future__ import annotations

from longthread.tools.analysis.isolation import nest
from longthread.tools.code.child import serve

if __name__ == "__main__":
    nest.run(serve)
