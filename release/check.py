"""Build the packages as a release has them, and try them as a new user does: `python release/check.py [--tag v0.1.0]`.

Needs `build`, `twine` and `check-wheel-contents`, which `make release-check` installs, and a clone in which all is
committed. Everything but `dist/` is in a temporary folder. The last line is JSON: how many packages an installation
has, how large it is, how long it and the page take. What a new user waits for or downloads has a limit; it ends with 1
where one is exceeded.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.error import URLError
from urllib.request import urlopen

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
PROJECTS = (".", "packages/longthread-demo", "packages/longthread-testing")
LIMITS = {"packages": 60, "size_mb": 250, "install_s": 20, "page_s": 3}
"""The most of each. Seconds depend on the machine: a busy one is no reason to withhold a release."""
ASKING = """
from urllib.request import Request, urlopen
from longthread.testing import ProviderEmulator
with ProviderEmulator([{"finish": "Hello."}]) as provider:
    body = b'{"model": "m", "messages": [{"role": "user", "content": "Hello?"}]}'
    asked = Request(f"{provider.base_url}/chat/completions", body, {"Content-Type": "application/json"})
    assert b"Hello." in urlopen(asked).read()
"""
PATIENCE = 120
"""Seconds until a server that does not answer has failed."""


def main() -> None:
    """Build, check, install, ask and serve."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--tag", help="the tag of the release, which must be v and the version")
    tag = options.parse_args().tag
    refuse_changes()
    version = build_packages()
    if tag and tag != f"v{version}":
        sys.exit(f"The tag is {tag}, and the version {version}.")
    with TemporaryDirectory(prefix="longthread-release-") as folder:
        measured = {"version": version, **try_packages(Path(folder), version)}
    over = [name for name, most in LIMITS.items() if measured[name] > most]
    print(json.dumps({**measured, "limits": LIMITS, "over": over}))
    sys.exit(any(not name.endswith("_s") for name in over))


def refuse_changes() -> None:
    """End if a file of the clone is not committed: the packages name a commit, and must be what it has."""
    if changed := run(["git", "-C", str(ROOT), "status", "--porcelain"]):
        sys.exit(f"Not committed, so that no release can be made of it:\n{changed}")


def find_wheel(name: str, version: str) -> Path:
    """Return the wheel of a package that was built. To name its file leaves no other one to choose."""
    [wheel] = DIST.glob(f"{name}-{version}-*.whl")
    return wheel


def build_packages() -> str:
    """Build a wheel and an archive of the sources for each package, check them, and return their one version."""
    shutil.rmtree(DIST, ignore_errors=True)
    for project in PROJECTS:
        run([sys.executable, "-m", "build", "--outdir", str(DIST), str(ROOT / project)])
    files = [str(file) for file in sorted(DIST.iterdir())]
    wheels = [file for file in files if file.endswith(".whl")]
    run([sys.executable, "-m", "twine", "check", "--strict", *files])
    run([sys.executable, "-m", "check_wheel_contents", *wheels])
    versions = {Path(file).name.split("-")[1].removesuffix(".tar.gz") for file in files}
    if len(files) != 2 * len(PROJECTS) or len(versions) != 1:
        sys.exit(f"dist/ has not one version of each package: {files}")
    return versions.pop()


def try_packages(folder: Path, version: str) -> dict[str, float]:
    """Install the wheels where no clone is, ask a question, and open the page. Return what was measured."""
    python, command = folder / "venv/bin/python", folder / "venv/bin/longthread"
    run([sys.executable, "-m", "venv", str(folder / "venv")])
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--quiet"]
    run([*pip, "install", "--requirement", str(ROOT / "requirements/pip.txt")])
    # To download first makes a mirror fetch what it lacks: the installation downloads all of it again.
    wanted = [f"{find_wheel('longthread', version)}[app,demo]", str(find_wheel("longthread_demo", version))]
    run([*pip, "download", "--no-cache-dir", "--dest", str(folder / "downloads"), *wanted])
    began = time.perf_counter()
    run([*pip, "install", "--no-cache-dir", *wanted], cwd=folder)
    installed = time.perf_counter() - began
    printed = run([str(command), "--version"], cwd=folder)
    if not re.fullmatch(rf"longthread {re.escape(version)} \([0-9a-f]{{8}}\)\n", printed):
        sys.exit(f"`longthread --version` prints {printed!r}")
    question = ["ask", "How many rockets are there?", "--source", "demo", "--model", "demo"]
    if "[q1]" not in (answer := run([str(command), *question], cwd=folder)):
        sys.exit(f"The demo does not answer: {answer}")
    size = measure_installation(python, folder)
    with serve(command, folder) as (address, started):
        page = measure_page(address)
    try_testing(python, folder, version)
    return {**size, "install_s": round(installed, 1), "start_s": started, "page_s": page}


def try_testing(python: Path, folder: Path, version: str) -> None:
    """Install the package for tests too, and ask its provider."""
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--quiet"]
    run([*pip, "install", str(find_wheel("longthread_testing", version))], cwd=folder)
    run([str(python), "-c", ASKING], cwd=folder)


def measure_installation(python: Path, folder: Path) -> dict[str, float]:
    """Count the packages beside pip and the megabytes of their files; bytecode, which Python writes, apart."""
    listed = json.loads(run([str(python), "-m", "pip", "--disable-pip-version-check", "list", "--format", "json"]))
    names = {each["name"].lower() for each in listed} - {"pip", "setuptools"}
    site = next((folder / "venv/lib").glob("python*/site-packages"))
    sizes = {True: 0, False: 0}
    for file in site.rglob("*"):
        if file.is_file() and not file.relative_to(site).parts[0].startswith(("pip", "setuptools", "pkg_resources")):
            sizes[file.suffix == ".pyc"] += file.stat().st_size
    return {
        "packages": len(names),
        "size_mb": round(sizes[False] / 1e6, 1),
        "bytecode_mb": round(sizes[True] / 1e6, 1),
    }


@contextmanager
def serve(command: Path, folder: Path) -> Iterator[tuple[str, float]]:
    """Run `longthread demo`; yield its address, and the seconds until it listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    began = time.perf_counter()
    with (folder / "server.log").open("w") as log:
        server = subprocess.Popen(
            [str(command), "demo", "--port", str(port)], cwd=folder, env=environment(folder), stdout=log, stderr=log
        )
    try:
        while not listens(port):
            if server.poll() is not None or time.perf_counter() - began > PATIENCE:
                sys.exit(f"`longthread demo` does not start: {(folder / 'server.log').read_text()}")
            time.sleep(0.02)
        yield f"http://127.0.0.1:{port}", round(time.perf_counter() - began, 2)
    finally:
        server.terminate()
        server.wait(PATIENCE)


def listens(port: int) -> bool:
    """Whether a server accepts connections at a port of this machine."""
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def measure_page(address: str) -> float:
    """Return the seconds of the first request for the page, and for the scripts and styles that it names."""
    began = time.perf_counter()
    try:
        with urlopen(address, timeout=PATIENCE) as answer:
            page = answer.read().decode()
        parts = re.findall(r'(?:src|href)="(/[^"]+\.(?:js|css))"', page)
        for part in parts:
            with urlopen(address + part, timeout=PATIENCE) as answer:
                answer.read()
    except URLError as error:
        sys.exit(f"The page does not come: {error}")
    if not parts:
        sys.exit(f"The page has no scripts: {page[:500]}")
    return round(time.perf_counter() - began, 2)


def run(command: list[str], cwd: Path = ROOT) -> str:
    """Run a command and return what it prints; end with what went wrong if it fails."""
    print("·", " ".join(command), file=sys.stderr, flush=True)
    done = subprocess.run(command, cwd=cwd, env=environment(cwd), text=True, stdout=subprocess.PIPE, check=False)
    if done.returncode:
        sys.exit(f"{done.stdout}\nfailed: {' '.join(command)}")
    return done.stdout


def environment(folder: Path) -> dict[str, str]:
    """Return the variables of a new user: no settings, no data, no cache of Longthread's, no path of Python's."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith(("LONGTHREAD_", "PYTHON", "XDG_"))}
    if folder == ROOT:
        return kept
    return {**kept, "LONGTHREAD_DATA_DIR": str(folder / "data"), "XDG_CACHE_HOME": str(folder / "cache")}


if __name__ == "__main__":
    main()
