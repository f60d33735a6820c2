"""Beam search on tables of log-probabilities: against an independent search, greedy and exhaustive search."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert.model.beam_search import length_penalty, search
from bert.model.decoders import DecoderState

V, STOP, LENGTH = 4, 2, 3
PREFIXES = 1 + V + V**2  # of up to two tokens: the empty one, then those of one token, then of two


def prefix_number(tokens) -> int:
    number = 0
    for token in tokens:
        number = number * V + token + 1
    return number


@pytest.fixture(scope="module")
def toy(shared):
    return json.loads((shared / "golden2" / "seq2seq" / "beam_toy.json").read_text())["cases"]


def table_of(case) -> np.ndarray:
    """float32 [prefix, V]; a prefix behind the end has no probability at all."""
    table = np.full((PREFIXES, V), -np.inf, np.float32)
    for prefix, values in case["log_probs"].items():
        table[prefix_number(map(int, prefix.split()))] = values
    return table


def score(state, word_R, position):
    number_R = jnp.where(position == 0, 0, state.moving * V + word_R + 1)
    row_R = jnp.repeat(jnp.arange(len(state.fixed)), len(word_R) // len(state.fixed))
    return state.fixed[row_R, number_R], state._replace(moving=number_R)


compiled = jax.jit(
    lambda tables, limits, alpha, beams: search(
        score, DecoderState(tables, jnp.zeros(len(tables) * beams, jnp.int32)), limits, alpha,
        beams=beams, places=LENGTH, start=jnp.int32(0), stop=jnp.int32(STOP),
    ),
    static_argnums=3,
)  # fmt: skip


def hypotheses(found, row: int) -> list[tuple[list[int], float]]:
    """(tokens, score) of a row, the best first."""
    numbers = np.flatnonzero(np.asarray(found.length_BK[row]))
    return [(found.ids_BKU[row, k, : found.length_BK[row, k]].tolist(), float(found.score_BK[row, k])) for k in numbers]


@pytest.mark.parametrize("beams", [1, 2, 3, 4, 64])
def test_the_reference_s_hypotheses_and_scores(toy, beams):
    """All three tables in one batch; the widest beam is exhaustive search."""
    tables = np.stack([table_of(case) for case in toy])
    for alpha in (0.0, 0.6, 1.0):
        found = compiled(tables, np.full(3, LENGTH), np.float32(alpha), beams)
        for row, case in enumerate(toy):
            want = [(h["tokens"], h["score"]) for h in case["beam"][f"k={beams} alpha={alpha}"]]
            got = hypotheses(found, row)
            assert [tokens for tokens, _ in got][: len(want)] == [tokens for tokens, _ in want]
            np.testing.assert_allclose([s for _, s in got][: len(want)], [s for _, s in want], rtol=1e-6)
            assert len({tuple(tokens) for tokens, _ in got}) == len(got)
            if beams == 64:
                best = case["best"][str(alpha)]
                assert [tokens for tokens, _ in got][: len(best)] == [h["tokens"] for h in best]


def test_one_beam_is_greedy_whatever_the_neighbours():
    """200 tables drawn at random, together and alone: the most probable token each time, to the end or the limit."""
    rng = np.random.default_rng(0)
    tables = np.log(rng.dirichlet(np.ones(V), (200, PREFIXES)).astype(np.float32))
    limits = rng.integers(1, LENGTH + 1, 200)
    found = compiled(tables, limits, np.float32(0), 1)
    for row in range(200):
        tokens: list[int] = []
        while len(tokens) < limits[row] and STOP not in tokens:
            tokens.append(int(tables[row, prefix_number(tokens)].argmax()))
        assert hypotheses(found, row)[0][0] == tokens
    for row in (0, 7, 199):
        alone = compiled(tables[row : row + 1], limits[row : row + 1], np.float32(0), 1)
        assert hypotheses(alone, 0) == hypotheses(found, row)


def test_the_length_penalty_is_the_published_one():
    np.testing.assert_allclose(
        length_penalty(np.array([1, 5, 10, 20, 50]), 0.6), [1, 1.3587, 1.7329, 2.3544, 3.7786], atol=5e-5
    )
    assert -4.0 / length_penalty(5, 0.6) == pytest.approx(-2.9441, abs=5e-5)
