"""Held-out blanks: which words are drawn, that no model reads them, the tables, and the whole of it on small models."""

import json

import numpy as np
import pytest

import bert
from bench import blanks
from bert.errors import InputError
from bert.store.reader import Store
from bert.tokenizer.wordpiece import WordPiece
from tests.bert.builders import SPECIAL, WORDS, write_store

VOCABULARY = [*SPECIAL, ".", "##ing", "1992", *WORDS[:12]]  # ids 8 to 19 are words of letters
FIRST_WORD, PIECE = 8, 6


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """Documents of words, points, numbers, and pieces that continue a word; the held-out part is like the text."""
    rng = np.random.default_rng(0)
    sentence = lambda: rng.integers(5, len(VOCABULARY), rng.integers(4, 20)).tolist()  # noqa: E731
    documents = [[[FIRST_WORD, *sentence()] for _ in range(9)] for _ in range(30)]
    folder = tmp_path_factory.mktemp("prepared")
    write_store(folder, WordPiece.from_vocab(VOCABULARY), {"train": documents[:20], "validation": documents[20:]})
    return folder


@pytest.fixture(scope="module")
def held_out(prepared):
    return Store.open(prepared, "validation")


def test_blanks_are_whole_words_of_letters_which_stand_in_no_row(held_out):
    drawn = blanks.drawn(held_out, 200, seed=1)
    places_N, words_N = drawn["masked_positions"][:, 0], drawn["masked_ids"][:, 0]
    each_N = np.arange(200)
    assert (words_N >= FIRST_WORD).all()
    assert (drawn["token_ids"][each_N, places_N] == 4).all()
    assert ((drawn["token_ids"] == 4).sum(1) == 1).all()
    assert (drawn["token_ids"][each_N, places_N + 1] != PIECE).all()
    text = np.concatenate([shard.tokens for shard in held_out.shards]).tolist()
    for row_T, place, word in zip(drawn["token_ids"], places_N, words_N, strict=True):
        ids = [word if at == place else token for at, token in enumerate(row_T.tolist()) if token not in (0, 2, 3)]
        assert any(text[start : start + len(ids)] == ids for start in range(len(text)))
    assert len({(row_T.tobytes(), place) for row_T, place in zip(drawn["token_ids"], places_N, strict=True)}) == 200


def test_the_seed_decides_which_words_are_drawn_and_the_text_how_many_there_are(held_out):
    first, again, other = (blanks.drawn(held_out, 50, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first["token_ids"], again["token_ids"])
    assert (first["token_ids"] != other["token_ids"]).any()
    with pytest.raises(InputError, match=r"has [\d,]+ such words.*--blanks"):
        blanks.drawn(held_out, 100_000, seed=1)


def test_a_causal_model_is_read_one_place_before(held_out):
    drawn = blanks.drawn(held_out, 30, seed=1)
    for causal in (False, True):
        batches = blanks.parts(drawn, causal=causal, size=8)
        assert [len(batch["masked_ids"]) for batch in batches] == [8, 8, 8, 6]
        places = np.concatenate([batch["masked_positions"] for batch in batches])
        np.testing.assert_array_equal(places, drawn["masked_positions"] - causal)


def test_frequencies_are_those_of_the_training_text(prepared):
    store = Store.open(prepared, "train")
    counts = 1 + np.bincount(np.concatenate([shard.tokens for shard in store.shards]), minlength=len(VOCABULARY))
    scores = blanks.frequencies(store, np.array([FIRST_WORD, FIRST_WORD, 10, 11]))
    assert scores["accuracy"] == 0.5  # each sentence begins with that word
    share = counts / counts.sum()
    assert scores["perplexity"] == pytest.approx((share[8] ** 2 * share[10] * share[11]) ** -0.25)


def test_tables_have_a_line_for_each_run():
    points = [{"accuracy": 0.125, "perplexity": 300.0}, {"accuracy": 0.25, "perplexity": 99.96}]
    finished = [blanks.Finished("birnn", "5", 1000, 1.5e6, 5_345_678, points)]
    assert blanks.table(finished, {"accuracy": 0.0, "perplexity": 2000.0}, 48).splitlines()[2:] == [
        "| frequencies of words | | | | | 0.000 ± 0.000 | 2000.0 |",
        "| birnn | 5.35 M | 5 | 1,000 | 1.50 M | 0.250 ± 0.062 | 100.0 |",
    ]
    assert blanks.curves(finished).splitlines()[2:] == ["| birnn, 5 | 0.125; 300 | 0.250; 100 |"]


def test_what_is_asked_for_is_checked(tmp_path):
    words = ["blanks", f"--data={tmp_path}", f"--out={tmp_path}"]
    (tmp_path / "rates.json").write_text('{"gpt": 10, "bert": "fast"}')
    for more, rule in (
        ("--models=elmo", "elmo.*birnn"),
        ("--minutes=0", "minutes.*'0'"),
        ("--models=gpt,bert,birnn", r"rates\.json: has no rate of bert, birnn; .*--calibrate=yes --models=bert,birnn"),
    ):
        with pytest.raises(InputError, match=rule):
            blanks.run([*words, more])


def test_text_without_a_held_out_part_has_no_blanks(tmp_path):
    write_store(tmp_path, WordPiece.from_vocab(VOCABULARY), {"train": [[[FIRST_WORD] * 9]], "validation": []})
    with pytest.raises(InputError, match=r"no held-out part.*validation_share"):
        blanks.drawn(Store.open(tmp_path, "validation"), 1, seed=0)


def test_scores_of_a_run_that_was_begun_otherwise_are_refused(prepared, held_out, tmp_path):
    """Also where it has ended."""
    job = lambda steps=10, seed=0, number=9: blanks.BlanksJob(  # noqa: E731
        blanks.settings_of("bert", str(prepared), steps, seed), blanks.drawn(held_out, number, seed)
    )
    begun = {"total_steps": 10, "seed": 0, "data_sha256": job().fingerprint, "extra": {"blanks": 9}}
    (tmp_path / "config.json").write_text(json.dumps(begun))
    blanks._check_begun(tmp_path, job())
    for changed, rule in (
        ({"steps": 20}, "total_steps 10, and it is 20"),
        ({"seed": 1}, "seed 0, and it is 1"),
        ({"number": 8}, "extra {'blanks': 9}, and it is {'blanks': 8}"),
    ):
        with pytest.raises(InputError, match=f"{tmp_path}: .*{rule}.*move it"):
            blanks._check_begun(tmp_path, job(**changed))
    (tmp_path / "config.json").write_text(json.dumps(begun | {"data_sha256": "0"}))
    with pytest.raises(InputError, match="data_sha256 '0'"):
        blanks._check_begun(tmp_path, job())


@pytest.mark.slow
def test_models_are_calibrated_trained_and_scored(prepared, tmp_path, monkeypatch, capsys):
    """Scores are those of `LoadedModel.outputs`; runs that have ended are not repeated."""
    small = ("hidden_size=16", "num_layers=1")
    sizes = {"bert": ("num_heads=2", "size=tiny"), "gpt": ("num_heads=2",), "birnn": (), "dilated": ()}
    for name, more in sizes.items():
        words = [f"--config.model.{word}" for word in (*small, *more)]
        monkeypatch.setitem(blanks.MODELS, name, (*blanks.MODELS[name], *words, "--config.batch_size=8"))
    words = ["blanks", f"--data={prepared}", f"--out={tmp_path}", "--blanks=40", "--minutes=1"]
    monkeypatch.setattr(blanks.glue_encoders, "seconds_per_step", lambda words: 6.0)
    blanks.run([*words, "--calibrate=yes"])
    assert json.loads((tmp_path / "rates.json").read_text()) == dict.fromkeys(blanks.MODELS, 10)
    capsys.readouterr()
    blanks.run(words)
    table = capsys.readouterr().out[-1500:]
    drawn = blanks.drawn(Store.open(prepared, "validation"), 40, seed=0)
    for name in blanks.MODELS:
        model = bert.load(tmp_path / f"{name}-1")
        hits, nats = 0, 0.0
        for row_T, (place,), (word,) in zip(
            *(drawn[key] for key in ("token_ids", "masked_positions", "masked_ids")), strict=True
        ):
            ids = row_T[row_T > 0][None]
            logits_V = model.outputs(ids)["mlm_logits"][0, place - (name == "gpt")].astype(np.float64)
            hits += logits_V.argmax() == word
            nats += (np.logaddexp.reduce(logits_V) - logits_V[word]) / 40
        assert f"| {name} |" in table
        assert "| 10 |" in table
        last = blanks.Finished.read(name, "1", tmp_path / f"{name}-1").points[-1]
        assert last["accuracy"] == pytest.approx(hits / 40)
        assert last["loss"] == pytest.approx(nats, abs=1e-4)
    monkeypatch.setattr(blanks, "run_job", lambda *_: pytest.fail("a finished run was repeated"))
    blanks.run(words)
    (tmp_path / "rates.json").write_text(json.dumps(dict.fromkeys(blanks.MODELS, 20)))
    with pytest.raises(InputError, match=r"total_steps 10, .*20"):
        blanks.run(words)
