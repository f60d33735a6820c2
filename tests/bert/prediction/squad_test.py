"""Answers by start and end: the search over windows, no answer, characters, models that others trained."""

import dataclasses

import numpy as np
import pytest

import bert
from bert.data import passages
from bert.errors import InputError
from bert.prediction import squad, task_options
from bert.prediction.squad import Candidate, SearchResult, SquadOptions
from bert.tokenizer.alignment import Pieces
from bert.tokenizer.backends import load_tokenizer
from bert.tokenizer.wordpiece import WordPiece
from tests.bert.prediction.table_model import GOLDEN, answerer

TOKENIZER = load_tokenizer(GOLDEN / "tiny_qa")
SMALL = {"max_length": 16, "window_step": 5, "max_question": 6}
UNSEEN = ["", "  ", "\u200b", "\u200b\u200d \n"]  # nothing in them becomes a piece


@pytest.fixture(scope="module")
def tiny():
    return bert.load(GOLDEN / "tiny_qa")


# ---- the search ----


def windows_over(lengths, rng, max_length=16, step=5):
    """Texts of so many pieces behind questions of 1 to 4, as windows."""
    before = [[2, *[9] * rng.integers(1, 5), 3] for _ in lengths]
    return passages.cut([range(n) for n in lengths], before, [3], max_length=max_length, step=step, pair=True)


def best_by_trying_all(scores_K2, cut, options):
    """Every start and end in every window, by run_squad.py's rules: the start in the window where its nearer edge is
    farthest away (of equal ones the first), the end in the same window, not too long; the null score the smallest."""
    found = []
    for n in range(len(cut)):
        own = [w for w in range(len(cut.text_W)) if cut.text_W[w] == n]
        nothing = min(scores_K2[cut.encoded.starts[w]].sum() for w in own)
        spans = []
        for w in own:
            first, stop = cut.bounds_W2[w]
            for i in range(first, stop):
                context = [
                    min(i - a, b - 1 - i) if a <= i < b else -1 for a, b in (cut.bounds_W2[other] for other in own)
                ]
                if own[context.index(max(context))] != w:
                    continue
                for j in range(i, min(stop, i + options.max_answer)):
                    at = cut.places_W[w] - first
                    spans.append(Candidate(i, j + 1, float(scores_K2[at + i, 0]) + float(scores_K2[at + j, 1])))
        found.append(SearchResult(sorted(spans, key=lambda c: (-c.score, c.first, c.stop))[: options.best], nothing))
    return found


def test_search_finds_what_trying_all_spans_of_all_windows_finds():
    """Random lengths (0 too), limits and numbers of candidates; none twice though windows overlap."""
    rng = np.random.default_rng(0)
    for _ in range(60):
        cut = windows_over(rng.integers(0, 45, 4), rng, step=int(rng.integers(1, 8)))
        scores_K2 = rng.standard_normal((len(cut.encoded.token_ids), 2), np.float32)
        options = SquadOptions(**SMALL, max_answer=int(rng.integers(1, 14)), best=int(rng.integers(1, 40)))
        found = squad.search(scores_K2, cut, options)
        wanted = best_by_trying_all(scores_K2, cut, options)
        assert [one.null_score for one in found] == pytest.approx([one.null_score for one in wanted])
        for got, want in zip(found, wanted, strict=True):
            assert [(c.first, c.stop) for c in got.candidates] == [(c.first, c.stop) for c in want.candidates]
            np.testing.assert_allclose([c.score for c in got.candidates], [c.score for c in want.candidates], rtol=1e-6)
            spans = [(c.first, c.stop) for c in got.candidates]
            assert len(set(spans)) == len(spans)


def test_scores_outside_the_passage_count_for_nothing():
    """The best start and end of all stand in the question, at [CLS] and at [SEP]."""
    cut = windows_over([7], np.random.default_rng(0))
    scores_K2 = np.full((len(cut.encoded.token_ids), 2), 50.0, np.float32)
    inside = cut.places_W[0] + np.arange(7)
    scores_K2[inside] = 0.0
    scores_K2[inside[2], 0] = scores_K2[inside[4], 1] = 1.0
    (found,) = squad.search(scores_K2, cut, SquadOptions(**SMALL))
    assert found.candidates[0] == Candidate(2, 5, 2.0)
    assert found.null_score == 100.0


def test_equal_scores_give_the_first_span():
    cut = windows_over([9], np.random.default_rng(0))
    (found,) = squad.search(np.zeros((len(cut.encoded.token_ids), 2), np.float32), cut, SquadOptions(best=99))
    assert found.candidates[0] == Candidate(0, 1, 0.0)
    assert len(found.candidates) == 45


# ---- what is answered ----


def told(candidates, nothing, **how):
    """The answer on "a b c d", a piece a letter."""
    pieces = Pieces([(0, 1), (2, 3), (4, 5), (6, 7)])
    found = SearchResult([Candidate(*one) for one in candidates], nothing)
    return squad.answers([found], ["a b c d"], [pieces], SquadOptions(**how))[0]


@pytest.mark.parametrize(
    ("nothing", "threshold", "answer"),
    [(0.0, 0.0, "b c"), (2.9, 0.0, "b c"), (3.0, 0.0, "b c"), (3.1, 0.0, ""), (3.1, 0.2, "b c"), (2.5, -1.0, "")],
)
def test_nothing_is_answered_above_the_threshold_and_not_at_it(nothing, threshold, answer):
    found = told([(1, 3, 3.0), (0, 1, 1.0)], nothing, no_answer=True, threshold=threshold)
    assert found["answer"] == answer
    assert found["null_odds"] == pytest.approx(nothing - 3.0)
    place = {"b c": (2, 5), "": (None, None)}[answer]
    assert (found["start"], found["end"]) == place
    chosen = next(one for one in found["candidates"] if one["answer"] == answer)
    assert {**chosen} == {name: found[name] for name in ("answer", "start", "end", "probability")}


def test_probabilities_are_the_softmax_of_the_candidates_and_of_no_answer_where_there_may_be_none():
    """Scores ln 6 and ln 3, no answer ln 1: 0.6, 0.3, 0.1; for SQuAD 1.1 2/3 and 1/3."""
    scores = [(1, 3, np.log(6)), (0, 1, np.log(3))]
    with_none = told(scores, 0.0, no_answer=True)["candidates"]
    assert [(one["answer"], one["probability"]) for one in with_none] == [
        ("b c", pytest.approx(0.6)), ("a", pytest.approx(0.3)), ("", pytest.approx(0.1)),
    ]  # fmt: skip
    without = told(scores, 50.0)
    assert [one["probability"] for one in without["candidates"]] == pytest.approx([2 / 3, 1 / 3])
    assert (without["answer"], without["null_odds"]) == ("b c", pytest.approx(50 - np.log(6)))


def test_several_pieces_of_one_character_are_one_candidate():
    """A Korean syllable is taken apart; "가" by its first, its second or both pieces is told once, as its best."""
    tokenizer = WordPiece.from_vocab(
        ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "\u1100", "##\u1161", "##\u1100"], lower_case=True
    )
    encoding = tokenizer.encode("가가")
    assert encoding.offsets == [(0, 1), (0, 1), (1, 2), (1, 2)]
    spans = [Candidate(i, j, 4.0 - j + i / 8) for i in range(4) for j in range(i + 1, 5)]
    spans.sort(key=lambda c: -c.score)
    found = squad.answers([SearchResult(spans, 0.0)], ["가가"], [Pieces(encoding.offsets)], SquadOptions())
    assert [(one["start"], one["end"]) for one in found[0]["candidates"]] == [(0, 1), (1, 2), (0, 2)]
    assert sum(one["probability"] for one in found[0]["candidates"]) == pytest.approx(1)
    assert found[0]["null_odds"] == -spans[0].score


# ---- characters ----

TEXTS = [
    "My name is Wolfgang \n\n\n and I live in Berlin",
    "My name is Wolfgang \r\n\r\n and I live in Berlin",
    "\ufeff🤗 My café — naïve Ærø —  lies\tin “Berlin”. 👩‍👩‍👧 ok",
    "ÀÉÎ  ÕÜ. İstanbul, ΣΊΣΥΦΟΣ; 東京 に 住む",
]


@pytest.mark.parametrize("context", TEXTS)
def test_each_answer_is_a_slice_of_the_original_text(context):
    """All spans of pieces of a lower-casing vocabulary without accents: blanks and letters as they stand."""
    pieces = Pieces(TOKENIZER.encode(context).offsets)
    spans = [Candidate(i, j, -float(i)) for i in range(len(pieces)) for j in range(i + 1, min(len(pieces), i + 25) + 1)]
    found = squad.answers([SearchResult(spans, 0.0)], [context], [pieces], SquadOptions())[0]
    assert len(found["candidates"]) == len(spans)
    for one in (found, *found["candidates"]):
        assert one["answer"] == context[one["start"] : one["end"]]
        assert one["answer"] == one["answer"].strip()
        assert one["answer"]


def test_answers_behind_what_shifts_offsets():
    """Answers from "paris" to "france", behind line ends, an emoji, accents and double blanks."""
    model = answerer({"paris": 5.0}, {"france": 5.0})
    for before in ("", "My name is Wolfgang \n\n\n and ", "a\r\n\r\n", "🤗 ", "café ", "\u200b\ufeff", "中\u0301 "):
        context = f"{before}PARIS, \r\n France !"
        (found,) = model.predict([{"question": "Where?", "context": context}])
        assert found["answer"] == "PARIS, \r\n France" == context[found["start"] : found["end"]]


# ---- rows, settings, and whole models ----


@pytest.mark.parametrize("no_answer", [False, True])
def test_every_question_gets_an_answer_though_there_is_nothing_to_read(no_answer):
    options = SquadOptions(**SMALL, no_answer=no_answer)
    model = answerer({"paris": 5.0}, {"paris": 5.0}, extra=options.to_json())
    found = model.predict([("Where?", text) for text in [*UNSEEN, "in Paris"]], details=True)
    for one in found[:-1]:
        nothing = {"answer": "", "start": None, "end": None, "probability": 1.0}
        assert one == nothing | {"null_odds": None, "candidates": [nothing]}
    assert found[-1]["answer"] == "Paris"
    assert model.predict([]) == []


def test_the_settings_that_travel_with_a_model_decide():
    options = SquadOptions(**SMALL, max_answer=2, best=3, no_answer=True, threshold=4.5)
    assert squad.options_of(options.to_json(), bert.load(GOLDEN / "tiny_qa").config) == options
    model = answerer({"paris": 4.0}, {"france": 4.0, "in": 1.0}, nothing=12.0, extra=options.to_json())
    (found,) = model.predict([("Where?", "paris in france")], details=True)
    assert (found["answer"], found["null_odds"]) == ("", 12.0 - 5.0)  # "paris in france" is three tokens
    assert len(found["candidates"]) == 4
    model.extra = dataclasses.replace(options, max_answer=3).to_json()
    assert model.predict([("Where?", "paris in france")])[0]["answer"] == "paris in france"
    assert "candidates" not in model.predict([("Where?", "paris in france")])[0]


@pytest.mark.parametrize("name", ["max_answer", "best", "window_step"])
def test_settings_without_sense_are_refused(name, tiny):
    with pytest.raises(InputError, match=f"{name} is 0; it must be at least 1"):
        SquadOptions(**{name: 0})
    with pytest.raises(InputError, match=f"config.json: {name} is 'x'"):
        task_options.read(SquadOptions, {"squad": {name: "x"}}, "squad", 64)


def test_a_model_that_others_trained_reads_as_far_as_it_has_positions(tiny):
    assert tiny.task == "squad"
    assert squad.options_of({}, tiny.config) == SquadOptions(max_length=64, window_step=21, max_question=10)
    usual = dataclasses.replace(tiny.config, max_position_embeddings=512)
    assert squad.options_of({}, usual) == SquadOptions(max_length=384, window_step=128, max_question=64)
    context = "The cat sat on the mat. " * 12 + "John runs."
    (found,) = tiny.predict([{"question": "who runs", "context": context}], details=True)
    assert found["answer"] == context[found["start"] : found["end"]] != ""
    assert len(found["candidates"]) == 20


def test_scores_are_those_of_the_model(tiny):
    """The first score that of the start, the second that of the end; no answer is both at [CLS]."""
    question, context = "who sat", "the cat sat on the mat and john ran in paris"
    ask, read = TOKENIZER.encode_ids([question, context])
    ids = [TOKENIZER.cls_id, *ask, TOKENIZER.sep_id, *read, TOKENIZER.sep_id]
    before = len(ask) + 2
    types = [0] * before + [1] * (len(ids) - before)
    outputs = tiny.outputs([ids], [types])
    start_I, end_I = (outputs[name][0][before:-1] for name in ("start_logits", "end_logits"))
    total_II = start_I[:, None] + np.where(np.tri(len(read), dtype=bool).T, end_I, -np.inf)
    first, last = np.unravel_index(total_II.argmax(), total_II.shape)
    (found,) = tiny.predict([(question, context)])
    assert (found["start"], found["end"]) == Pieces(TOKENIZER.encode(context).offsets).span_of(first, last + 1)
    nothing = outputs["start_logits"][0, 0] + outputs["end_logits"][0, 0]
    assert found["null_odds"] == pytest.approx(nothing - total_II.max(), abs=1e-4)


def test_answers_do_not_depend_on_batches_and_packing(tiny):
    """Batches of 1, 7 and 32, several windows in a row or one, and the order of the questions."""
    rng = np.random.default_rng(0)
    words = (GOLDEN / "tiny_qa" / "vocab.txt").read_text().split()[75:116]
    rows = [("Who sat on the mat?", " ".join(rng.choice(words, n))) for n in (3, 8, 50, 90, 130, 1)]
    rows += [("why", text) for text in UNSEEN]
    first = tiny.predict(rows, details=True)
    for found, (_, context) in zip(first, rows, strict=True):
        assert_sound(found, context, limit=30)
    for size, packed in ((1, True), (7, False), (7, True), (1, False)):
        for order in (slice(None), slice(None, None, -1)):
            found = tiny.predict(rows[order], batch_size=size, packed=packed, details=True)
            for got, want in zip(found, first[order], strict=True):
                assert (got["answer"], got["start"], got["end"]) == (want["answer"], want["start"], want["end"])
                assert got["probability"] == pytest.approx(want["probability"], abs=1e-5)
                assert got["null_odds"] == (want["null_odds"] and pytest.approx(want["null_odds"], abs=1e-4))


def assert_sound(found, context, limit):
    """Candidates inside the context, none twice or too long, probabilities sum to 1."""
    candidates = found["candidates"]
    assert candidates
    assert sum(one["probability"] for one in candidates) == pytest.approx(1)
    places = [(one["start"], one["end"]) for one in candidates]
    assert len(set(places)) == len(places)
    pieces = Pieces(TOKENIZER.encode(context).offsets)
    for one in candidates:
        if one["start"] is not None:
            assert 0 <= one["start"] < one["end"] <= len(context)
            first, stop = pieces.of_span(one["start"], one["end"])
            assert stop - first <= limit
        assert one["answer"] == ("" if one["start"] is None else context[one["start"] : one["end"]])


def test_a_model_without_a_head_says_so():
    model = bert.load(GOLDEN / "tiny_bert")
    with pytest.raises(InputError, match="tiny_bert: has no head of a task"):
        model.predict([("Where?", "here")])
    with pytest.raises(InputError, match=r"no token_classifier head .*tagger"):
        squad.predict(model.scorer(), [("Where?", "here")])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("Where?", "rows is one text"),
        ({"question": "Where?", "context": "here"}, "rows is one text or one row"),
        (["Where?"], "row 0 is 'Where\\?'; it must hold a question and a context"),
        ([("Where?", "here"), {"question": "Where?"}], "row 1: context is None; it must be a text"),
    ],
)
def test_rows_that_are_no_questions_are_refused(tiny, rows, message):
    with pytest.raises(InputError, match=message):
        tiny.predict(rows)


def test_a_question_that_leaves_no_room_is_cut_and_named(caplog):
    model = answerer({}, {}, extra=SquadOptions(max_length=20, window_step=12, max_question=10).to_json())
    assert len(model.predict([("a b", "here"), ("a b c d e f g h i j k", "here")])) == 2
    assert "1 of 2 questions are longer than max_question, 5 tokens, and were cut (first row 1)" in caplog.text
