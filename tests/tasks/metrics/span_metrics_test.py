"""Answers are scored as the official scripts of SQuAD and MultiSpanQA score them, and a threshold keeps its promise."""

import json
import math

import numpy as np
import pytest

from bert.errors import InputError
from tasks.metrics.span_metrics import (
    best_threshold,
    by_characters,
    exact_match,
    multi_span_scores,
    normalize_answer,
    question_scores,
    squad_scores,
    token_f1,
    without_blanks,
)

# case: null odds -3 and +1 with the right span, +2 and -1 without an answer
FOUR = {"a": ["x"], "b": ["y"], "c": [], "d": []}
FOUR_SAID = {"a": "x", "b": "y", "c": "z", "d": "z"}
FOUR_ODDS = {"a": -3.0, "b": 1.0, "c": 2.0, "d": -1.0}


@pytest.fixture(scope="module")
def golden(shared):
    return json.loads((shared / "golden" / "squad_metrics.json").read_text())


def test_golden_texts(golden):
    for case in golden["cases"]:
        said, answers = case["prediction"], case["answers"]
        assert normalize_answer(said) == case["normalized_prediction"]
        assert [normalize_answer(answer) for answer in answers] == case["normalized_answers"]
        assert exact_match(said, answers) == case["exact"], case
        assert token_f1(said, answers) == pytest.approx(case["f1_v2"], abs=1e-12), case
        assert token_f1(said, answers, "1.1") == pytest.approx(case["f1_v1"], abs=1e-12), case


def test_golden_mean(golden):
    answers = {str(number): case["answers"] for number, case in enumerate(golden["cases"])}
    said = {str(number): case["prediction"] for number, case in enumerate(golden["cases"])}
    wanted = golden["aggregate"]
    for version, f1 in (("2.0", wanted["f1_v2"]), ("1.1", wanted["f1_v1"])):
        found = squad_scores(answers, said, version=version)
        assert (found["exact"], found["f1"]) == (pytest.approx(wanted["exact"]), pytest.approx(f1))


def test_golden_questions_without_answer(golden):
    case = golden["squad_v2_set"]
    given = case["answers"], case["predictions"]
    # The official script takes 0 for every question where it is given no probabilities.
    assert squad_scores(*given, dict.fromkeys(given[0], 0.0), case["threshold"]) == pytest.approx(case["result"])
    wanted = case["result_with_probs_threshold_0.5"]
    assert squad_scores(*given, case["no_answer_probs"], 0.5) == pytest.approx(wanted)
    plain = squad_scores(*given)
    assert [plain[f"best_{name}"] for name in ("exact", "exact_thresh", "f1", "f1_thresh")] == [None] * 4
    assert {name: plain[name] for name in wanted if "best" not in name} == pytest.approx(
        {name: value for name, value in case["result"].items() if "best" not in name}
    )


def test_best_of_several_answers():
    assert exact_match("in the Paris area", ["Paris", "the Paris area"]) == 0
    assert token_f1("in the Paris area", ["Paris", "the Paris area"]) == pytest.approx(0.8)  # the mean would be 0.65
    assert exact_match("the Eiffel Tower.", ["Eiffel tower"]) == 1
    assert token_f1("the Eiffel Tower.", ["Eiffel tower"]) == 1
    assert (exact_match("", []), exact_match("x", []), token_f1("", [])) == (1, 0, 1)


def test_versions_differ_on_answers_without_tokens():
    # A gold answer of an article alone does not make "" right in 2.0, beside another answer.
    said, answers = {"q": ""}, {"q": ["Paris", "the"]}
    assert squad_scores(answers, said, version="2.0")["exact"] == 0
    assert squad_scores(answers, said, version="1.1")["exact"] == 100
    assert squad_scores(answers, said, version="1.1")["f1"] == 0


def test_a_question_without_a_prediction_is_wrong(caplog):
    found = squad_scores({"a": ["x"], "b": [], "c": ["the"]}, {"a": "x"})
    assert (found["exact"], found["total"], found["NoAns_exact"]) == (pytest.approx(100 / 3), 3, 0)
    assert "2 of 3 questions have no prediction" in caplog.text
    assert squad_scores({"a": ["x"]}, {}, version="1.1")["f1"] == 0


def test_a_threshold_scores_as_the_predictions_that_it_makes():
    """Of golds without tokens nothing is left, so that "" is right, by whatever way it is said."""
    answers, said, odds = (
        {"a": ["the"], "b": ["", "."], "c": ["x", ""]},
        dict.fromkeys("abc", "y"),
        dict.fromkeys("abc", 1),
    )
    silent = squad_scores(answers, dict.fromkeys("abc", ""))
    assert silent["exact"] == pytest.approx(200 / 3)
    assert squad_scores(answers, said, odds, 0.0)["exact"] == silent["exact"]
    assert best_threshold(answers, said, odds, "exact") == (0.0, silent["exact"])
    assert [question_scores("", golds) for golds in answers.values()] == [(1, 1), (1, 1), (0, 0)]


CHINESE = "\u5317\u4eac\u662f\u4e2d\u56fd\u7684\u9996\u90fd"  # Beijing is the capital of China


@pytest.mark.parametrize(
    ("passage", "has_none"),
    [
        (CHINESE, True),
        ("\u6771\u4eac\u306f\u30c8\u30e8\u30bf NBA \u306e city", True),  # Han, hiragana, katakana, two words
        ("\u0e01\u0e23\u0e38\u0e07\u0e40\u0e17\u0e1e", True),  # Thai
        ("\u0ea7\u0ebd\u0e87 \u1797\u17d2\u1793\u17c6", True),  # Lao, Khmer
        ("\u101b\u1014\u103a\u1000\u102f\u1014\u103a", True),  # Myanmar
        ("\uff76\uff80\uff76\uff85", True),  # half-width katakana
        ("\U00020bb7\u91ce\u5bb6", True),  # a character beyond the basic plane
        ("Tokyo (\u6771\u4eac) is a city in Japan", False),
        ("\uc11c\uc6b8\uc740 \ud55c\uad6d\uc758 \uc218\ub3c4", False),  # Korean has blanks
        ("\u0926\u093f\u0932\u094d\u0932\u0940 \u0645\u0635\u0631 \u041c\u043e\u0441\u043a\u0432\u0430", False),
        ("caf\u00e9 \N{HUGGING FACE} \u201cx\u201d \uff21\uff22 1\u2013\u20092", False),
        ("", False),
    ],
)
def test_which_languages_have_no_blanks(passage, has_none):
    assert without_blanks(passage) == has_none
    assert by_characters({"a": passage, "b": "in Paris"}) == ({"a"} if has_none else set())


@pytest.mark.parametrize(
    ("said", "gold", "f1"),
    [
        ("\u5317\u4eac", "\u5317\u4eac\u5e02", 2 * 2 / (2 + 3)),
        ("\u5317 \u4eac\u3002", "\u300c\u5317\u4eac\u300d", 1.0),  # blanks and punctuation of any script
        ("NBA\u7bee\u7403", "NBA", 2 * 1 / (3 + 1)),  # a word is a token
        ("1990\u5e74", "1990 \u5e74 5", 2 * 2 / (2 + 3)),
        ("\u0e01\u0e34\u0e19", "\u0e01\u0e34", 2 * 1 / (2 + 1)),  # marks stay with their letter: two tokens and one
        ("\u0e01\u0e34", "\u0e01", 0.0),
        ("\u304b\u3099", "\u304b", 0.0),  # a letter and its combining mark are another letter
        ("the Cat", "a cat.", 1.0),
    ],
)
def test_characters_are_tokens_where_there_are_no_blanks(said, gold, f1):
    assert token_f1(said, [gold], characters=True) == pytest.approx(f1)
    assert squad_scores({"q": [gold]}, {"q": said}, characters={"q"})["f1"] == pytest.approx(100 * f1)
    assert squad_scores({"q": [gold]}, {"q": said}, characters={"p"})["f1"] == 100 * token_f1(said, [gold])
    assert best_threshold({"q": [gold]}, {"q": said}, {"q": -1}, characters={"q"})[1] == pytest.approx(100 * f1)


def test_threshold_case():
    at_zero = squad_scores(FOUR, FOUR_SAID, FOUR_ODDS, 0.0)
    assert (at_zero["exact"], at_zero["HasAns_exact"], at_zero["NoAns_exact"]) == (50, 50, 50)
    assert (at_zero["best_exact"], at_zero["best_exact_thresh"]) == (75, -3)
    assert best_threshold(FOUR, FOUR_SAID, FOUR_ODDS, "exact") == (-2.0, 75.0)  # midway between -3 and -1
    assert squad_scores(FOUR, FOUR_SAID, FOUR_ODDS, 1.0)["exact"] == 75  # odds equal to it are not above it
    assert squad_scores(FOUR, FOUR_SAID, FOUR_ODDS, 0.9)["exact"] == 50
    assert squad_scores(FOUR, FOUR_SAID, FOUR_ODDS, 1.0)["HasAns_exact"] == 100


def test_a_part_without_questions_is_undefined():
    answered = squad_scores({"a": ["x"]}, FOUR_SAID)
    assert (answered["NoAns_exact"], answered["NoAns_f1"], answered["NoAns_total"]) == (None, None, 0)
    assert (answered["HasAns_exact"], answered["total"]) == (100, 1)
    assert squad_scores({}, {}, {}, 0.0)["exact"] is None
    assert squad_scores({}, {}, {}, 0.0)["best_f1"] is None


def test_best_threshold_is_reached_and_not_beaten():
    rng = np.random.default_rng(3)
    texts = ["", "red", "red sky", "blue sky", "the"]
    for _ in range(100):
        ids = [str(number) for number in range(rng.integers(1, 9))]
        answers = {id: list(rng.choice(texts[1:4], rng.integers(0, 3))) for id in ids}
        said = {id: str(rng.choice(texts)) for id in ids}
        # many equal ones, and the infinities of questions without a valid span
        odds = {id: float(rng.choice([-1.0, 0.0, 0.5, rng.normal(), math.inf, -math.inf])) for id in ids}
        for measure in ("exact", "f1"):
            threshold, best = best_threshold(answers, said, odds, measure)
            assert math.isfinite(threshold)
            assert squad_scores(answers, said, odds, threshold)[measure] == pytest.approx(best)
            for other in (-9.0, 9.0, *(value for value in odds.values() if math.isfinite(value))):
                assert squad_scores(answers, said, odds, other)[measure] <= best + 1e-9


def test_best_threshold_of_equal_or_neighbouring_odds():
    # Equal odds stand or fall together; the official walk promises 100 here, which no threshold gives.
    answers, said = {"a": ["x"], "b": []}, {"a": "x", "b": "z"}
    equal = {"a": 0.5, "b": 0.5}
    assert squad_scores(answers, said, equal, 0.5)["best_exact"] == 100
    assert best_threshold(answers, said, equal)[1] == 50
    for low in (1.0, 1.0 + 2**-52, -1e17, 5e-324, 1e300):
        near = {"a": low, "b": float(np.nextafter(low, np.inf))}
        threshold, best = best_threshold(answers, said, near)
        assert (threshold, best) == (low, 100)
    for odds in (-1e17, 3.0):  # below all of them everything is ""
        threshold, best = best_threshold({"b": []}, said, {"b": odds})
        assert (threshold < odds, best) == (True, 100)


def test_several_spans_by_hand():
    golds, said = [["the Alps", "Rhone river"], []], [["Alps.", "river"], []]
    # exact: 1 of 2 and the empty one; overlap: "river" is whole in a gold, and 5 of 11 characters of "rhone river"
    assert multi_span_scores(golds, said) == pytest.approx(
        {
            "exact_precision": 200 / 3,
            "exact_recall": 200 / 3,
            "exact_f1": 200 / 3,
            "overlap_precision": 100,
            "overlap_recall": 100 * (1 + 5 / 11 + 1) / 3,
            "overlap_f1": 90.0,
        }
    )


def test_several_spans_at_the_edges():
    names = [f"{kind}_{part}" for kind in ("exact", "overlap") for part in ("precision", "recall", "f1")]

    def scores(golds, said):
        return [multi_span_scores(golds, said)[name] for name in names]

    assert scores([], []) == [None] * 6
    assert scores([[]], [["x"]]) == [0] * 6
    assert scores([["x"]], [[]]) == [0] * 6
    assert scores([[]], [[]]) == [100] * 6
    assert scores([[]], [[""]]) == [0, 0, 0, 100, 100, 100]  # official: a wrong text, and "no answer"
    assert scores([["x", "The x!"]], [["x"]]) == [100] * 6  # equal in normal form
    # one prediction, two golds: the sides are counted apart
    assert scores([["x", "y"]], [["x"]]) == pytest.approx([100, 50, 200 / 3, 100, 50, 200 / 3])
    # In texts of 200 letters, the official matcher does not look for the frequent ones.
    assert scores([["xy " + "ab" * 150]], [["ab" * 150]]) == [0] * 6
    assert scores([["xy " + "ab" * 90]], [["ab" * 90]])[3:5] == pytest.approx([100, 100 * 180 / 183])


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: squad_scores({"a": ["x"]}, {}, {"a": 0.5}), "question 'a' has no prediction; .* \"\" for no answer"),
        (lambda: squad_scores({"a": ["x"]}, {"a": 3}), "question 'a' has the prediction 3, which is no text"),
        (lambda: squad_scores({"a": "xyz"}, {"a": "x"}), "answers 'xyz' are one text; give a list"),
        (lambda: squad_scores({"a": ["x"]}, {"a": "x"}, {}), "'a' has the null odds None; give a number"),
        (lambda: squad_scores({"a": ["x"]}, {"a": "x"}, {"a": math.nan}), "'a' has the null odds nan"),
        (lambda: squad_scores({"a": ["x"]}, {"a": "x"}, threshold=0.5), "threshold 0.5 needs the null odds"),
        (lambda: squad_scores({}, {}, version="2"), "version '2' of the rules must be one of 1.1, 2.0"),
        (lambda: token_f1("x", ["x"], "1"), "version '1' of the rules"),
        (lambda: best_threshold({}, {}, {}), "no questions to choose a threshold by"),
        (lambda: best_threshold(FOUR, FOUR_SAID, FOUR_ODDS, "em"), "measure 'em' must be one of f1, exact"),
        (lambda: multi_span_scores([["x"]], []), "0 predictions for 1 questions; give one for each"),
        (lambda: multi_span_scores([["x"]], ["x"]), "spans 'x' are one text; give a list"),
    ],
)
def test_refusals(call, told):
    with pytest.raises(InputError, match=told) as caught:
        call()
    assert "\n" not in str(caught.value)
