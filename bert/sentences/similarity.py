"""Similarity of vectors, and exact search for the most similar ones, in NumPy and in bounded memory.

Axes: N and M vector, D width.

Source: sentence_transformers ``util/similarity.py``; distances are negative, so that larger is always more similar.
"""

import os
import pathlib
from typing import Any

import numpy as np

from bert.errors import InputError, check_choice, check_range
from bert.model.sentence_encoder import SIMILARITIES

_BLOCK_BYTES = 1 << 20  # of vectors that are compared at a time: such a block stays in the cache of one core
_SMALLEST_NORM = 1e-12


def similarity(a_ND: Any, b_MD: Any, name: str = "cosine") -> np.ndarray:
    """float32 [N, M], how similar each vector is to each: cosine, dot product, or a distance times -1.

    Args:
      a_ND, b_MD: floats [N, D] and [M, D]; one vector [D] is a single row.
      name: of SIMILARITIES.
    """
    check_choice("similarity", name, SIMILARITIES)
    a_ND, b_MD = _rows(a_ND, "a"), _rows(b_MD, "b")
    if a_ND.shape[1] != b_MD.shape[1]:
        raise InputError(f"a has vectors of width {a_ND.shape[1]}, b of {b_MD.shape[1]}; both must come from one model")
    scores_NM = np.empty((len(a_ND), len(b_MD)), np.float32)
    for block in _blocks(b_MD):
        scores_NM[:, block] = _scores(a_ND, np.asarray(b_MD[block], np.float32), name)
    return scores_NM


def search(query_D: Any, corpus: Any, top: int = 10, name: str = "cosine") -> list[tuple[int, float]]:
    """(index, similarity) of the ``top`` vectors of a corpus that are most similar to one, the best first.

    Exact: every vector is compared; of equal ones the first comes first.

    Args:
      query_D: floats [D].
      corpus: floats [N, D], or the path of a .npy file with such an array, which is not read into memory as a whole.

    Raises InputError for other shapes, a file that is no .npy, and vectors that are not finite.
    """
    check_choice("similarity", name, SIMILARITIES)
    check_range("top", top, at_least=1, whole=True)
    is_path = isinstance(corpus, str | os.PathLike)
    where = str(corpus) if is_path else "corpus"
    corpus_ND = _rows(_mapped(pathlib.Path(corpus)) if is_path else corpus, where)
    query_1D = _rows(query_D, "query")
    if query_1D.shape != (1, corpus_ND.shape[1]):
        both = f"query has shape {list(np.shape(query_D))}, the vectors of {where} a width of {corpus_ND.shape[1]}"
        raise InputError(f"{both}; give one vector of that width")
    best_index, best_score = np.empty(0, np.int64), np.empty(0, np.float32)
    for block in _blocks(corpus_ND):
        scores_M = _scores(query_1D, np.asarray(corpus_ND[block], np.float32), name)[0]
        if not np.isfinite(scores_M).all():
            wrong = block.start + int(np.flatnonzero(~np.isfinite(scores_M))[0])
            raise InputError(f"{where}: vector {wrong} (or the query) is not finite; make the vectors again")
        worst = best_score[-1] if len(best_score) == top else -np.inf
        kept_M = np.flatnonzero(scores_M > worst)  # of equal ones, those before stay
        if not len(kept_M):
            continue
        best_index = np.concatenate([best_index, kept_M + block.start])
        best_score = np.concatenate([best_score, scores_M[kept_M]])
        order = np.lexsort((best_index, -best_score))[:top]
        best_index, best_score = best_index[order], best_score[order]
    return list(zip(best_index.tolist(), best_score.tolist(), strict=True))


def _scores(a_ND: np.ndarray, b_MD: np.ndarray, name: str) -> np.ndarray:
    if name in ("cosine", "dot"):
        scores_NM = a_ND @ b_MD.T
        if name == "cosine":
            scores_NM /= _norms(a_ND)[:, None]
            scores_NM /= _norms(b_MD)
        return scores_NM
    # Differences themselves: |a|^2 - 2 a b + |b|^2 would cancel where two vectors are alike.
    scores_NM = np.empty((len(a_ND), len(b_MD)), np.float32)
    for a_D, scores_M in zip(a_ND, scores_NM, strict=True):
        apart_MD = b_MD - a_D
        if name == "manhattan":
            scores_M[:] = -np.abs(apart_MD, out=apart_MD).sum(1)
        else:
            scores_M[:] = -np.sqrt(np.einsum("md,md->m", apart_MD, apart_MD))
    return scores_NM


def _norms(x_ND: np.ndarray) -> np.ndarray:
    return np.maximum(np.sqrt(np.einsum("nd,nd->n", x_ND, x_ND)), _SMALLEST_NORM)


def _blocks(x_ND: np.ndarray) -> list[slice]:
    size = max(1, _BLOCK_BYTES // max(1, 4 * x_ND.shape[1]))
    return [slice(start, start + size) for start in range(0, len(x_ND), size)]


def _rows(vectors: Any, where: str) -> np.ndarray:
    """The array [N, D] of floats, not copied where it is one; one vector [D] as a single row."""
    array = vectors if isinstance(vectors, np.memmap) else np.asarray(vectors)
    array = array[None] if array.ndim == 1 else array
    if array.ndim != 2 or array.dtype.kind != "f":
        rule = "vectors must be floats [N, D]; model.embed makes them of a list of texts"
        raise InputError(f"{where}: holds {array.dtype} {list(array.shape)}; {rule}")
    return array if isinstance(array, np.memmap) else array.astype(np.float32, copy=False)


def _mapped(path: pathlib.Path) -> np.ndarray:
    try:
        return np.lib.format.open_memmap(path, mode="r")
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "no .npy file, or cut short"
        raise InputError(f"{path}: cannot be read ({why}); bert embed writes such files") from None
