"""The page: the files that `web/build.py` wrote, with a policy by which they load nothing else; its language.

A style that a library writes into the page needs the nonce of the answer; scripts are files of this server alone.
"""

from __future__ import annotations

import asyncio
import secrets
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from fastapi import APIRouter, Query, Request, Response
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from longthread.phrasebook import LONGEST_NOTE, note_in_chinese
from longthread.server.answers import RunView, StepView
from longthread.server.conversation_answers import History

FOLDER = Path(str(files("longthread.server") / "page"))
"""What was built; not there in a checkout where nobody has built it."""
PLACEHOLDER = "NONCE-OF-THE-ANSWER"
"""Stands in `index.html` for the nonce, as `web/vite.config.ts` writes it."""
UNBUILT = "This checkout has no built page: run `make page` in it, then load this again.\n"
SHARED = "/s/"
"""Where share links lead: what they show is for those who have them, not for search engines."""
ROUTES = (
    "/",
    "/login",
    "/c/{rest:path}",
    SHARED + "{rest:path}",
    "/settings",
    "/settings/{rest:path}",
    "/projects",
    "/p/{rest:path}",
    "/boards",
    "/b/{rest:path}",
)
"""Paths that the page itself tells apart."""
TOP = ("/icon.svg", "/icon-192.png", "/icon-512.png", "/icon-full.png", "/early.js", "/manifest.json", "/sw.js")
"""Files whose names stay: icons, the script that runs before the first paint, what installs the page, its worker."""
WORKER_POLICY = "default-src 'none'; connect-src 'self'"
"""The policy of the service worker, which fetches the page's files."""
_UNLISTED = '<meta name="robots" content="noindex" />'
_FOR_EVER = "public, max-age=31536000, immutable"

router = APIRouter(include_in_schema=False)


def policy(nonce: str) -> str:
    """The page's Content-Security-Policy. Charts are saved as images that the page makes itself: `blob:`."""
    return (
        f"default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self' data: blob:; "
        "font-src 'self'; connect-src 'self'; manifest-src 'self'; worker-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


async def index(request: Request) -> Response:
    """The page, with a nonce of its own."""
    headers = {"Cache-Control": "no-cache"}
    try:
        text = await asyncio.to_thread((FOLDER / "index.html").read_text, "utf-8")
    except FileNotFoundError:
        return Response(UNBUILT, 503, headers, media_type="text/plain")
    if request.url.path.startswith(SHARED):
        text = text.replace("</head>", f"{_UNLISTED}</head>", 1)
    nonce = secrets.token_urlsafe(16)
    headers["Content-Security-Policy"] = policy(nonce)
    return Response(text.replace(PLACEHOLDER, nonce), headers=headers, media_type="text/html")


for path in ROUTES:
    router.add_api_route(path, index, methods=["GET", "HEAD"])


async def file_at_top(request: Request) -> Response:
    """A file whose name stays."""
    path = request.url.path
    response = await _top.get_response(path.removeprefix("/"), request.scope)
    if path == "/sw.js":
        response.headers["Content-Security-Policy"] = WORKER_POLICY
    return response


for path in TOP:
    router.add_api_route(path, file_at_top, methods=["GET", "HEAD"])


class Built(StaticFiles):
    """Built files. Each is there twice, as it is and compressed, and who can read the latter gets it."""

    def __init__(self, folder: Path, cached: str) -> None:
        super().__init__(directory=folder, check_dir=False)
        self._cached = cached

    async def get_response(self, path: str, scope: Scope) -> Response:
        """The file, or 304 where the browser has it."""
        response = await self._find_compressed(path, scope) or await super().get_response(path, scope)
        response.headers["Cache-Control"] = self._cached
        response.headers["Vary"] = "Accept-Encoding"
        return response

    async def _find_compressed(self, path: str, scope: Scope) -> Response | None:
        if "gzip" not in Headers(scope=scope).get("accept-encoding", ""):
            return None
        try:
            response = await super().get_response(f"{path}.gz", scope)
        except HTTPException:
            return None
        response.headers["Content-Encoding"] = "gzip"
        return response


_top = Built(FOLDER, "no-cache")
assets = Built(FOLDER / "assets", _FOR_EVER)
"""Their names change with what is in them."""


PageLanguage = Literal["en", "zh"]
LANGUAGES: tuple[PageLanguage, ...] = get_args(PageLanguage)
AskedLanguage = Annotated[PageLanguage, Query(description="The language of warnings, and of the notes of results.")]

_KEPT = 1_024
"""Notes that need not be translated again: they come with each result of their table."""


def translate_text(text: str, language: PageLanguage) -> str:
    """Return a warning or a note in a language; as it is where the phrasebook has no words for it."""
    return text if language == "en" or len(text) > LONGEST_NOTE else _in_chinese(text)


def translate_observation(observation: dict[str, Any] | None, language: PageLanguage) -> dict[str, Any] | None:
    """Return an observation with its notes in a language."""
    data = observation.get("data") if observation is not None and language != "en" else None
    if observation is None or not isinstance(data, dict) or not isinstance(notes := data.get("notes"), list):
        return observation
    said = [translate_text(note, language) if isinstance(note, str) else note for note in notes]
    return {**observation, "data": {**data, "notes": said}}


def translate_history(found: History, language: PageLanguage) -> History:
    """Return a history with its warnings and notes in a language."""
    return {
        **found,
        "runs": [_translate_run(run, language) for run in found["runs"]],
        "run": _translate_run(found["run"], language) if found["run"] is not None else None,
        "steps": {
            place: [_translate_step(step, language) for step in steps] for place, steps in found["steps"].items()
        },
    }


def _translate_step(step: StepView, language: PageLanguage) -> StepView:
    return {**step, "observation": translate_observation(step["observation"], language)}


def _translate_run(run: RunView, language: PageLanguage) -> RunView:
    return {**run, "warnings": [translate_text(text, language) for text in run["warnings"]]}


@lru_cache(_KEPT)
def _in_chinese(text: str) -> str:
    return note_in_chinese(text)
