"""Fine-tuning to spans, answers and tags by the commands, and what is done with the models; on made-up sentences."""

import json
import pathlib
import random

import numpy as np
import pytest

import bert
from bert.errors import InputError
from bert.reports import runs
from launch import evaluate, predict
from tests.launch.made_sentences import PEOPLE, PLACES, QUICK, WINDOWS, lines, run, sentence, spans

pytestmark = pytest.mark.usefixtures("one_device")


def questions(count: int, seed: int) -> list[dict]:
    """Who asks for people, where for places; one of three annotators marks nothing."""
    rng, rows = random.Random(seed), []
    for i in range(count):
        asked, named = (("Who?", PEOPLE), ("Where?", PLACES))[i % 2]
        words = sentence(rng, named)
        marks = [{"annotator": name, "spans": spans(words, named)} for name in ("anna", "ben")]
        marks.append({"annotator": "cleo", "spans": []})
        rows.append({"id": f"q{i}", "question": asked, "context": "  ".join(words), "annotations": marks})
    return rows


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> pathlib.Path:
    out = tmp_path_factory.mktemp("tokens")
    lines(out / "train.jsonl", questions(320, 0))
    lines(out / "held.jsonl", questions(40, 1))
    return out


def left_behind(made: pathlib.Path) -> runs.Run:
    """What a run has left for its report, which is there."""
    run = runs.read(made, "run")
    assert run.remarks == []
    assert 'class="passage"' in (made / "report.html").read_text()
    return run


def test_spans_follow_the_votes_of_annotators(folder, tmp_path, capsys):
    """Two of three annotators mark the names: B and I near 2/3, found as spans, with offsets into the original text."""
    files = (f"--config.data={folder / 'train.jsonl'}", f"--config.validation={folder / 'held.jsonl'}")
    made = run(folder, "bio", "--config=configs/bio_mrc.py", *files, *WINDOWS, "--config.epochs=12",
               "--config.metric=exact_f1", "--config.annotator_weights=cleo=1")  # fmt: skip
    evaluate.run(["evaluate", f"--model={made}", f"--data={folder / 'held.jsonl'}", f"--out={tmp_path / 's.json'}"])
    scores = {k: v["value"] for k, v in json.loads((tmp_path / "s.json").read_text())["scores"].items()}
    assert scores["exact_f1"] > 0.9
    assert scores["kl"] < 0.1 < scores["cross_entropy"]  # the annotators disagree, and the model knows how much
    assert scores["n"] == 40
    model = bert.load(made)
    assert model.report.notes == []
    rows = [
        {"question": "Where?", "context": "\r\n the Movie  of\tnew york is \N{SNOWMAN} fun"},
        {"question": "Who?", "context": "the book of mary is good and fun"},
        {"question": "Who?", "context": ""},
    ]
    first, second, empty = model.predict(rows, details=True)
    (span,) = first["spans"]
    assert rows[0]["context"][span["start"] : span["end"]] == span["text"] == "new york"
    assert span["probability"] == pytest.approx(2 / 3, abs=0.15)
    assert [span["text"] for span in second["spans"]] == ["mary"]
    assert empty == {"spans": [], "tokens": []}
    assert all(sum(token[tag] for tag in "BIO") == pytest.approx(1) for token in first["tokens"])
    left = left_behind(made)
    assert left.scores["exact_f1"]["value"] == pytest.approx(scores["exact_f1"])
    row = next(row for row in left.rows if "passage" in row)
    asked = next(one for one in questions(40, 1) if one["id"] == row["id"])
    (told,) = model.predict([asked], details=True)
    tokens = [part for part in row["passage"] if isinstance(part, list)]
    assert [part[3:5] for part in tokens] == [pytest.approx([t["B"], t["I"]], abs=1e-3) for t in told["tokens"]]
    assert [part[0] for part in tokens] == [asked["context"][t["start"] : t["end"]] for t in told["tokens"]]

    predict.run(["predict", f"--model={made}", f"--input={folder / 'held.jsonl'}", f"--output={tmp_path / 'p.jsonl'}"])
    told = [json.loads(line) for line in (tmp_path / "p.jsonl").read_text().splitlines()]
    asked = questions(40, 1)
    assert [row["id"] for row in told] == [row["id"] for row in asked]
    assert all(row["context"][s["start"] : s["end"]] == s["text"]
               for row, one in zip(asked, told, strict=True) for s in one["spans"])  # fmt: skip
    with pytest.raises(InputError, match=r"--label .*bio_mrc.*--documents"):
        evaluate.run(["evaluate", f"--model={made}", f"--data={folder / 'held.jsonl'}", "--label=x"])
    with pytest.raises(InputError, match=r"--details=yes needs .*jsonl"):
        predict.run(["predict", f"--model={made}", f"--input={folder / 'held.jsonl'}",
                     f"--output={tmp_path / 'p.json'}", "--details=yes"])  # fmt: skip
    with pytest.raises(InputError, match=r"--output=.*p\.csv: .*one of \.jsonl, \.json, or"):
        predict.run(
            ["predict", f"--model={made}", f"--input={folder / 'held.jsonl'}", f"--output={tmp_path / 'p.csv'}"]
        )


def squad(count: int, seed: int) -> dict:
    """The same as SQuAD's files: the first name is the answer, every fifth question has none."""
    articles = []
    for row in questions(count, seed):
        number = int(row["id"][1:])
        answers = [{"text": row["context"][a:b], "answer_start": a} for a, b in row["annotations"][0]["spans"][:1]]
        asked = {"id": row["id"], "question": row["question"], "answers": answers}
        if number % 5 == 0:
            asked |= {"question": "When?", "answers": [], "is_impossible": True}
        articles.append({"title": row["id"], "paragraphs": [{"context": row["context"], "qas": [asked]}]})
    return {"version": "v2.0", "data": articles}


def test_answers_and_their_absence(folder, tmp_path):
    """A question without an answer gets none; the official files hold every question; the threshold travels along."""
    (folder / "train.json").write_text(json.dumps(squad(320, 0)))
    (folder / "held.json").write_text(json.dumps(squad(40, 1)))
    files = (f"--config.data={folder / 'train.json'}", f"--config.validation={folder / 'held.json'}")
    made = run(folder, "squad", "--config=configs/squad.py", *files, *WINDOWS, "--config.epochs=12")
    evaluate.run(["evaluate", f"--model={made}", f"--data={folder / 'held.json'}", f"--out={tmp_path / 's.json'}"])
    scores = {k: v["value"] for k, v in json.loads((tmp_path / "s.json").read_text())["scores"].items()}
    assert scores["exact"] > 80
    assert (scores["total"], scores["NoAns_total"], scores["NoAns_exact"]) == (40, 8, 100)
    logged = [json.loads(line) for line in (made / "metrics.jsonl").read_text().splitlines()]
    held = [line for line in logged if line["split"] == "validation"]
    best = max(held, key=lambda line: (line["f1"], -line["cross_entropy"]))
    assert scores["threshold"] == pytest.approx(best["threshold"])
    assert scores["f1"] == pytest.approx(best["f1"])
    assert left_behind(made).scores["f1"]["value"] == pytest.approx(scores["f1"])
    target = tmp_path / "predictions.json"
    predict.run(["predict", f"--model={made}", f"--input={folder / 'held.json'}", f"--output={target}"])
    said, candidates, odds = (
        json.loads((tmp_path / name).read_text())
        for name in ("predictions.json", "nbest_predictions.json", "null_odds.json")
    )
    assert said.keys() == candidates.keys() == odds.keys() == {f"q{i}" for i in range(40)}
    assert all((said[id] == "") == (odds[id] > scores["threshold"]) for id in said)
    assert all(sum(c["probability"] for c in some) == pytest.approx(1) for some in candidates.values())


def test_tags_of_words_by_a_crowd(folder, tmp_path):
    """Columns of three workers, one of whom tags some sentences only; nearly all of the model's tags are right."""
    rng = random.Random(0)
    blocks = []
    for number in range(240):
        rows = []
        for name in sentence(rng, PLACES):
            kind = "LOC" if name in PLACES else "PER" if name in PEOPLE else ""
            for place, word in enumerate(name.split()):
                tag = f"{'I' if place else 'B'}-{kind}" if kind else "O"
                rows.append(f"{word} {tag} {tag} {tag if number % 2 else '?'}\n")
        blocks.append("".join(rows))
    (folder / "crowd.conll").write_text("\n".join(blocks))
    made = run(folder, "tags", "--config=configs/tagging.py", f"--config.data={folder / 'crowd.conll'}",
               "--config.tags=1-", "--config.max_length=24", "--config.window_step=12", "--config.epochs=8",
               "--config.metric=f1", "--config.metrics=f1,kl,annotator_human,n")  # fmt: skip
    logged = [json.loads(line) for line in (made / "metrics.jsonl").read_text().splitlines()]
    best = max(line["f1"] for line in logged if line["split"] == "validation")
    assert best > 0.9
    assert left_behind(made).scores["f1"]["value"] == pytest.approx(best)
    model = bert.load(made)
    assert model.report.notes == []
    assert model.labels == ("O", "B-LOC", "I-LOC", "B-PER", "I-PER")  # the last one never occurs
    text = "Mary  sat and NEW york is fun"
    (told,) = model.predict([text])
    assert [(e["type"], e["text"], text[e["start"] : e["end"]]) for e in told["entities"]] == [
        ("PER", "Mary", "Mary"), ("LOC", "NEW york", "NEW york"),
    ]  # fmt: skip
    (words,) = model.predict([{"tokens": ["new", "york", "\u200b", "john"]}])
    assert words["tags"] == ["B-LOC", "I-LOC", words["tags"][2], "B-PER"]
    target = tmp_path / "out.conll"
    predict.run(["predict", f"--model={made}", f"--input={folder / 'crowd.conll'}", f"--output={target}"])
    assert [line.split()[0] if line else "" for line in target.read_text().splitlines()] == [
        line.split()[0] if line else "" for line in (folder / "crowd.conll").read_text().splitlines()
    ]
    (tmp_path / "other.conll").write_text("paris B-CITY\n")
    with pytest.raises(InputError, match=r"other\.conll:1: .*'paris'.*CITY"):
        evaluate.run(["evaluate", f"--model={made}", f"--data={tmp_path / 'other.conll'}", "--tags=1"])


@pytest.mark.slow
def test_two_processes_train_and_evaluate_as_one_does(folder, tmp_path, two_processes):
    """The same weights to 1e-6, and the same scores of 101 held-out passages, an odd number for two processes."""
    held = lines(tmp_path / "held.jsonl", questions(101, 1))
    files = (f"--config.data={folder / 'train.jsonl'}", f"--config.validation={held}")
    two_processes("finetune", "--config=configs/bio_mrc.py", *QUICK, *WINDOWS, *files, "--config.epochs=1")
    one, two = (bert.load(tmp_path / name).params for name in ("one", "two"))
    for name, leaf in one["head"]["token_classifier"].items():
        np.testing.assert_allclose(leaf, two["head"]["token_classifier"][name], atol=1e-6)
    scores = [json.loads((tmp_path / name / "metrics.jsonl").read_text().splitlines()[-1]) for name in ("one", "two")]
    assert scores[0]["n"] == scores[1]["n"] == 101
    assert scores[0]["cross_entropy"] == pytest.approx(scores[1]["cross_entropy"], abs=1e-5)
