"""The fork server of the runtime `cpython`."""

from __future__ import annotations

from longthread.tools.analysis.isolation import forkserver_main
from longthread.tools.code.confinement import serve

if __name__ == "__main__":
    forkserver_main.run(serve)
