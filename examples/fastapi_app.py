"""Embed Longthread in a FastAPI application: routes of your own for your users, and its page and API below them.

    python examples/fastapi_app.py serve        # http://127.0.0.1:8000

Without `serve` it asks itself and ends. The demo model answers; for a real one, set LONGTHREAD_MODEL and its key.
"""

import asyncio
import sys
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated

import httpx
import uvicorn
from fastapi import FastAPI, Header, Request
from fastapi.responses import JSONResponse

from longthread import Analyst, LongthreadError, Settings, create_app


def make_app(settings: Settings) -> FastAPI:
    """Make the application. Both halves share one analyst, and so one store."""

    @asynccontextmanager
    async def lifespan(app: FastAPI):
        async with Analyst.open(settings) as app.state.analyst:
            inner = create_app(settings, analyst=app.state.analyst)
            app.mount("/", inner)  # behind the routes above: a mount takes all that is left
            async with inner.router.lifespan_context(inner):
                yield

    app = FastAPI(lifespan=lifespan)

    @app.post("/questions")
    async def ask(question: str, user: Annotated[str, Header()], thread: str | None = None):
        asked = await app.state.analyst.ask(question, user_id=user, thread_id=thread)
        end = await asked.wait()
        return {"thread": asked.thread_id, "type": end.type, "answer": end.data.get("answer")}

    @app.exception_handler(LongthreadError)
    async def explain(request: Request, error: LongthreadError):
        return JSONResponse({"error": error.code, "message": str(error)}, status_code=400)

    return app


async def try_out(app: FastAPI) -> None:
    transport = httpx.ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client,
    ):
        asked = await client.post("/questions", params={"question": "How many rockets?"}, headers={"user": "ada"})
        print(asked.json()["answer"].splitlines()[0])
        thread = asked.json()["thread"]
        taken = await client.post("/questions", params={"question": "and?", "thread": thread}, headers={"user": "bob"})
        print(taken.status_code, taken.json()["error"])
        print((await client.get("/health")).json()["status"])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        application = make_app(Settings.load(source="demo", database=str(Path(temporary) / "conversations.db")))
        if sys.argv[1:] == ["serve"]:
            uvicorn.run(application, port=8000)
        else:
            asyncio.run(try_out(application))
