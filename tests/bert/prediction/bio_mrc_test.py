"""Spans from probabilities of B, I and O: the best by search, their probability, their text; and of a model."""

import itertools
import pathlib

import numpy as np
import pytest

import bert
from bert import inference
from bert.data import passages
from bert.errors import InputError
from bert.prediction import bio_mrc, questions, tag_decoding
from bert.prediction.bio_mrc import BioMrcOptions
from bert.tokenizer.alignment import Pieces

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "golden"


def shares(text: str) -> np.ndarray:
    """Probabilities near 0 and 1 of the tags, such as "O B I"."""
    return np.array([[0.96 if tag == other else 0.02 for other in "BIO"] for tag in text.split()])


def spans_in(tags) -> list[tuple[int, int]]:
    """[first, stop) of each B with the I that follow it."""
    begins = [i for i, tag in enumerate(tags) if tag == "B"]
    return [(i, next((j for j in range(i + 1, len(tags)) if tags[j] != "I"), len(tags))) for i in begins]


def tags(p_KC, starts=None, **changes) -> str:
    starts = np.array([0, len(p_KC)] if starts is None else starts)
    return " ".join(bio_mrc.TAGS[i] for i in bio_mrc.tags(p_KC, starts, BioMrcOptions(**changes)))


# ---- the best tags ----


@pytest.mark.parametrize("max_span", [0, 1, 2, 3])
def test_no_tags_with_spans_of_that_length_are_likelier(max_span):
    """Of 100 random passages of 0 to 6 tokens, against every valid sequence without longer spans."""
    rng = np.random.default_rng(max_span)
    length_N = rng.integers(0, 7, 100)
    starts = np.concatenate([[0], np.cumsum(length_N)])
    p_KC = rng.dirichlet([0.5, 1.5, 0.5], starts[-1])
    found_K = bio_mrc.tags(p_KC, starts, BioMrcOptions(max_span=max_span))
    for a, b in itertools.pairwise(starts):
        best, most = None, -np.inf
        for guess in itertools.product("BIO", repeat=b - a):
            inside = sum(stop - first for first, stop in spans_in(guess))
            valid = inside == len(guess) - guess.count("O")
            if valid and all(stop - first <= (max_span or 99) for first, stop in spans_in(guess)):
                total = sum(np.log(p_KC[a + i]["BIO".index(tag)]) for i, tag in enumerate(guess))
                best, most = (guess, total) if total > most else (best, most)
        assert tuple(bio_mrc.TAGS[i] for i in found_K[a:b]) == best


def test_greedy_takes_each_tokens_likeliest_tag_and_repairs():
    """An I with no span to go on is a B, at a passage's start too, whatever the passage before ends with."""
    p_KC = shares("O I I B I I I O")
    assert tags(p_KC, decoding="greedy") == "O B I B I I I O"
    assert tags(p_KC, [0, 0, 5, 5, 8], decoding="greedy") == "O B I B I B I O"


def test_passages_do_not_touch_each_other():
    """B I at the end of one and I I at the start of the next: no span is in both, and an empty one has none."""
    p_KC = shares("O B I I I O")
    for decoding in tag_decoding.DECODING:
        found = bio_mrc.spans(p_KC, np.array([0, 0, 3, 3, 6]), BioMrcOptions(decoding=decoding))
        assert [[span[:2] for span in one] for one in found] == [[], [(1, 3)], [], [(0, 2)]]
        assert bio_mrc.spans(np.zeros((0, 3)), np.array([0, 0]), BioMrcOptions(decoding=decoding)) == [[]]


def test_an_impossible_beginning_does_not_spoil_the_rest():
    """I with probability 1 at the start, where it may not stand: what comes after is still read."""
    p_KC = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    assert tags(p_KC) == "B O O B I"


def test_longer_spans_are_cut_by_viterbi_and_left_out_by_greedy():
    p_KC = shares("B I I O B O")
    assert tags(p_KC, max_span=2) == "B I B O B O"
    found = bio_mrc.spans(p_KC, np.array([0, 6]), BioMrcOptions(decoding="greedy", max_span=2))
    assert [span[:2] for span in found[0]] == [(4, 5)]


# ---- spans ----


def test_the_probability_is_the_geometric_mean_of_the_tags():
    """B 0.8, I 0.5, I 0.41: the third root of 0.164; a span does not get less likely by being long."""
    p_KC = np.array([[0.1, 0.1, 0.8], [0.8, 0.1, 0.1], [0.3, 0.5, 0.2], [0.4, 0.41, 0.19], [0.6, 0.3, 0.1]])
    (found,) = bio_mrc.spans(p_KC, np.array([0, 5]), BioMrcOptions())
    assert [(span.first, span.stop) for span in found] == [(1, 4), (4, 5)]
    assert found[0].probability == pytest.approx((0.8 * 0.5 * 0.41) ** (1 / 3))
    assert found[1].probability == pytest.approx(0.6)
    (kept,) = bio_mrc.spans(p_KC, np.array([0, 5]), BioMrcOptions(min_probability=0.59))
    assert kept == found[1:]


def test_answers_are_the_passages_own_text():
    """Offsets in code points, end exclusive; letter case, accents and line ends as they are."""
    context = "My name is Wolfgang \r\n\r\n🤗 Café and I live in Berlin"
    words = [(a, a + len(w)) for w in context.split() for a in [context.index(w)]]
    p_KC = shares("O O O B I I O O O O B")
    (found,) = bio_mrc.answers(p_KC, np.array([0, 11]), [context], [Pieces(words, context)], BioMrcOptions())
    assert [span["text"] for span in found["spans"]] == ["Wolfgang \r\n\r\n🤗 Café", "Berlin"]
    for span in found["spans"]:
        assert context[span["start"] : span["end"]] == span["text"]
        assert span["probability"] == pytest.approx(0.96)


def test_probabilities_of_each_token():
    told = bio_mrc.tokens(np.array([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]]), Pieces([(0, 3), (4, 8)]))
    assert told == [
        {"start": 0, "end": 3, "B": 0.5, "I": 0.3, "O": 0.2}, {"start": 4, "end": 8, "B": 0.1, "I": 0.2, "O": 0.7},
    ]  # fmt: skip


# ---- settings ----


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"decoding": "best"}, r"^decoding is 'best'; it must be one of viterbi, greedy$"),
        ({"min_probability": 1.0}, r"^min_probability is 1.0; it must be at least 0 and below 1$"),
        ({"min_probability": float("nan")}, r"^min_probability is nan"),
        ({"max_span": -1}, r"^max_span is -1; it must be at least 0$"),
        ({"window_step": 0}, r"^window_step is 0; it must be at least 1$"),
    ],
)
def test_settings_that_make_no_sense_are_refused(changes, message):
    with pytest.raises(InputError, match=message):
        BioMrcOptions(**changes)


def test_settings_travel_in_the_model_directory():
    config = bert.BertConfig(vocab_size=10, max_position_embeddings=200)
    options = BioMrcOptions(180, 60, 30, "greedy", 0.25, 9)
    assert bio_mrc.options_of(options.to_json(), config) == options


def test_other_labels_than_b_i_and_o_are_refused():
    assert bio_mrc.columns_of(("O", "B", "I"), "m") == [1, 2, 0]
    for labels in (("B", "I"), ("B", "I", "O", "O"), ("B-X", "I-X", "O")):
        with pytest.raises(InputError, match=f"^m: .* {', '.join(labels)}; .*B, I"):
            bio_mrc.columns_of(labels, "m")


# ---- a model ----

WORDS = "the cat dog sat on mat paris france new york john smith good bad movie read book".split()  # noqa: SIM905
SHAPE = {"max_length": 32, "window_step": 7, "max_question": 8}


@pytest.fixture(scope="module")
def model():
    found = bert.load(GOLDEN / "tiny_tokcls")
    return inference.from_params(
        found.config, found.params, found.tokenizer, labels=found.labels, extra=BioMrcOptions(**SHAPE).to_json()
    )


@pytest.fixture(scope="module")
def rows() -> list[dict]:
    """23 questions on passages of 0 to 70 words: up to ten windows."""
    rng = np.random.default_rng(3)
    texts = [" ".join(rng.choice(WORDS, rng.integers(0, 71))) for _ in range(22)]
    return [{"question": " ".join(rng.choice(WORDS, 3)), "context": text} for text in [*texts, ""]]


@pytest.fixture(scope="module")
def told(model, rows):
    return model.predict(rows, batch_size=8, details=True)


def same(found, want):
    assert len(found) == len(want)
    for one, other in zip(found, want, strict=True):
        for key in ("spans", "tokens"):
            assert len(one[key]) == len(other[key])
            for a, b in zip(one[key], other[key], strict=True):
                assert a == pytest.approx(b, abs=1e-6)


@pytest.mark.parametrize(("batch_size", "packed"), [(8, False), (3, True)])
def test_answers_do_not_depend_on_batches(model, rows, told, batch_size, packed):
    """Batches of 8 and 3 rows, several windows in a row or one: the same spans, probabilities to 1e-6."""
    same(model.predict(rows, batch_size=batch_size, packed=packed, details=True), told)


def test_answers_do_not_depend_on_the_order_of_questions(model, rows, told):
    order = np.random.default_rng(4).permutation(len(rows))
    found = model.predict([rows[i] for i in order], batch_size=8, details=True)
    same(found, [told[i] for i in order])
    same(model.predict([(row["question"], row["context"]) for row in rows], batch_size=8, details=True), told)


def test_scores_do_not_depend_on_the_order_of_windows(model, rows):
    """Windows shuffled, each token's scores read from where its window went."""
    asked = questions.queries_of(rows)
    cut, _ = questions.windows_of(asked, model.vocabulary, BioMrcOptions(**SHAPE))
    assert len(cut.encoded) > 2 * len(rows), "most passages have several windows"
    order = np.random.default_rng(5).permutation(len(cut.encoded))
    scorer = model.scorer(batch_size=8)
    want, shuffled = (scorer.of_tokens(part, 32) for part in (cut.encoded, cut.encoded.take(order)))
    parts = passages.parts(shuffled, np.concatenate([[0], np.cumsum(cut.encoded.length_N[order])]))
    for place, window in enumerate(order):
        np.testing.assert_allclose(
            parts[place], want[cut.encoded.starts[window] : cut.encoded.starts[window + 1]], rtol=0, atol=1e-6
        )


def test_each_token_is_answered_for_once_with_its_probabilities(model, rows, told):
    """Every piece of the passage in order, whatever its windows; B, I and O sum to 1; no token of the question."""
    for row, one in zip(rows, told, strict=True):
        offsets = model.vocabulary.encode(row["context"]).offsets
        assert [(token["start"], token["end"]) for token in one["tokens"]] == offsets
        for token in one["tokens"]:
            assert token["B"] + token["I"] + token["O"] == pytest.approx(1, abs=1e-12)
        for span in one["spans"]:
            assert row["context"][span["start"] : span["end"]] == span["text"] != ""


def test_without_details_only_spans_are_told(model, rows, told):
    found = model.predict(rows, batch_size=8)
    assert all(one.keys() == {"spans"} for one in found)
    assert [[span["text"] for span in one["spans"]] for one in found] == [
        [span["text"] for span in one["spans"]] for one in told
    ]


def test_the_tokens_of_a_window_are_those_of_the_head(model):
    """A passage in one window: p_i is the softmax of the reference head's scores at its places; labels by name."""
    question, context = "who sat on the mat ?", "the cat sat on the mat . the dog ran ."
    (told,) = model.predict([(question, context)], batch_size=8, details=True)
    ask, text = (model.vocabulary.encode(one).ids for one in (question, context))
    ids = [2, *ask, 3, *text, 3]
    logits = model.outputs([ids], [[0] * (len(ask) + 2) + [1] * (len(text) + 1)])["token_logits"][0].astype(float)
    p_TC = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    found = [[token[tag] for tag in model.labels] for token in told["tokens"]]
    np.testing.assert_allclose(found, p_TC[len(ask) + 2 : -1], rtol=0, atol=1e-6)
    other = inference.from_params(
        model.config, model.params, model.vocabulary, labels=("O", "B", "I"), extra=model.extra
    )
    (renamed,) = other.predict([(question, context)], batch_size=8, details=True)
    for token, want in zip(renamed["tokens"], told["tokens"], strict=True):
        assert (token["O"], token["B"], token["I"]) == pytest.approx((want["B"], want["I"], want["O"]))
