"""A translation model from the commands: trained, resumed, evaluated, and what it writes."""

import base64
import csv
import json
import math
import pathlib
import re
import shutil

import numpy as np
import pytest

import bert
from bert.errors import InputError
from launch import evaluate, finetune, finetuning_job, predict

pytestmark = pytest.mark.usefixtures("one_device")
WORDS = {"two": "zwei", "old": "alte", "men": "Männer", "dogs": "Hunde", "see": "sehen", "young": "junge"}
SIZES = {"num_layers": 1, "hidden_size": 16, "num_heads": 2, "intermediate_size": 16, "max_position_embeddings": 64}
_WORDS = (
    "--config.vocab_size=280", "--config.batch_size=16", "--config.max_length=16",
    "--config.optimizer.learning_rate=0.01", "--config.validation_share=0.2", "--config.beams=2",
    "--config.keep_checkpoints=9",
)  # fmt: skip


def command(data: str, workdir, epochs: int, size: str = "transformer-tiny", sizes=SIZES) -> list[str]:
    words = [*_WORDS, f"--config=configs/translation.py:{size}", f"--config.data={data}", f"--config.epochs={epochs}"]
    return ["finetune", *words, *(f"--config.model.{name}={value}" for name, value in sizes.items()),
            f"--workdir={workdir}"]  # fmt: skip


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> str:
    folder, rng = tmp_path_factory.mktemp("pairs"), np.random.default_rng(0)
    rows = [" ".join(rng.choice(list(WORDS), rng.integers(1, 5))) for _ in range(80)]
    (folder / "a.en").write_text("".join(f"{row}\n" for row in rows))
    (folder / "a.de").write_text("".join(" ".join(WORDS[word] for word in row.split()) + "\n" for row in rows))
    return f"{folder / 'a.en'},{folder / 'a.de'}"


@pytest.fixture(scope="module")
def trained(data, tmp_path_factory):
    workdir = tmp_path_factory.mktemp("run")
    finetune.run(command(data, workdir, 4))
    return workdir


def weights(workdir) -> bytes:
    return (workdir / "model" / "model.safetensors").read_bytes()


def test_it_learns_and_the_plain_loss_is_below_the_smoothed_one(trained):
    lines = [json.loads(line) for line in (trained / "metrics.jsonl").read_text().splitlines()]
    held = [line for line in lines if line["split"] == "validation"]
    assert held[-1]["nll"] < held[0]["nll"] < math.log(280)
    assert held[-1]["perplexity"] == pytest.approx(math.exp(held[-1]["nll"]))
    scores = json.loads((trained / "evaluation.json").read_text())["scores"]
    assert scores["nll"]["value"] == pytest.approx(min(line["nll"] for line in held), rel=1e-4)
    card = (trained / "model" / "README.md").read_text()
    assert "| training file | a.en,a.de |" in card
    assert "pipeline_tag: translation" in card


@pytest.mark.slow
def test_a_run_that_goes_on_at_a_checkpoint_ends_at_the_same_weights(trained, data, tmp_path):
    """As if it had been killed behind the second epoch, with a vocabulary that is not learnt again."""
    shutil.copytree(trained, tmp_path / "run")
    steps = sorted(int(folder.name) for folder in (tmp_path / "run" / "checkpoints").iterdir() if folder.name.isdigit())
    assert len(steps) == 4
    for step in steps[2:]:
        shutil.rmtree(tmp_path / "run" / "checkpoints" / str(step))
    shutil.rmtree(tmp_path / "run" / "model")
    finetune.run(command(data, tmp_path / "run", 4))
    assert weights(tmp_path / "run") == weights(trained)


@pytest.mark.slow
def test_bleu_of_greedy_translations_chooses_the_model(data, tmp_path):
    """Of equal values that with the lower nll; the report of the run shows lengths and pairs."""
    finetune.run([*command(data, tmp_path, 3), "--config.metric=bleu", "--config.patience=2"])
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    held = [line for line in lines if line["split"] == "validation"]
    best = max(held, key=lambda line: (line["bleu"], -line["nll"]))
    evaluation = json.loads((tmp_path / "evaluation.json").read_text())
    assert evaluation["step"] == best["step"]
    assert evaluation["scores"]["nll"]["value"] == pytest.approx(best["nll"], rel=1e-4)
    report = (tmp_path / "report.html").read_text()
    assert "Lengths of sources" in report
    assert "nats a token" in report


def test_translations_depend_on_no_other_text(trained):
    model = bert.load(trained)
    texts = ["two old men see dogs", "dogs", "young men see two old dogs see young men"]
    found = model.translate(texts, beams=2, best=2)
    for text, candidates in zip(texts, found, strict=True):
        (alone,) = model.translate([text], beams=2, best=2)
        assert [c.text for c in alone] == [c.text for c in candidates]
        np.testing.assert_allclose([c.score for c in alone], [c.score for c in candidates], rtol=1e-4)
        assert candidates[0].score >= candidates[1].score
    assert model.translate(texts[0], beams=2) == found[0][0].text
    mixed = model.translate([" ", texts[0], ""], beams=2, best=2)
    assert [candidates[0].text for candidates in mixed] == ["", found[0][0].text, ""]
    assert mixed[0] == mixed[2] == [("", 0.0)]  # not what the model would write of nothing
    for wrong in (None, 3, {"source": "dogs"}):
        with pytest.raises(InputError, match="a text or a list"):
            model.translate(wrong)
    assert model.predict(texts[:1]) == [{"translation": found[0][0].text, "score": pytest.approx(found[0][0].score)}]


def test_files_of_translations(trained, tmp_path, capsys):
    """A line a text, in the order of the file; the candidates with their scores in a table."""
    (tmp_path / "new.en").write_text("dogs see men\n\ntwo dogs\n")
    words = [f"--model={trained}", f"--input={tmp_path / 'new.en'}"]
    predict.run(["predict", *words, f"--output={tmp_path / 'new.txt'}"])
    lines = (tmp_path / "new.txt").read_text().split("\n")
    assert lines[:-1] == bert.load(trained).translate(["dogs see men", "", "two dogs"])
    predict.run(["predict", *words, f"--output={tmp_path / 'new.csv'}", "--best=2"])
    rows = (tmp_path / "new.csv").read_text().splitlines()
    assert rows[0] == "source,predicted,score"
    assert len(rows) == 6  # one of the empty text
    for ending in ("de", "conll"):
        with pytest.raises(InputError, match=rf"--output=.*new\.{ending}: .*one of \.csv, \.tsv, \.jsonl, \.txt, or"):
            predict.run(["predict", *words, f"--output={tmp_path / 'new'}.{ending}"])
    with pytest.raises(InputError, match=r"--best=2 needs a place.*jsonl"):
        predict.run(["predict", *words, f"--output={tmp_path / 'new.txt'}", "--best=2"])
    with pytest.raises(InputError, match=r"best is 3; .*the beams"):
        predict.run(["predict", *words, f"--output={tmp_path / 'new.csv'}", "--best=3"])
    (tmp_path / "long.en").write_text("dogs\n" + "men " * 70 + "\n")
    with pytest.raises(InputError, match=r"long.en:2: \d+ tokens, .*64"):
        predict.run(
            ["predict", f"--model={trained}", f"--input={tmp_path / 'long.en'}", f"--output={tmp_path / 'long.txt'}"]
        )
    assert not (tmp_path / "long.txt").exists()


def test_a_table_keeps_its_columns(trained, tmp_path):
    """Those of an earlier prediction are replaced."""
    table = tmp_path / "new.csv"
    table.write_text('id,en,translation,note\n7,dogs see men,Hunde,"a\rb"\n8,two dogs,,\n')
    model, wanted = bert.load(trained), bert.load(trained).translate(["dogs see men", "two dogs"], best=2)
    words = [f"--model={trained}", "--text=en"]
    predict.run(["predict", *words, f"--input={table}", f"--output={tmp_path / 'out.jsonl'}"])
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert rows[0] == {"id": "7", "en": "dogs see men", "translation": "Hunde", "note": "a\rb"} | {
        "predicted": model.predict(["dogs see men"])[0]
    }
    predict.run(["predict", *words, f"--input={table}", f"--output={tmp_path / 'out.csv'}"])
    predict.run(["predict", *words, f"--input={tmp_path / 'out.csv'}", f"--output={tmp_path / 'best.csv'}", "--best=2"])
    table.write_text("en,score\ndogs see men,3\n")
    with pytest.raises(InputError, match=r"new\.csv: .*'score'; rename"):
        predict.run(["predict", *words, f"--input={table}", f"--output={tmp_path / 'lost.csv'}"])
    with (tmp_path / "best.csv").open(newline="") as opened:
        found = list(csv.DictReader(opened))
    assert list(found[0]) == ["id", "en", "translation", "note", "predicted", "score"]
    assert [(row["id"], row["predicted"]) for row in found] == [
        (name, candidate.text) for name, candidates in zip("78", wanted, strict=True) for candidate in candidates
    ]


def test_a_page_of_what_translations_read(trained, tmp_path, capsys):
    """Beside the translations; its weights are those of the library."""
    (tmp_path / "new.en").write_text("dogs see men\n\n")
    words = [f"--model={trained}", f"--input={tmp_path / 'new.en'}", f"--output={tmp_path / 'new.txt'}"]
    predict.run(["predict", *words, f"--attention={tmp_path / 'page.html'}"])
    assert f"new.txt, {tmp_path / 'page.html'}" in capsys.readouterr().out
    model, first = bert.load(trained), (tmp_path / "new.txt").read_text().split("\n")[0]
    read = model.attention("dogs see men", target=None)
    assert read.weights.shape == (2, len(read.target), len(read.source))
    np.testing.assert_array_equal(read.weights, model.attention("dogs see men", target=first).weights)
    assert (
        base64.b64encode((read.weights * 65535).round().astype("<u2").tobytes()).decode()
        in (tmp_path / "page.html").read_text()
    )
    with pytest.raises(InputError, match=r"--attention=.*new.txt.*--output"):
        predict.run(["predict", *words, f"--attention={tmp_path / 'new.txt'}"])
    with pytest.raises(InputError, match=r"layers.*text and target"):
        model.attention("dogs", 0)
    with pytest.raises(InputError, match=r"no decoder.*pair"):
        bert.load("tests/golden/tiny_bert").attention("dogs", target="Hunde")


@pytest.mark.slow
def test_scores_of_a_file_have_sacrebleu_s_signature(trained, data, tmp_path, capsys):
    """Of all pairs, of those of a length, and beside another system, here the reference."""
    other = data.split(",")[1]
    words = [f"--model={trained}", f"--data={data}", f"--out={tmp_path / 'scores.json'}", f"--against={other}"]
    evaluate.run(["evaluate", *words])
    text, values = capsys.readouterr().out, json.loads((tmp_path / "scores.json").read_text())
    assert "tok:13a" in text
    assert 0 <= values["scores"]["bleu"]["value"] <= 100
    assert values["scores"]["n"]["value"] == 80
    assert "case:lc" in values["scores"]["bleu_lower"]["reason"]
    assert values["by_length"][0] == {
        "words": "1-8", "pairs": 80, "bleu": values["scores"]["bleu"]["value"],
        "nll": pytest.approx(values["scores"]["nll"]["value"]),
    }  # fmt: skip
    assert re.search(r"1-8 +80 +\d", text)
    compared = values["compared"]
    assert (compared["file"], compared["other"]["bleu"]) == (other, pytest.approx(100))
    assert compared["model"]["bleu"] == pytest.approx(values["scores"]["bleu"]["value"])
    assert compared["model"]["low"] <= compared["model"]["bleu"] <= compared["model"]["high"]
    assert f"p of no difference: {compared['p']:.4f}" in text


def test_no_output_replaces_what_is_read(trained, data, tmp_path):
    """Neither side of a pair, nor another system's translations, nor the model; a folder is no file."""
    pair = [pathlib.Path(shutil.copy(path, tmp_path)) for path in data.split(",")]
    other, both = pathlib.Path(shutil.copy(pair[1], tmp_path / "other.de")), ",".join(map(str, pair))
    run = shutil.copytree(trained, tmp_path / "run", ignore=shutil.ignore_patterns("checkpoints"))
    scored = ["evaluate", f"--model={run}", f"--data={both}", f"--against={other}"]
    predicted = ["predict", f"--model={run}", f"--input={both}", "--format=txt"]
    for path in (*pair, other, run / "model" / "config.json", run / "config.json"):
        before = path.read_bytes()
        with pytest.raises(InputError, match=r"--out=.*is the input"):
            evaluate.run([*scored, f"--out={path}"])
        if path != other:
            with pytest.raises(InputError, match=r"--output=.*is the input"):
                predict.run([*predicted, f"--output={path}"])
            with pytest.raises(InputError, match=r"--attention=.*is the input"):
                predict.run([*predicted, f"--output={tmp_path / 'new.txt'}", f"--attention={path}"])
        assert path.read_bytes() == before
    with pytest.raises(InputError, match=r"--out=.*is a folder"):
        evaluate.run([*scored, f"--out={run}"])


def test_tokens_that_the_vocabulary_does_not_know_are_warned_of(capsys):
    """Of either side; padding does not count."""
    tokenizer = bert.load("tests/golden/tiny_bert").tokenizer
    known, unknown = [[7, 8, 9, 10, 0]], [[tokenizer.unk_id, 7, 8, 9, tokenizer.unk_id]]
    real = {"example_ids": [[1, 1, 2, 2, 0]], "target_example_ids": [[1, 1, 2, 2, 0]]}
    for sides, warned in (((known, known), 0), ((known, unknown), 1), ((unknown, known), 1)):
        values = dict(zip(("token_ids", "target_ids"), sides, strict=True)) | real
        finetuning_job.warn_of_unknown({name: np.array(value) for name, value in values.items()}, tokenizer)
        assert capsys.readouterr().out.count("warning: 25% of the ") == warned
    finetuning_job.warn_of_unknown({"patches": np.zeros((1, 4, 3))}, tokenizer)
    assert not capsys.readouterr().out


def test_other_models_and_settings_are_refused(trained, data, tmp_path, monkeypatch):
    bert_model = "tests/golden/tiny_bert"
    with pytest.raises(InputError, match=r"init_from: .*'bert' .*decoder"):
        finetune.run([*command(data, tmp_path / "a", 1), f"--config.init_from={bert_model}"])
    with pytest.raises(InputError, match=r"'bert' .*decoder.*=translation"):
        bert.load(bert_model).translate("dogs")
    with pytest.raises(InputError, match=r"has no mlm head"):
        bert.load(trained).fill_mask("dogs [MASK]")
    monkeypatch.setattr("tasks.metrics.translation_metrics.is_installed", lambda: False)
    with pytest.raises(InputError, match=r"config.metrics .*bleu.*install"):
        finetune.run([*command(data, tmp_path / "b", 1), "--config.metrics=bleu,nll"])


# Sizes of configs/translation.py that are no Transformers, made tiny.
_SMALL = {"num_layers": 1, "hidden_size": 16, "embedding_size": 16, "max_length": 64}
OTHERS = {
    "convs2s": _SMALL,
    "bahdanau": _SMALL | {"output_size": 16, "decoder_size": 8, "attention_size": 8},
}


@pytest.mark.slow
@pytest.mark.parametrize("size", OTHERS)
def test_other_architectures_are_trained_and_translate(data, tmp_path, size):
    """Without a warm-up: the first step is at the peak of the rate."""
    words = command(data, tmp_path / "run", 2, size, OTHERS[size])
    finetune.run([*words, "--config.warmup_share=0", "--config.log_every=1"])
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert next(line["learning_rate"] for line in lines if line["split"] == "train") == pytest.approx(0.01)
    held = [line["nll"] for line in lines if line["split"] == "validation"]
    assert held[-1] < held[0] < math.log(280)
    (tmp_path / "new.en").write_text("dogs see men\n\ntwo dogs\n")
    words = [f"--model={tmp_path / 'run'}", f"--input={tmp_path / 'new.en'}", f"--output={tmp_path / 'new.txt'}"]
    predict.run(["predict", *words])
    written = bert.load(tmp_path / "run").translate(["dogs see men", "", "two dogs"])
    assert (tmp_path / "new.txt").read_text().split("\n")[:-1] == written
