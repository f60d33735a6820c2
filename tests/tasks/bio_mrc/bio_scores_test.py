"""Spans of annotators as tags, and probabilities beside them: by hand, and by the definitions of the scores."""

import itertools

import numpy as np
import pytest

from bert import bio_tags
from bert.prediction.bio_mrc import TAGS, BioMrcOptions, Span
from bert.tokenizer.alignment import Pieces
from tasks.bio_mrc import bio_scores
from tasks.metrics.entity_metrics import entities
from tasks.metrics.score import Score
from tasks.questions.answer_tokens import mark
from tasks.questions.question_rows import Annotation, Gold, Question

READING = BioMrcOptions()


def question(context: str, **spans) -> Question:
    """Annotators by name, each with the spans that he marked."""
    annotations = tuple(Annotation(name, tuple(own)) for name, own in spans.items())
    golds = tuple(Gold(name, tuple(context[a:b] for a, b in own)) for name, own in annotations)
    return Question("q", "Who?", context, annotations, "file:1", "g", golds)


def pieces_of(context: str) -> Pieces:
    """Pieces of two letters at most, as a small vocabulary would make them."""
    found, start = [], 0
    for word in context.split():
        start = context.index(word, start)
        found += [(a, min(a + 2, start + len(word))) for a in range(start, start + len(word), 2)]
        start += len(word)
    return Pieces(found, context)


def letters(tags_K) -> str:
    return "".join(TAGS[i] for i in tags_K)


def marked_tags(context: str, *spans) -> str:
    pieces = [pieces_of(context)]
    ((_, tags_K),) = mark([question(context, a=spans)], pieces).tags_N[0]
    return letters(tags_K)


# ---- spans as tags ----


def test_a_span_begins_with_b_and_goes_on_with_i():
    """ "jacob devlin" has the pieces ja co b de vl in."""
    assert marked_tags("jacob devlin wrote it", (0, 12)) == "BIIIIIOOOO"
    assert marked_tags("jacob devlin wrote it", (6, 12), (19, 21)) == "OOOBIIOOOB"
    assert marked_tags("jacob devlin wrote it") == "OOOOOOOOOO"


def test_spans_that_touch_stay_two():
    assert marked_tags("newyorkcity", (0, 4), (4, 8), (8, 11)) == "BIBIBI"


def test_spans_back_from_tags_are_the_same_text():
    """Of 300 random sets of spans on the borders of pieces."""
    rng = np.random.default_rng(0)
    context = "jacob devlin wrote bert with ming wei chang and kenton lee"
    pieces = pieces_of(context)
    for _ in range(300):
        cuts = sorted(rng.choice(len(pieces) + 1, 2 * rng.integers(0, 4), replace=False).tolist())
        spans = [pieces.span_of(a, b) for a, b in zip(cuts[::2], cuts[1::2], strict=True)]
        tags = marked_tags(context, *spans)
        assert [pieces.span_of(a, b) for _, a, b in bio_tags.spans(list(tags))] == spans


def test_what_became_of_the_spans_is_counted():
    """Inside a piece: widened; a second span in one piece, or one of blanks: left out; between pieces: as it stands."""
    context = "abcd ef"  # ab cd ef
    row = question(context, a=[(0, 1), (1, 2), (4, 5)], b=[(1, 4)], c=[(0, 7)], d=[])
    marked = mark([row], [pieces_of(context)])
    assert [(name, letters(tags)) for name, tags in marked.tags_N[0]] == [
        ("a", "BOO"), ("b", "BIO"), ("c", "BII"), ("d", "OOO"),
    ]  # fmt: skip
    assert (marked.spans, marked.widened, marked.lost) == (5, 2, 2)
    assert marked.report == (
        "5 spans: 2 begin or end inside a piece and were widened to its border; 2 hold no piece of their own and have "
        "no tag"
    )
    assert mark([question(context, c=[(0, 7)])], [pieces_of(context)]).report == ""


def test_of_two_spans_that_share_a_piece_the_first_has_it():
    """ab cd ef: the second begins in the middle of cd."""
    assert marked_tags("abcdef", (0, 3), (3, 6)) == "BIB"


def test_votes_of_several_annotators_on_several_passages():
    """Two say B, one says O, for each piece of the span; a passage without annotations has no votes."""
    rows = [question("ab cd", a=[(0, 2)], b=[(0, 2)], c=[]), question("xy"), question("", a=[]), question("ef", a=[])]
    pieces_N = [pieces_of(row.context) for row in rows]
    marked = mark(rows, pieces_N)
    counts_KC = bio_scores.vote_counts(marked, pieces_N, {})
    assert counts_KC.tolist() == [[2, 0, 1], [0, 0, 3], [0, 0, 0], [0, 0, 1]]
    weighted_KC = bio_scores.vote_counts(marked, pieces_N, {"a": 0.5, "c": 4.0})
    assert weighted_KC.tolist() == [[1.5, 0, 4], [0, 0, 5.5], [0, 0, 0], [0, 0, 0.5]]
    assert bio_scores.vote_counts(mark([], []), [], {}).shape == (0, 3)


def test_an_annotator_of_whom_no_span_is_left_does_not_say_no_answer():
    """Spans without a piece: a has no vote, b one span of two, c says that there is none."""
    row = question("ab \u200b cd", a=[(3, 4)], b=[(0, 2), (3, 4)], c=[])
    pieces = [Pieces([(0, 2), (5, 7)])]
    marked = mark([row], pieces)
    assert [(name, letters(tags)) for name, tags in marked.tags_N[0]] == [("b", "BO"), ("c", "OO")]
    assert bio_scores.vote_counts(marked, pieces, {}).tolist() == [[1, 0, 1], [0, 0, 2]]


# ---- scores ----


def scored(rows, p_KC, weights=None, options=READING) -> dict:
    pieces_N = [pieces_of(row.context) for row in rows]
    starts = np.concatenate([[0], np.cumsum([len(pieces) for pieces in pieces_N])])
    marked = mark(rows, pieces_N)
    found, _ = bio_scores.score(np.array(p_KC, float), starts, rows, pieces_N, marked, weights or {}, options)
    assert tuple(found) == bio_scores.NAMES
    return {name: score.value for name, score in found.items()}


def shares(tags: str, share: float = 0.9) -> list[list[float]]:
    return [[share if tag == other else (1 - share) / 2 for other in TAGS] for tag in tags]


def test_distances_to_the_votes_by_hand():
    """Votes (2/3, 0, 1/3) and O on two pieces, predicted (0.5, 0.3, 0.2) and (0.1, 0.2, 0.7)."""
    rows = [question("ab cd", a=[(0, 2)], b=[(0, 2)], c=[]), question("xy")]
    found = scored(rows, [[0.5, 0.3, 0.2], [0.1, 0.2, 0.7], [0.3, 0.3, 0.4]])
    nats = -(2 / 3 * np.log(0.5) + 1 / 3 * np.log(0.2)) - np.log(0.7)
    entropy = -(2 / 3 * np.log(2 / 3) + 1 / 3 * np.log(1 / 3))
    squares = (1 / 6) ** 2 + 0.3**2 + (0.2 - 1 / 3) ** 2 + 0.1**2 + 0.2**2 + 0.3**2
    assert found["cross_entropy"] == pytest.approx(nats / 2, abs=1e-6)
    assert found["cross_entropy_per_example"] == pytest.approx(nats, abs=1e-6), "of the one passage that is annotated"
    assert found["kl"] == pytest.approx((nats - entropy) / 2, abs=1e-6)
    assert found["brier"] == pytest.approx(squares / 2, abs=1e-6)
    assert found["calibration_error"] == pytest.approx((abs(2 / 3 - 0.5) + abs(1 - 0.7)) / 2, abs=1e-6)
    # Fleiss: votes 2, 0, 1 and 0, 0, 3 agree by 1/3 and 1, by chance 5/9
    assert found["annotator_kappa"] == pytest.approx(((1 / 3 + 1) / 2 - 5 / 9) / (1 - 5 / 9))
    assert (found["n"], found["n_tokens"]) == (1, 2)


def test_a_reader_who_is_right_has_full_marks():
    """All annotators agree and so does he, to the last digit."""
    rows = [question("jacob devlin wrote it", a=[(0, 12), (19, 21)], b=[(0, 12), (19, 21)]), question("no", a=[], b=[])]
    found = scored(rows, shares("BIIIIIOOOB" + "O", 1.0))
    for name in ("exact_match", "f1", "exact_f1", "overlap_f1", "annotator_mean", "annotator_best",
                 "annotator_majority", "annotator_human", "exact_precision", "overlap_recall"):  # fmt: skip
        assert found[name] == 1.0, name
    for name in bio_scores.LOWER_IS_BETTER:
        assert found[name] == pytest.approx(0, abs=1e-12), name


def test_texts_are_compared_with_the_best_annotator_and_the_majority():
    """a and b mark "jacob devlin", c "devlin" alone; said is "devlin": exact with c, wrong for the majority."""
    rows = [question("jacob devlin wrote", a=[(0, 12)], b=[(0, 12)], c=[(6, 12)])]
    found = scored(rows, shares("OOOBIIOOO"))
    assert (found["exact_match"], found["f1"]) == (1.0, 1.0)
    assert (found["exact_precision"], found["exact_recall"], found["exact_f1"]) == (0, 0, 0)
    assert found["overlap_precision"] == 1.0
    assert found["overlap_recall"] == pytest.approx(6 / 12)
    assert (found["annotator_mean"], found["annotator_best"]) == (pytest.approx(1 / 3), 1.0)
    assert found["annotator_majority"] == 0.0
    assert found["annotator_human"] == pytest.approx(1 / 3), "of three pairs a and b agree"


def test_the_texts_of_golds_are_scored_whatever_became_of_their_spans():
    """Of one annotator each: inside a piece, two in one piece, without a piece, without a position."""
    rows = [question("abcd ef", a=[(0, 1)]), question("abcd ef", a=[(0, 1), (1, 2)]), question("\u200b ef", a=[(0, 1)])]
    rows.append(question("abcd ef")._replace(golds=(Gold("a", ("EF ,",)),), untrainable="no position"))
    pieces_N = [pieces_of("abcd ef"), pieces_of("abcd ef"), Pieces([(2, 4)]), pieces_of("abcd ef")]
    starts = np.array([0, 3, 6, 7, 10])
    marked = mark(rows, pieces_N)
    p_KC = np.array(shares("BOO" + "BOO" + "O" + "OOB"))
    found, _ = bio_scores.score(p_KC, starts, rows, pieces_N, marked, {}, READING)
    assert marked.tags_N[2:] == [[], []]
    # said are "ab", "ab", nothing and "ef"; right is the last alone
    assert (found["exact_match"].value, found["n"].value, found["n_tokens"].value) == (0.25, 4, 6)
    assert found["exact_precision"].value == pytest.approx(1 / 4)
    assert found["exact_recall"].value == pytest.approx(1 / 5)


def test_f1_counts_characters_in_passages_without_blanks():
    context = "\u5317\u4eac\u5e02\u9577"
    rows = [question(context, a=[(0, 3)])]
    pieces_N = [Pieces([(i, i + 1) for i in range(4)])]
    marked = mark(rows, pieces_N)
    p_KC = np.array(shares("BIOO"))
    found, _ = bio_scores.score(p_KC, np.array([0, 4]), rows, pieces_N, marked, {}, READING)
    assert (found["exact_match"].value, found["f1"].value) == (0, pytest.approx(2 * 2 / (2 + 3)))


def test_the_majority_is_the_same_in_all_scores():
    """One of two annotators marks it: a tie, so the majority says O, whatever letter comes first; weights decide it."""
    rows = [question("jacob devlin", a=[(0, 5)], b=[]), question("ab", a=[(0, 2)], b=[(0, 2)])]
    silent = scored(rows, shares("OOOOOO" + "B"))
    assert (silent["annotator_majority"], silent["exact_f1"]) == (1.0, 1.0)
    says = scored(rows, shares("BIIOOO" + "B"), {"a": 2.0})
    assert (says["annotator_majority"], says["exact_f1"]) == (1.0, 1.0)
    for found in (scored(rows, shares("BIIOOO" + "B")), scored(rows, shares("OOOOOO" + "B"), {"a": 2.0})):
        assert found["annotator_majority"] < 1
        assert found["exact_f1"] < 1


def test_passages_without_annotations_change_no_score():
    rows = [question("jacob devlin", a=[(0, 5)], b=[(6, 12)]), question("ab", a=[])]
    alone = scored(rows, shares("BIOOOO" + "B", 0.7))
    more = [rows[0], question("wrote it"), rows[1], question("it")]
    assert scored(more, shares("BIOOOO" + "OOBI" + "B" + "O", 0.7)) == alone


def test_the_order_of_annotators_changes_no_score():
    spans = {"a": [(0, 5)], "b": [(0, 12)], "c": []}
    want = scored([question("jacob devlin", **spans)], shares("BIOOOO", 0.6))
    for order in itertools.permutations(spans):
        found = scored([question("jacob devlin", **{name: spans[name] for name in order})], shares("BIOOOO", 0.6))
        assert found == pytest.approx(want, abs=1e-12)


def test_scores_follow_the_decoding():
    """Only the spans that the reading finds are scored; probabilities are scored as they are."""
    rows = [question("jacob devlin", a=[(0, 12)])]
    p_KC = shares("BIIOII", 0.6)
    p_KC[3] = [0.25, 0.35, 0.4]
    viterbi, greedy = scored(rows, p_KC), scored(rows, p_KC, options=BioMrcOptions(decoding="greedy"))
    none = scored(rows, p_KC, options=BioMrcOptions(min_probability=0.9))
    assert viterbi["cross_entropy"] == greedy["cross_entropy"] == none["cross_entropy"]
    assert (viterbi["overlap_recall"], greedy["overlap_recall"]) == (1.0, pytest.approx(5 / 12))
    assert (none["overlap_recall"], none["exact_match"]) == (0, 0)


def test_nothing_annotated_has_no_scores_and_a_reason():
    rows = [question("ab cd")]
    pieces_N = [pieces_of("ab cd")]
    found, _ = bio_scores.score(
        np.array(shares("BO")), np.array([0, 2]), rows, pieces_N, mark(rows, pieces_N), {}, READING
    )
    for name in set(bio_scores.NAMES) - {"n", "n_tokens"}:
        assert found[name].value is None, name
        assert found[name].reason, name
    assert (found["n"].value, found["n_tokens"].value) == (0, 0)


def test_the_loss_of_each_passage():
    """Votes (2/3, 0, 1/3) at logits (ln 4, 0, 0) cost 0.867563; a mistake that is sure stays finite."""
    p_KC = np.array([[4 / 6, 1 / 6, 1 / 6], [0.2, 0.2, 0.6], [0.0, 0.0, 1.0]])
    target_KC = np.array([[2 / 3, 0, 1 / 3], [0, 0, 1], [1, 0, 0]])
    found = bio_scores.row_losses(p_KC, target_KC, np.array([0, 2, 2, 3]))
    assert found[:2] == pytest.approx([0.867563 - np.log(0.6), 0], abs=1e-6)
    assert 700 < found[2] < np.inf


def test_spans_are_those_of_the_entity_metrics():
    """Two roads from tags to spans, one in the library and one in the tasks, on 300 random tag sequences."""
    rng = np.random.default_rng(4)
    labels = ("B", "I", "O")
    for _ in range(300):
        tags = [labels[i] for i in rng.integers(0, 3, 9)]
        theirs = sorted(tuple(one)[1:] for one in entities(tags, "lenient"))
        assert sorted((a, b) for _, a, b in bio_tags.spans(tags)) == theirs


def test_the_usual_metrics_are_known():
    assert set(bio_scores.USUAL) < set(bio_scores.NAMES)


def test_a_reader_that_marks_nothing_is_noted():
    wrong, right = {"exact_match": Score(0.5)}, {"exact_match": Score(1.0)}
    assert bio_scores.constant([[], []], wrong) == {"constant_answer:nothing": 2}
    assert bio_scores.constant([[], [Span(0, 1, 1.0)]], wrong) == bio_scores.constant([[], []], right) == {}
