"""`TextVectors`: the methods of a loaded model that make vectors of texts, compare them and search among them."""

import abc
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from bert.architectures import ModelConfig
from bert.errors import InputError, check_range
from bert.model.sentence_encoder import POOLER, SentenceEncoder
from bert.progress import progress as show_progress
from bert.sentences import similarity
from bert.sentences.embedder import Embedder
from bert.tokenizer.tokenizer import Tokenizer
from bert.types import Params


class TextVectors(abc.ABC):
    """What `LoadedModel` inherits."""

    config: ModelConfig
    sentences: SentenceEncoder | None  # how texts become vectors, where the directory declares it

    @property
    @abc.abstractmethod
    def vocabulary(self) -> Tokenizer:
        """The tokenizer, where there is one; `InputError` else."""

    @property
    @abc.abstractmethod
    def on_device(self) -> Params:
        """The parameters where they are computed with."""

    @abc.abstractmethod
    def need(self, part: str, way_out: str) -> None:
        """Raises InputError where the head lacks a part."""

    def embed(
        self,
        texts: Iterable[str],
        pooling: str | Sequence[str] | None = None,
        *,
        normalize: bool | None = None,
        prompt: str | None = None,
        batch_size: int = 16,
        progress: bool = False,
    ) -> np.ndarray:
        """float32 [N, K]: one vector a text, in order; neither batch size nor neighbours change it.

        None: as the directory declares (see docs/embeddings.md); without a declaration the mean of all tokens, [CLS]
        and [SEP] included, whatever its length.

        Args:
          texts: any number of texts; one that is too long is cut, and one warning says how many were.
          pooling: of `sentence_encoder.MODES`, or several of them, joined; or "pooler". Only the states that it names,
            without the layers that the directory declares behind its own pooling.
          normalize: whether vectors are made one long.
          prompt: the name of a declared prompt to put in front of each text.
          batch_size: rows of tokens computed at a time; GPUs and TPUs are faster with more.
          progress: shows a bar on a terminal, a line every ten seconds elsewhere.
        """
        if isinstance(texts, str):
            raise InputError("texts is one text; embed takes a list of texts, [text] for one")
        embedder = self.embedder(pooling, normalize=normalize, prompt=prompt, batch_size=batch_size)
        texts = list(texts)
        with show_progress(len(texts), "text", shown=progress) as done:
            blocks = list(embedder.blocks(texts, done))
        return np.concatenate([np.empty((0, embedder.width), np.float32), *blocks])

    def embedder(
        self,
        pooling: str | Sequence[str] | None = None,
        *,
        normalize: bool | None = None,
        prompt: str | None = None,
        batch_size: int = 16,
    ) -> Embedder:
        """What `embed` runs, for texts that come one by one: its ``blocks(texts)`` gives arrays of a few thousand."""
        check_range("batch_size", batch_size, at_least=1, whole=True)
        encoder = (self.sentences or SentenceEncoder()).changed(pooling, normalize)
        if encoder.pooling == (POOLER,):
            self.need("pooler", "use pooling='mean' or 'cls'")
        encoder.prompt(prompt)
        return Embedder(self.on_device, self.config, self.vocabulary, encoder, prompt, batch_size)

    def similarity(self, a: Any, b: Any) -> np.ndarray:
        """float32 [N, M]: how similar each of N is to each of M, vectors or lists of texts; larger is more similar.

        As the directory declares: cosine (also without a declaration), dot product, or a distance times -1.
        """
        return similarity.similarity(self._vectors_of(a), self._vectors_of(b), self._similarity)

    def search(self, query: Any, corpus: Any, top: int = 10) -> list[tuple[int, float]]:
        """(index, similarity) of the vectors of a corpus that are most similar to a query; see `similarity.search`.

        Args:
          query: a vector, or a text; that gets the prompt "query", where the directory declares one.
          corpus: vectors [N, K], or the path of a .npy file with such an array.
        """
        if isinstance(query, str):
            declared = self.sentences.prompts if self.sentences else {}
            query = self.embed([query], prompt="query" if "query" in declared else None)[0]
        return similarity.search(query, corpus, top, self._similarity)

    def _vectors_of(self, given: Any) -> Any:
        is_texts = isinstance(given, list | tuple) and all(isinstance(text, str) for text in given)
        return self.embed(given) if is_texts else given

    @property
    def _similarity(self) -> str:
        return self.sentences.similarity if self.sentences else "cosine"
