"""Build the image, or try it: `python release/image.py build|test [--tag NAME] [--base IMAGE] [OPTION …]`.

Docker or Podman does it, or else buildah, which needs no daemon. Each further OPTION goes to the build as it is,
such as `--volume=/etc/pip.conf:/etc/pip.conf:ro` on a machine with settings of its own. What the image contains is
written to `dist/sbom.cdx.json`. The last line is JSON with what was measured; it ends with 1 where a limit is exceeded.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol
from urllib.request import Request, urlopen

ROOT = Path(__file__).resolve().parents[1]
SBOM = "/opt/longthread/share/sbom.cdx.json"
LIMIT_MB = 350
CONVERSATION = "0192f0c1-5a0e-7cc3-98c4-dc0c0c07398f"
"""The id of the test's conversation."""
PATIENCE = 120
"""Seconds until a container that does not do what it should has failed."""
STATE = "/state"
"""Where the tests mount their volume: buildah's chroot hides a mount at the path of a declared one."""
OWN = b"/opt/longthread/bin/python\0/opt/longthread/bin/longthread\0serve\0"
"""What the line of a server's process begins with. Those of buildah's own processes have a part of it."""
SERVE = ["serve", "--source", "demo", "--model", "demo"]


class Engine(Protocol):
    """What builds an image and runs it."""

    def build(self, tag: str, options: list[str]) -> None: ...

    def size(self, tag: str) -> int:
        """Return the bytes of the image's files."""
        ...

    def read(self, tag: str, path: str) -> bytes: ...

    def start(self, tag: str, volume: str, command: list[str], port: int) -> Container: ...


class Container(Protocol):
    """A container that runs."""

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to its process 1."""
        ...

    def wait(self) -> int:
        """Wait for its end, and return its exit code."""
        ...

    def logs(self) -> str: ...


def main() -> None:
    """Build or test."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["build", "test"])
    parser.add_argument("--tag", default="longthread")
    parser.add_argument("--base", default="", help="the image to build on; the Dockerfile has a default")
    given, options = parser.parse_known_args()
    engine = find_engine()
    if given.what == "build":
        base = [f"--build-arg=BASE={given.base}"] if given.base else []
        measured = build_image(engine, given.tag, [*base, *options])
    else:
        measured = try_image(engine, given.tag)
    print(json.dumps(measured))
    sys.exit(measured.get("size_mb", 0) > LIMIT_MB)


def find_engine() -> Engine:
    """Return the first of Docker, Podman and buildah that works here."""
    for name in ("docker", "podman"):
        if shutil.which(name) and not subprocess.run([name, "info"], capture_output=True, check=False).returncode:
            return Daemon(name)
    if not shutil.which("buildah"):
        sys.exit("Neither docker, podman nor buildah works here. On Debian and Ubuntu: apt-get install buildah")
    return Buildah()


def build_image(engine: Engine, tag: str, options: list[str]) -> dict[str, Any]:
    """Build the image, and write down what is in it."""
    began = time.perf_counter()
    commit = run(["git", "-C", str(ROOT), "rev-parse", "--short=8", "HEAD"]).strip()
    engine.build(tag, [f"--build-arg=COMMIT={commit}", *options])
    seconds = time.perf_counter() - began
    sbom = engine.read(tag, SBOM)
    (ROOT / "dist").mkdir(exist_ok=True)
    (ROOT / "dist/sbom.cdx.json").write_bytes(sbom)
    listed = {each["name"] for each in json.loads(sbom)["components"]}
    if "longthread" not in listed:
        sys.exit(f"The image's list of packages lacks longthread: {sorted(listed)}")
    size = round(engine.size(tag) / 1e6)
    return {"size_mb": size, "limit_mb": LIMIT_MB, "packages": len(listed), "build_s": round(seconds)}


def try_image(engine: Engine, tag: str) -> dict[str, Any]:
    """Ask in a container, kill it in the middle of an answer, and go on in another one on the same volume."""
    with make_volume(engine) as volume:
        with started(engine, tag, volume) as (first, address, ready):
            session = log_in(address, first.logs())
            events = ask(address, session, "How many rockets are there?")
            answer = read_answer(address, session, events)
            print("· answered:", answer, file=sys.stderr)
            interrupted = ask(address, session, "How many launches were there per year?")
            first.signal(signal.SIGKILL)
            first.wait()
        with started(engine, tag, volume) as (second, address, again):
            if (kept := read_answer(address, session, events)) != answer:
                sys.exit(f"The answer was {answer!r}, and the next container has {kept!r}.")
            print("· went on:", read_answer(address, session, interrupted), file=sys.stderr)
            last = ask(address, session, "And in 2020?")
            print("· asked again:", read_answer(address, session, last), file=sys.stderr)
            began = time.perf_counter()
            second.signal(signal.SIGTERM)
            if code := second.wait():
                sys.exit(f"SIGTERM ended the server with {code}: {second.logs()}")
            ended = time.perf_counter() - began
    return {"ready_s": round(ready, 1), "again_s": round(again, 1), "ended_s": round(ended, 1)}


@contextmanager
def make_volume(engine: Engine) -> Iterator[str]:
    """Make a place for data that outlives containers, and delete it at the end."""
    if isinstance(engine, Daemon):
        name = f"longthread-test-{os.getpid()}"
        run([engine.name, "volume", "create", name])
        try:
            yield name
        finally:
            run([engine.name, "volume", "rm", "--force", name])
    else:
        with TemporaryDirectory(prefix="longthread-image-") as folder:
            Path(folder).chmod(0o777)
            yield folder


@contextmanager
def started(engine: Engine, tag: str, volume: str) -> Iterator[tuple[Container, str, float]]:
    """Start a server; yield it, its address, and the seconds until it is ready."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    began, address = time.perf_counter(), f"http://127.0.0.1:{port}"
    container = engine.start(tag, volume, SERVE, port)
    try:
        while not is_ready(address):
            if time.perf_counter() - began > PATIENCE:
                sys.exit(f"The server is not ready: {container.logs()}")
            time.sleep(0.1)
        yield container, address, time.perf_counter() - began
    finally:
        with suppress(OSError, SystemExit):
            container.signal(signal.SIGKILL)


def is_ready(address: str) -> bool:
    """Whether `/ready` answers 200."""
    try:
        with urlopen(f"{address}/ready", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def log_in(address: str, log: str) -> str:
    """Make the first user by the link in the log of a first start; return the cookie of the login."""
    link = re.search(r"/login#([\w-]+)", log)
    if link is None:
        sys.exit(f"The log of the first start has no link that makes the first user: {log}")
    body = json.dumps({"token": link[1], "name": "ada", "password": f"only for this test {link[1][:8]}"}).encode()
    request = Request(f"{address}/api/links", body, {"Content-Type": "application/json"})
    with urlopen(request, timeout=PATIENCE) as answer:
        return str(answer.headers["Set-Cookie"]).partition(";")[0]


def ask(address: str, session: str, question: str) -> str:
    """Ask in the one conversation of the test; return the path of the answer's events."""
    body = json.dumps({"thread_id": CONVERSATION, "question": question}).encode()
    request = Request(f"{address}/api/chat", body, {"Content-Type": "application/json", "Cookie": session})
    with urlopen(request, timeout=PATIENCE) as answer:
        return str(json.load(answer)["events"])


def read_answer(address: str, session: str, events: str) -> str:
    """Follow a run to its end, and return the text of its answer."""
    text, kinds = "", []
    with urlopen(Request(f"{address}{events}", headers={"Cookie": session}), timeout=PATIENCE) as stream:
        for line in stream:
            if line.startswith(b"data:"):
                event = json.loads(line.removeprefix(b"data:"))
                kinds.append(event["type"])
                text += event.get("delta", "") if event["type"] == "TEXT_MESSAGE_CONTENT" else ""
                if event["type"] in ("RUN_FINISHED", "RUN_ERROR"):
                    break
    if kinds[-1:] != ["RUN_FINISHED"] or not text:
        sys.exit(f"The question was not answered: {kinds} {text}")
    return " ".join(text.split())[:200]


@dataclass(frozen=True)
class Daemon:
    """Docker or Podman."""

    name: str

    def build(self, tag: str, options: list[str]) -> None:
        run([self.name, "build", "--tag", tag, *options, str(ROOT)], shown=True)

    def size(self, tag: str) -> int:
        return int(run([self.name, "image", "inspect", "--format", "{{.Size}}", tag]))

    def read(self, tag: str, path: str) -> bytes:
        return run([self.name, "run", "--rm", "--entrypoint", "cat", tag, path]).encode()

    def start(self, tag: str, volume: str, command: list[str], port: int) -> Container:
        """Start it as compose.yaml does: nothing but the volume and /tmp can be written to."""
        about = ["--read-only", "--tmpfs=/tmp", "--cap-drop=ALL", "--security-opt=no-new-privileges"]
        mounted = [f"--volume={volume}:/data", f"--publish=127.0.0.1:{port}:8765"]
        return Detached(self.name, run([self.name, "run", "--detach", *about, *mounted, tag, *command]).strip())


@dataclass(frozen=True)
class Detached:
    """A container of Docker's or Podman's."""

    engine: str
    id: str

    def signal(self, number: signal.Signals) -> None:
        run([self.engine, "kill", "--signal", number.name, self.id])

    def wait(self) -> int:
        return int(run([self.engine, "wait", self.id]))

    def logs(self) -> str:
        return run([self.engine, "logs", self.id])


class Buildah:
    """buildah, without a daemon: as root in a chroot, on this machine's network."""

    _command = ("buildah", "--storage-driver", "vfs")
    _isolated = ("--isolation", "chroot", "--network", "host")

    def build(self, tag: str, options: list[str]) -> None:
        about = ["--format", "docker", "--tag", tag]  # OCI's format has no HEALTHCHECK
        run([*self._command, "bud", *self._isolated, *about, *options, str(ROOT)], shown=True)

    def size(self, tag: str) -> int:
        with self._container(tag) as container, self._mounted(container) as folder:
            return sum(file.lstat().st_size for file in folder.rglob("*") if file.is_file() and not file.is_symlink())

    def read(self, tag: str, path: str) -> bytes:
        with self._container(tag) as container, self._mounted(container) as folder:
            return (folder / path.lstrip("/")).read_bytes()

    def start(self, tag: str, volume: str, command: list[str], port: int) -> Container:
        container = self._create(tag)
        told = [f"--env={each}" for each in (f"LONGTHREAD_DATA_DIR={STATE}", "LONGTHREAD_HOST=127.0.0.1")]
        mounted = [f"--volume={volume}:{STATE}", "--workingdir", STATE]
        line = [*self._command, "run", *self._isolated, *told, *mounted, container, "--"]
        log = (Path(volume) / f"{container}.log").open("w+")
        process = subprocess.Popen(
            [*line, "longthread", *command, "--port", str(port)], stdout=log, stderr=log, start_new_session=True
        )
        return Chrooted(self, container, process, Path(log.name))

    def remove(self, container: str) -> None:
        """Delete a container."""
        subprocess.run([*self._command, "rm", container], capture_output=True, check=False)

    def _create(self, tag: str) -> str:
        return run([*self._command, "from", "--pull-never", tag]).strip()

    @contextmanager
    def _container(self, tag: str) -> Iterator[str]:
        container = self._create(tag)
        try:
            yield container
        finally:
            self.remove(container)

    @contextmanager
    def _mounted(self, container: str) -> Iterator[Path]:
        yield Path(run([*self._command, "mount", container]).strip())
        run([*self._command, "umount", container])


@dataclass
class Chrooted:
    """A process of buildah's, and below it the one of the image."""

    engine: Buildah
    container: str
    process: subprocess.Popen[Any]
    log: Path

    def signal(self, number: signal.Signals) -> None:
        for process in self._servers():
            os.kill(process, number)

    def wait(self) -> int:
        code = self.process.wait(PATIENCE)
        self.engine.remove(self.container)
        return code

    def logs(self) -> str:
        return self.log.read_text()

    def _servers(self) -> list[int]:
        """Return the processes of the image's own command: those below buildah's own."""
        parents: dict[int, int] = {}
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError, ValueError):
                parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        below = [self.process.pid]
        for each in below:
            below += [child for child, parent in parents.items() if parent == each]
        return [each for each in below if Path(f"/proc/{each}/cmdline").read_bytes().startswith(OWN)]


def run(command: list[str], *, shown: bool = False) -> str:
    """Run a command and return what it prints, or show it meanwhile; end with what went wrong if it fails."""
    print("·", " ".join(command), file=sys.stderr, flush=True)
    done = subprocess.run(command, text=True, stdout=sys.stderr if shown else subprocess.PIPE, check=False)
    if done.returncode:
        sys.exit(f"{done.stdout}\nfailed: {' '.join(command)}")
    return done.stdout


if __name__ == "__main__":
    main()
