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


def drawn_tables(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Tables of log-probabilities, and a limit for each."""
    rng = np.random.default_rng(0)
    tables = np.log(rng.dirichlet(np.ones(V), (count, PREFIXES)).astype(np.float32))
    return tables, rng.integers(1, LENGTH + 1, count)


def test_one_beam_is_greedy_bit_for_bit():
    """200 tables: the most probable token each time, to the end or the limit, and the sum of what each costs."""
    tables, limits = drawn_tables(200)
    found = compiled(tables, limits, np.float32(0), 1)
    for row in range(200):
        tokens, total = list[int](), np.float32(0)
        while len(tokens) < limits[row] and STOP not in tokens:
            values = tables[row, prefix_number(tokens)]
            tokens.append(int(values.argmax()))
            total += values.max()
        assert hypotheses(found, row) == [(tokens, float(total))]


@pytest.mark.parametrize("beams", [1, 3])
def test_neighbours_change_nothing_and_no_hypothesis_is_there_twice(beams):
    """The rows of a batch are done at different words."""
    tables, limits = drawn_tables(200)
    found = compiled(tables, limits, np.float32(0.6), beams)
    for row in range(200):
        tokens = [tuple(ids) for ids, _ in hypotheses(found, row)]
        assert len(set(tokens)) == len(tokens) > 0
    for row in (0, 7, 199):
        alone = compiled(tables[row : row + 1], limits[row : row + 1], np.float32(0.6), beams)
        assert hypotheses(alone, 0) == hypotheses(found, row)


@pytest.mark.parametrize("beams", [1, 3])
def test_a_text_may_end_at_its_first_word(beams):
    """The empty text is the best, whatever its neighbour is, and is not extended."""
    tables, _ = drawn_tables(2)
    tables[0, 0] = np.log(np.float32([0.03, 0.04, 0.9, 0.03]))
    found = compiled(tables, np.full(2, LENGTH), np.float32(0.6), beams)
    assert hypotheses(found, 0)[0] == ([STOP], pytest.approx(np.log(0.9)))
    assert all(ids.count(STOP) <= 1 and STOP not in ids[:-1] for ids, _ in hypotheses(found, 0))


def test_the_length_penalty_is_the_published_one():
    np.testing.assert_allclose(
        length_penalty(np.array([1, 5, 10, 20, 50]), 0.6), [1, 1.3587, 1.7329, 2.3544, 3.7786], atol=5e-5
    )
    assert -4.0 / length_penalty(5, 0.6) == pytest.approx(-2.9441, abs=5e-5)
