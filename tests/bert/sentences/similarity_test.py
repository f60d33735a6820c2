"""Similarities are their formulas; search finds what sorting everything finds, block by block."""

import numpy as np
import pytest

from bert.model.sentence_encoder import SIMILARITIES
from bert.sentences import similarity
from tests.bert.refusals import refused

RNG = np.random.default_rng(0)
A, B = RNG.normal(size=(7, 5)).astype(np.float32), RNG.normal(size=(300, 5)).astype(np.float32)
FORMULAS = {
    "cosine": lambda a, b: a @ b / np.linalg.norm(a) / np.linalg.norm(b),
    "dot": lambda a, b: a @ b,
    "euclidean": lambda a, b: -np.linalg.norm(a - b),
    "manhattan": lambda a, b: -np.abs(a - b).sum(),
}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(similarity, "_BLOCK_BYTES", 4 * 5 * 64)


@pytest.mark.parametrize("name", SIMILARITIES)
def test_a_matrix_of_similarities(name):
    found = similarity.similarity(A, B, name)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, [[FORMULAS[name](a, b) for b in B] for a in A], rtol=0, atol=1e-5)
    own = [FORMULAS[name](a, a) for a in A]  # exactly 0 for distances, which nothing cancels
    np.testing.assert_allclose(similarity.similarity(A, A, name).diagonal(), own, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", SIMILARITIES)
@pytest.mark.parametrize("top", [1, 10, 1000])
def test_search_is_exact(tmp_path, name, top):
    """As sorting all similarities gives it; of an array, and of a file of it; the first of equal ones comes first."""
    corpus = np.concatenate([B, B[::-1]])
    scores = similarity.similarity(A[:1], corpus, name)[0]
    want = np.lexsort((np.arange(600), -scores))[:top]
    found = similarity.search(A[0], corpus, top, name)
    np.testing.assert_allclose([score for _, score in found], scores[want], rtol=0, atol=1e-6)
    assert len(found) == min(top, 600)
    if top == 1:
        assert found[0][0] == want[0] < 300
    np.save(tmp_path / "corpus.npy", corpus)
    assert similarity.search(A[0], tmp_path / "corpus.npy", top, name) == found


def test_equal_vectors_come_in_their_order():
    assert [index for index, _ in similarity.search(A[0], np.tile(A[1], (200, 1)), 3)] == [0, 1, 2]


def test_a_zero_vector_is_similar_to_nothing():
    assert similarity.search(A[0], np.zeros((2, 5), np.float32)) == [(0, 0.0), (1, 0.0)]


def test_what_cannot_be_compared_is_refused(tmp_path):
    with refused("width 5", "of 4"):
        similarity.similarity(A, B[:, :4])
    with refused("query", "[4]", "width of 5"):
        similarity.search(A[0, :4], B)
    with refused("corpus", "int64"):
        similarity.search(A[0], B.astype(int))
    with refused("top is 0", "at least 1"):
        similarity.search(A[0], B, 0)
    wrong = B.copy()
    wrong[123, 2] = np.nan
    with refused("corpus", "vector 123", "finite"):
        similarity.search(A[0], wrong)
    (tmp_path / "a.npy").write_text("no array")
    with refused("a.npy", "no .npy"):
        similarity.search(A[0], tmp_path / "a.npy")
    np.savez(tmp_path / "a.npz", A)
    with refused("a.npz", "no .npy"):
        similarity.search(A[0], tmp_path / "a.npz")
    with refused("b.npy", "No such file"):
        similarity.search(A[0], str(tmp_path / "b.npy"))


def test_a_file_may_have_any_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with open("corpus", "wb") as file:
        np.save(file, np.eye(2, dtype=np.float32))
    assert similarity.search(np.eye(2)[1], "corpus", 1) == [(1, 1.0)]
