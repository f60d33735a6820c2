"""Tags of words: the targets of pieces, votes, labels by name, what is refused; scores of a run and of its model."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

import bert
from bert.data.encoded_examples import ExampleSettings
from bert.errors import InputError
from bert.prediction import scores, tagging
from bert.prediction.tagging import TaggingOptions
from bert.tokenizer.backends import load_tokenizer
from configs import tagging as recipe
from tasks import votes
from tasks.files.reports import ReadReport
from tasks.tagging import job as task
from tasks.tagging import tag_scores
from tasks.tagging.job import check_labels, labels_of, with_targets
from tasks.tagging.tag_schemes import TaggedRows, TaggedSentence, TagSettings
from tasks.token_labels import TokenLabels
from tasks.votes import VoteSettings
from tests.bert.prediction.table_model import GOLDEN

TOKENIZER = load_tokenizer(GOLDEN / "tiny_tokcls")
SMALL = TaggingOptions(max_length=16, window_step=6)
BIO = ("O", "B", "I")


def sentence(words, *tags, place="file:1") -> TaggedSentence:
    """Each of the tags, blank between them and "?" for none, are one annotator's."""
    given = tuple((str(i), tuple(None if tag == "?" else tag for tag in one.split())) for i, one in enumerate(tags, 1))
    return TaggedSentence(tuple(words.split(" ")), given, place, place)


def part(*rows) -> TaggedRows:
    return TaggedRows(list(rows), ReadReport("file", len(rows), len(rows)))


def targets(rows, labels=BIO, options=SMALL, all_pieces=False, voting=None):
    """(token, its target) for each token that has one, in the order of the windows."""
    sentences = tagging.windows_of([row.words for row in rows], TOKENIZER, options)
    counts_KC = tag_scores.vote_counts(rows, labels, {})
    target_KC, voted_K = votes.target(counts_KC, voting or VoteSettings(), tag_scores.outside(labels))
    found = with_targets(sentences, target_KC, voted_K, labels, all_pieces)
    weights = found.of_token["target_weights"]
    assert set(weights.tolist()) <= {0.0, 1.0}
    chosen = np.flatnonzero(weights)
    return [(TOKENIZER.vocab[found.token_ids[i]], found.of_token["targets"][i].tolist()) for i in chosen], found


def named(target, labels=BIO):
    """The label of a target that is one alone."""
    assert sorted(target)[-2:] == [0.0, 1.0]
    return labels[int(np.argmax(target))]


# ---- targets ----


def test_the_first_piece_has_the_words_target_or_all_have_where_b_goes_on_as_i():
    """ "kkk" is three pieces, "ab" two; of types each goes on with its own."""
    rows = [sentence("kkk ab the", "B I O")]
    found, _ = targets(rows)
    assert [(token, named(target)) for token, target in found] == [("k", "B"), ("a", "I"), ("the", "O")]
    found, _ = targets(rows, all_pieces=True)
    assert [(token, named(target)) for token, target in found] == [
        ("k", "B"), ("##k", "I"), ("##k", "I"), ("a", "I"), ("##b", "I"), ("the", "O"),
    ]  # fmt: skip
    typed = ("O", "B-LOC", "B-PER", "I-PER")
    found, _ = targets([sentence("ab kkk the", "B-LOC B-PER O")], typed, all_pieces=True)
    assert [named(target, typed) for _, target in found] == ["B-LOC", "B-LOC", "B-PER", "I-PER", "I-PER", "O"]
    found, _ = targets([sentence("ab the", "NN DT")], ("DT", "NN"), all_pieces=True)
    assert [named(target, ("DT", "NN")) for _, target in found] == ["NN", "NN", "DT"]


def test_votes_are_the_target():
    """Two of three say B: 2/3; who gave none does not count; a word without a vote has no weight."""
    rows = [sentence("kkk the cat", "B O ?", "B ? ?", "I O ?")]
    found, _ = targets(rows)
    assert [token for token, _ in found] == ["k", "the"]
    np.testing.assert_allclose([target for _, target in found], [[0, 2 / 3, 1 / 3], [1, 0, 0]], atol=1e-6)
    found, _ = targets(rows, all_pieces=True)
    np.testing.assert_allclose([target for _, target in found[1:3]], [[0, 0, 1]] * 2, atol=1e-6)
    found, _ = targets(rows, voting=VoteSettings(votes="majority"))
    assert [named(target) for _, target in found] == ["B", "O"]
    swapped = rows[0]._replace(annotations=rows[0].annotations[::-1])
    assert targets([swapped])[0] == targets(rows)[0]


def test_the_loss_of_votes_by_hand():
    """Scores ln 4, 0, 0 for B, I, O and votes 2/3, 0, 1/3: 0.867563; the majority vote would give 0.405465."""
    for voting, want in ((VoteSettings(), 0.867563), (VoteSettings(votes="majority"), 0.405465)):
        found, encoded = targets([sentence("kkk", "B", "B", "O")], ("B", "I", "O"), voting=voting)
        assert len(found) == 1
        batch = {name: jnp.asarray(values)[None] for name, values in encoded.of_token.items()}
        batch["example_share"] = jnp.asarray(encoded.of_example["example_share"])[None]
        logits = jnp.tile(jnp.array([np.log(4), 0.0, 0.0]), (1, len(encoded.token_ids), 1))
        loss = TokenLabels(3)
        total, count = loss.sums({"token_logits": logits}, batch)["loss"], loss.counts(batch)["loss"]
        assert float(total / count) == pytest.approx(want, abs=1e-6)


def test_a_word_of_nothing_visible_moves_no_label():
    """Its own target stands on its [UNK]; that of "york" is where it was."""
    found, _ = targets([TaggedSentence(("new", "\u200b", "york"), (("1", ("B", "O", "I")),), "file:1", "1")])
    assert [(token, named(target)) for token, target in found] == [("new", "B"), ("[UNK]", "O"), ("york", "I")]


@pytest.mark.parametrize("all_pieces", [False, True])
def test_every_word_of_a_long_sentence_counts_once(all_pieces):
    """300 words in windows of 128 tokens and of 16; the windows' shares of the sentence sum to 1."""
    rng = np.random.default_rng(0)
    words, tags = rng.choice(["the", "cat", "kkk", "ab"], 300), rng.choice(BIO, 300)
    row = sentence(" ".join(words), " ".join(tags))
    pieces = TOKENIZER.encode_ids(words.tolist())
    wanted = sorted(
        (TOKENIZER.vocab[i], "I" if place and tag == "B" else str(tag))
        for ids, tag in zip(pieces, tags, strict=True)
        for place, i in enumerate(ids if all_pieces else ids[:1])
    )
    for options in (TaggingOptions(), SMALL):
        found, encoded = targets([row, sentence("the", "O")], options=options, all_pieces=all_pieces)
        assert sorted((token, named(target)) for token, target in found) == sorted([*wanted, ("the", "O")])
        assert len(encoded) > 2
        assert encoded.of_example["example_share"].sum() == pytest.approx(2)


# ---- labels ----


def test_labels_are_o_and_then_types_by_name_with_b_before_i():
    rows = [sentence("a b c d", "I-PER B-PER O B-LOC"), sentence("a b", "? I-LOC", "B-X-Y O")]
    assert labels_of(rows) == ("O", "B-LOC", "I-LOC", "B-PER", "I-PER", "B-X-Y", "I-X-Y")
    assert labels_of(rows[::-1]) == labels_of(rows)
    assert labels_of([sentence("a b c", "I B O")]) == ("O", "B", "I")
    assert labels_of([sentence("a b c", "NN VB DT")]) == ("DT", "NN", "VB")


def test_an_unknown_tag_is_refused_by_place_and_word():
    rows = [sentence("a b", "O O"), sentence("in paris", "O ?", "O B-CITY", place="held.txt:7")]
    check_labels(rows, ("O", "B-CITY"))
    with pytest.raises(InputError, match=r"held\.txt:7: .*'B-CITY'; .*B-LOC"):
        check_labels(rows, ("O", "B-LOC"))


def test_targets_follow_the_order_of_a_models_labels():
    row = sentence("the kkk", "O B", "O I")
    made = job(part(row)).with_labels(("I", "O", "B"))
    assert made.labels == ("I", "O", "B")
    (batch,) = [made.batches(TOKENIZER, ExampleSettings(1, 16))(0)]
    assert batch["targets"][0, 1:3].tolist() == [[0.0, 1.0, 0.0], [0.5, 0.0, 0.5]]
    assert batch["target_weights"][0].tolist()[:6] == [0, 1, 1, 0, 0, 0]


# ---- the job ----


def job(train, held=None, labels=BIO, voting=None, options=SMALL) -> task.Job:
    names = ("f1", "cross_entropy", "accuracy", "n")
    choice = task.Choice("f1") if held else None
    loss = TokenLabels(len(labels))
    return task.Job(
        train, held, options, TagSettings(), voting or VoteSettings(), names, loss, labels=labels, choice=choice
    )


def test_scores_of_a_run_are_those_of_the_model_that_it_saves():
    """The evaluator on parameters, and the tags that the model predicts, over several windows; weights count."""
    rng = np.random.default_rng(0)
    rows = [
        sentence(" ".join(rng.choice(["the", "cat", "kkk"], n)), *(" ".join(rng.choice(BIO, n)) for _ in range(3)))
        for n in (1, 5, 40, 12)
    ]
    model = bert.load(GOLDEN / "tiny_tokcls")
    by_weight = {}
    for weights in ({}, {"1": 5.0}):
        made = job(part(*rows), part(*rows), model.labels, VoteSettings(weights))
        found = made.evaluator(TOKENIZER, model.config, ExampleSettings(4, 16), scores.HERE)(model.params)
        model.extra = made.extra(found)
        told = model.predict([row.words for row in rows], details=True)
        p_KC = np.array([[share[label] for label in model.labels] for one in told for share in one["shares"]])
        wanted = tag_scores.score(p_KC, [one["tags"] for one in told], rows, model.labels, weights)
        for name, value in found.items():
            assert value == pytest.approx(wanted[name].value, abs=1e-5)
        assert found["n"] == 58
        by_weight[bool(weights)] = found["cross_entropy"]
    assert by_weight[True] != pytest.approx(by_weight[False], abs=1e-3)


def test_other_data_has_another_fingerprint():
    rows = [sentence("a b", "O B"), sentence("a b", "O O"), sentence("a c", "O B"), sentence("a b", "O B", "O B")]
    made = [job(part(row)).fingerprint for row in (*rows, rows[0])]
    assert len(set(made)) == 4
    assert job(part(rows[0]), part(rows[0])).fingerprint not in made


CROWD = "the\tO\tO\nnew\tB-LOC\tB-LOC\nyork\tI-LOC\t?\n\njohn\tB-PER\tO\nkkk\tO\tO\n\nin\t?\tO\nparis\t?\tB-LOC\n"


def config_of(tmp_path, text=CROWD, **changes):
    (tmp_path / "train.txt").write_text(text)
    config = recipe.get_config()
    config.data = str(tmp_path / "train.txt")
    config.validation_share = 0.0
    config.update({"max_length": 16, "window_step": 6, **changes})
    return config


def test_crowd_columns_are_votes(tmp_path):
    made = task.read(config_of(tmp_path, annotator_weights="2=3", labelled_pieces="all"))
    assert made.labels == ("O", "B-LOC", "I-LOC", "B-PER", "I-PER")
    assert made.names == ("cross_entropy", "kl", "f1", "annotator_mean", "annotator_human", "accuracy", "n")
    batches = made.batches(TOKENIZER, ExampleSettings(3, 16, packed=False))
    batch = batches(0)
    johns = np.argwhere(batch["token_ids"] == TOKENIZER.vocab.index("john"))[0]
    assert batch["targets"][*johns].tolist() == [0.75, 0.0, 0.0, 0.25, 0.0]
    assert batch["target_weights"].sum() == 7 + 2  # the two other pieces of kkk
    changed = {"annotator_weights": "2=3", "votes": "majority", "labelled_pieces": "first"}
    batch = task.read(config_of(tmp_path, **changed)).batches(TOKENIZER, ExampleSettings(3, 16, packed=False))(0)
    assert batch["targets"][*np.argwhere(batch["token_ids"] == TOKENIZER.vocab.index("john"))[0]].tolist() == [
        1,
        0,
        0,
        0,
        0,
    ]
    assert batch["target_weights"].sum() == 7
    assert made.extra({})["files"]["tags"] == "-1"
    assert made.choice is None


def test_words_of_chinese_are_entities_though_each_character_is_in_one(tmp_path):
    made = task.read(config_of(tmp_path, "\u4e2d B\n\u534e M\n\u4eba E\n\n\u5929 S\n\n" * 2, validation_share=0.5))
    assert made.labels == ("O", "B", "I")
    assert made.names[0] == "f1"
    assert {made.train.rows[0].annotations[0][1], made.validation.rows[0].annotations[0][1]} == {
        ("B", "I", "I"),
        ("B",),
    }


def test_tags_of_any_other_kind(tmp_path):
    text = "the DT\n\nkkk NN\n\nsat VB\n"
    made = task.read(config_of(tmp_path, text, scheme="plain", validation_share=0.5))
    assert made.labels == ("DT", "NN", "VB")  # also the one in the part that is split off
    assert made.names == ("accuracy", "cross_entropy", "n")
    assert made.choice == task.Choice("accuracy", True, 0, "cross_entropy")
    with pytest.raises(InputError, match=r"'DT' is no tag; .*scheme to plain"):
        task.read(config_of(tmp_path, text))


def test_a_tag_of_the_validation_file_that_training_lacks_is_refused(tmp_path):
    (tmp_path / "held.txt").write_text("in O\nparis B-CITY\n")
    with pytest.raises(InputError, match=r"held\.txt:1: .*'paris' .*'B-CITY'"):
        task.read(config_of(tmp_path, validation=str(tmp_path / "held.txt")))
    (tmp_path / "held.txt").write_text("in O\nparis B-LOC\n")
    made = task.read(config_of(tmp_path, validation=str(tmp_path / "held.txt"), metric="kl"))
    assert made.choice == task.Choice("kl", False, 0, "cross_entropy")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labelled_pieces": "last"}, r"config\.labelled_pieces is 'last'; it must be one of first, all"),
        ({"decoding": "crf"}, "decoding is 'crf'; it must be one of viterbi, greedy"),
        ({"window_step": 15}, "window_step is 15; it must be from 1 to 14, which max_length 16 leaves"),
        ({"votes": "hard"}, r"config\.votes is 'hard'; it must be one of soft, majority"),
        ({"annotator_weights": "9=2"}, r"config\.annotator_weights names '9'; the annotators are 1, 2"),
        ({"metrics": "f1,f1:CITY"}, "metrics is 'f1:CITY'; .* f1, precision"),
        (
            {"metric": "kl", "metrics": "f1,n"},
            r"config\.metric is 'kl'; .* f1, cross_entropy",
        ),
        ({"loss_per": "word"}, r"config\.loss_per is 'word'; it must be one of token, example"),
        ({"data": ""}, r"config\.data is missing; name the file with the sentences"),
    ],
)
def test_settings_without_sense_are_refused(tmp_path, changes, message):
    with pytest.raises(InputError, match=message):
        task.read(config_of(tmp_path, **changes))


def test_settings_reach_the_job(tmp_path):
    made = task.read(config_of(tmp_path, loss_per="example", decoding="greedy", metrics="kl, n", votes="majority"))
    assert made.options == dataclasses.replace(SMALL, decoding="greedy")
    assert (made.loss, made.names) == (TokenLabels(5, "example"), ("kl", "n"))
    assert made.voting.votes == "majority"
    assert tagging.options_of(made.extra({}), bert.load(GOLDEN / "tiny_tokcls").config) == made.options
