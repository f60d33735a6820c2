"""Entities and their scores equal seqeval's where these mean something, and say so where they do not."""

import json

import pytest

from bert.errors import InputError
from tasks.metrics.entity_metrics import RULES, Entity, check_taggings, compare, entities, entity_scores, ratios

MEASURES = ("precision", "recall", "f1")


def f1(gold, predicted, rule="lenient"):
    return entity_scores([gold.split()], [predicted.split()], rule)["f1"].value


@pytest.fixture(scope="module")
def golden(shared):
    return json.loads((shared / "golden" / "task_metrics.json").read_text())["sequence_labelling"]


def test_golden_entities(golden):
    for case in golden:
        for side in ("gold", "pred"):
            found = [[[*e[:2], e.end - 1] for e in entities(tags)] for tags in case[side]]
            assert found == case[f"{side}_entities"], case["name"]


def test_golden_scores(golden):
    assert {rule for case in golden for rule in case if rule in ("default", "strict_IOB2")} == {
        "default",
        "strict_IOB2",
    }
    for case in golden:
        for rule, name in (("lenient", "default"), ("strict", "strict_IOB2")):
            if name not in case:
                continue
            scores = entity_scores(case["gold"], case["pred"], rule)
            for measure in MEASURES:
                # seqeval's 0 stands for 0/0, too
                assert (scores[measure].value or 0) == pytest.approx(case[name][measure], abs=1e-12), case["name"]
            if "token_accuracy" in case[name]:
                assert scores["token_accuracy"].value == pytest.approx(case[name]["token_accuracy"])
            assert scores["n"].value == len(case["gold"])


def test_rules_by_hand():
    gold, said = "O B-X I-X O B-X", "O I-X I-X O B-X"
    assert (f1(gold, said), f1(gold, said, "strict")) == (1.0, pytest.approx(2 / 3))
    gold, said = "B-PER I-PER O B-LOC", "B-PER I-LOC O B-LOC"
    assert (f1(gold, said), f1(gold, said, "strict")) == (pytest.approx(0.4), 0.5)
    for rule in RULES:
        scores = entity_scores([gold.split()], [said.split()], rule)
        assert all(RULES[rule] in (scores[name].reason or "") for name in (*MEASURES, "macro_f1"))
        assert rule in RULES[rule]


def test_strict_entities_end_before_an_inside_tag_of_another_type():
    # values of seqeval 1.2.2, Tokens(tags, IOB2).entities
    assert entities(["B-PER", "I-LOC", "I-PER", "B-PER"], "strict") == [("PER", 0, 1), ("PER", 3, 4)]
    assert entities(["I-PER", "B-PER", "I-PER", "I-LOC", "O"], "strict") == [("PER", 1, 3)]
    assert entities(["B-PER", "O", "I-PER"], "strict") == [("PER", 0, 1)]


def test_plain_tags_are_one_type():
    gold, said = "O B I O B I I", "O B I I B I O"
    typed = [tags.replace("B", "B-X").replace("I", "I-X") for tags in (gold, said)]
    assert f1(gold, said) == f1(*typed) == 0.0
    assert f1(gold, "O B I O B I O") == 0.5
    assert entities(["B", "I"]) == [Entity("_", 0, 2)]
    assert entities(["B-a-b", "I-a-b", "I-a"]) == [("a-b", 0, 2), ("a", 2, 3)]  # the type begins at the first dash


def test_types_apart_and_their_mean():
    scores = entity_scores([["B-A", "O", "B-B", "B-B"]], [["B-A", "B-C", "B-B", "O"]])
    values = {name: score.value for name, score in scores.items()}
    assert values == pytest.approx(
        {
            **{"precision": 2 / 3, "recall": 2 / 3, "f1": 2 / 3, "token_accuracy": 0.5, "n": 1.0},
            **{"precision:A": 1.0, "recall:A": 1.0, "f1:A": 1.0},
            **{"precision:B": 1.0, "recall:B": 0.5, "f1:B": 2 / 3},
            **{"precision:C": 0.0, "recall:C": None, "f1:C": 0.0},
            "macro_f1": (1 + 2 / 3 + 0) / 3,
        }
    )
    assert scores["recall:C"].reason == "no entity of C"


def test_undefined_has_a_reason():
    empty = entity_scores([["O", "O"]], [["O", "O"]])
    assert {empty[name].value for name in (*MEASURES, "macro_f1")} == {None}
    assert empty["f1"].reason == "no entity of any type, and none was predicted"
    assert empty["token_accuracy"].value == 1
    missed = entity_scores([["B", "O"]], [["O", "O"]])
    assert [missed[name].value for name in MEASURES] == [None, 0, 0]
    assert missed["precision"].reason == "no entity of any type was predicted"
    assert entity_scores([], [])["token_accuracy"] == (None, "no words")
    assert ratios(1, 2, 4, "x")["f1"].value == pytest.approx(1 / 3)


def test_sentences_are_not_joined():
    assert entity_scores([["B-A"], ["I-A"]], [["B-A"], ["I-A"]])["f1"].value == 1
    assert entity_scores([["B-A"], ["I-A"]], [["B-A"], ["O"]])["f1"].value == pytest.approx(2 / 3)


@pytest.mark.parametrize("tag", ["B_PER", "b-per", "S-PER", "O-PER", "B-", "-PER", "", "PER", "o", None, 3])
def test_other_tags_are_refused(tag):
    with pytest.raises(InputError, match=r"word 2: tag .*I-TYPE") as caught:
        entity_scores([["O"], ["O", tag]], [["O"], ["O", "O"]])
    assert str(caught.value).startswith("sentence 2, word 2: ")
    assert repr(tag) in str(caught.value)


def test_cut_tails_are_refused():
    with pytest.raises(InputError, match="sentence 2 has 3 words and 2 tags"):
        entity_scores([["O"], ["O", "O", "B"]], [["O"], ["O", "O"]])
    with pytest.raises(InputError, match="1 predicted sentences for 2"):
        entity_scores([["O"], ["O"]], [["O"]])
    with pytest.raises(InputError, match=r"rule .*'loose'.* lenient, strict"):
        entities(["O"], "loose")
    with pytest.raises(InputError, match=r"^rule is 'loose'"):
        entity_scores([], [], "loose")


def test_taggings_with_holes():
    # a hole ends the entity for both sides; what lies behind it is compared again
    first, second = ["B", "I", "I", "I", "O"], ["B", "I", None, "I", "B"]
    assert compare(first, second) == (2, 2, 3, 1)
    assert compare(second, first) == (2, 3, 2, 1)
    assert compare(["B-A", "I-A"], ["B-A", "I-B"]) == (0, 1, 2, 1)
    assert compare(["B", None], [None, "B"]) == (0, 0, 0, 0)
    assert compare([], []) == (0, 0, 0, 0)


def test_taggings_that_do_not_fit_are_refused():
    sentence = {"anna": ["O", "B"], "ben": ["O", None]}
    check_taggings([sentence], [["O", "B"]])
    with pytest.raises(InputError, match=r"sentence 1 .*1 .*but 2 of .*anna"):
        check_taggings([sentence], [["O"]])
    with pytest.raises(InputError, match=r"sentence 2 .*2 .*but 1 of .*ben"):
        check_taggings([sentence, sentence | {"ben": ["O"]}], None)
    with pytest.raises(InputError, match="word 2, the prediction: tag None"):
        check_taggings([sentence], [["O", None]])
    with pytest.raises(InputError, match="annotator predicted: tag 'x'"):
        check_taggings([{"predicted": ["x"]}], [["O"]])
    with pytest.raises(InputError, match="2 predicted sentences for 1"):
        check_taggings([sentence], [["O"], ["O"]])
