"""What is noted, and said, of a model that gives one answer to everything."""

import re

from bert import metric_names
from configs import bio_mrc, squad, table, tagging
from tasks.metrics import constant_predictions


def test_only_the_same_answer_everywhere_is_noted():
    assert constant_predictions.only(["O", "O"]) == "O"
    assert (
        constant_predictions.only(["O", "B"])
        is constant_predictions.only(["O"])
        is constant_predictions.only([])
        is None
    )
    assert constant_predictions.noted(None, 3) == {}
    (name,) = constant_predictions.noted("O", 3)
    assert metric_names.is_note(name)
    assert not metric_names.is_note("accuracy")


def test_the_sentence_names_the_answer_and_how_many_there_are():
    sentence = constant_predictions.sentence({"accuracy": 0.5} | constant_predictions.noted("a:b", 1234), "words")
    assert re.search(r" a:b .*1,234 words", sentence)
    assert not constant_predictions.sentence({"accuracy": 0.5}, "words")
    assert constant_predictions.sentence({"constant_answer": 1.0}, "words")  # of a log that was written before


def test_the_ways_out_are_settings_of_every_task():
    names = re.findall(r"--config\.([\w.]+\w)", constant_predictions.ADVICE)
    assert len(names) >= 3
    for configs in (bio_mrc, squad, table, tagging):
        config = configs.get_config()
        for name in names:
            section, _, field = name.rpartition(".")
            assert field in (config[section] if section else config), name
