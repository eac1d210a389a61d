"""The process that CPython's runs are forked from.

python -P -m longthread.tools.code.forkserver_main DESCRIPTOR
"""

from __future__ import annotations

from longthread.tools.analysis.isolation import forkserver_main
from longthread.tools.code.child import serve

if __name__ == "__main__":
    forkserver_main.run(serve)
