"""Fine-tuning from the files that people have: exports of annotation tools, and words in the formats of others."""

import json
import pathlib
import random

import datasets
import numpy as np
import pytest

import bert
from launch import evaluate, predict
from tasks.annotations.annotated_texts import AnnotationSettings
from tasks.annotations.tools import read_annotated
from tests.launch.made_sentences import PEOPLE, PLACES, WINDOWS, run, sentence, spans

pytestmark = [pytest.mark.usefixtures("one_device"), pytest.mark.slow]


def export(tool: str, texts: list[str], words_N: list[list[str]], annotated: bool) -> str:
    """The texts as a tool has them, with people and places marked by anna and ben; nothing is marked by cleo."""
    rows = []
    for number, (text, words) in enumerate(zip(texts, words_N, strict=True)):
        marked = [
            (start, end, label)
            for label, named in (("PER", PEOPLE), ("LOC", PLACES))
            for start, end in spans(words, named)
        ]
        if tool == "label_studio":
            regions = [
                {"type": "labels", "from_name": "label", "to_name": "text",
                 "value": {"start": a, "end": b, "text": text[a:b], "labels": [label]}}
                for a, b, label in marked
            ]  # fmt: skip
            by = [{"completed_by": who, "result": regions if who < 3 else []} for who in (1, 2, 3)]
            rows.append({"id": number, "data": {"text": text}} | ({"annotations": by} if annotated else {}))
        elif tool == "prodigy":
            of_spans = [{"start": a, "end": b, "label": label} for a, b, label in marked]
            for who in ("anna", "ben", "cleo") if annotated else ("",):
                answer = {"spans": of_spans if who != "cleo" else [], "answer": "accept", "_annotator_id": who}
                rows.append({"text": text, "_input_hash": number} | (answer if annotated else {}))
        else:
            rows.append({"id": number, "text": text} | ({"label": [list(one) for one in marked]} if annotated else {}))
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.mark.parametrize("tool", ["label_studio", "prodigy", "doccano"])
def test_labels_of_annotation_tools_are_questions(tmp_path, tool):
    """Trained on an export, the model asks the same of one without annotations, and writes what the tool imports."""
    rng = random.Random(3)
    words_N = [sentence(rng, PLACES + PEOPLE) for _ in range(200)]
    texts = ["  ".join(words) for words in words_N]
    (tmp_path / "train.jsonl").write_text(export(tool, texts[:160], words_N[:160], annotated=True))
    (tmp_path / "new.jsonl").write_text(export(tool, texts[160:], words_N[160:], annotated=False))
    made = run(tmp_path, "bio", "--config=configs/bio_mrc.py", f"--config.data={tmp_path / 'train.jsonl'}", *WINDOWS,
               "--config.epochs=12", "--config.questions=PER=Who is it?,LOC=Where?")  # fmt: skip
    assert json.loads(bert.load(made).extra["files"]["questions"]) == {"PER": "Who is it?", "LOC": "Where?"}
    out = tmp_path / ("out.json" if tool == "label_studio" else "out.jsonl")
    predict.run(
        ["predict", f"--model={made}", f"--input={tmp_path / 'new.jsonl'}", f"--output={out}", f"--format={tool}"]
    )
    if tool == "label_studio":
        out.write_text(out.read_text().replace('"predictions"', '"annotations"'))
    found = read_annotated(str(out), AnnotationSettings(format=tool)).texts
    assert [text.text for text in found] == texts[160:]
    right = 0
    for words, text in zip(words_N[160:], found, strict=True):
        wanted = {(*span, label) for label, named in (("PER", PEOPLE), ("LOC", PLACES)) for span in spans(words, named)}
        right += wanted == {tuple(span) for _, marked in text.annotations for span in marked}
    assert right >= 36  # of 40


def tagged(count: int, seed: int) -> list[tuple[list[str], list[str]]]:
    """(words, tags in IOB2) of sentences with people and places."""
    rng, rows = random.Random(seed), []
    for _ in range(count):
        pairs: list[tuple[str, str]] = []
        for name in sentence(rng, PLACES + PEOPLE):
            kind = "LOC" if name in PLACES else "PER" if name in PEOPLE else ""
            parts = name.split()
            pairs += zip(
                parts, [f"B-{kind}", *[f"I-{kind}"] * (len(parts) - 1)] if kind else ["O"] * len(parts), strict=True
            )
        rows.append(([word for word, _ in pairs], [tag for _, tag in pairs]))
    return rows


def in_bioes(tags: list[str]) -> list[str]:
    last = [not after.startswith("I") for after in [*tags[1:], "O"]]
    ends = {("B", True): "S", ("I", True): "E"}
    return [ends.get((tag[0], is_last), tag[0]) + tag[1:] for tag, is_last in zip(tags, last, strict=True)]


def written(folder: pathlib.Path, kind: str, rows: list[tuple[list[str], list[str]]]) -> pathlib.Path:
    """A file of a kind with the sentences."""
    names = ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]
    if kind in ("hub.parquet", "saved"):
        features = {"tokens": datasets.List(datasets.Value("string")),
                    "ner_tags": datasets.List(datasets.ClassLabel(names=names))}  # fmt: skip
        numbers = [{"tokens": words, "ner_tags": [names.index(tag) for tag in tags]} for words, tags in rows]
        data = datasets.Dataset.from_list(numbers, datasets.Features(features))
        data.save_to_disk(folder / kind) if kind == "saved" else data.to_parquet(folder / kind)
    elif kind == "kaggle.csv":
        cells = [
            f"{'' if i else f'Sentence: {n}'},{word},X,{tag}"
            for n, (words, tags) in enumerate(rows) for i, (word, tag) in enumerate(zip(words, tags, strict=True))
        ]  # fmt: skip
        (folder / kind).write_text("\n".join(["Sentence #,Word,POS,Tag", *cells]))
    else:
        line = "{0}\t{1}\t_\t_\t_\t_\t_\t_\t_\tNER={2}" if kind == "a.conllu" else "{1} {2}"
        texts = []
        for words, tags in rows:
            cells = zip(words, in_bioes(tags) if kind == "bioes.txt" else tags, strict=True)
            texts.append(
                "\n".join(["# text = " + " ".join(words), *(line.format(i, *pair) for i, pair in enumerate(cells, 1))])
            )
        (folder / kind).write_text("\n\n".join(texts))
    return folder / kind


@pytest.mark.parametrize("kind", ["hub.parquet", "saved", "kaggle.csv", "a.conllu", "bioes.txt"])
def test_files_of_words_as_people_have_them(tmp_path, kind):
    path = written(tmp_path, kind, tagged(200, 5))
    made = run(tmp_path, "tags", "--config=configs/tagging.py", f"--config.data={path}", "--config.max_length=24",
               "--config.window_step=6", "--config.epochs=12")  # fmt: skip
    (tmp_path / "new").mkdir()
    rows = tagged(40, 6)
    held, out = written(tmp_path / "new", kind, rows), tmp_path / "out.conll"
    evaluate.run(["evaluate", f"--model={made}", f"--data={held}", f"--out={tmp_path / 's.json'}"])
    assert json.loads((tmp_path / "s.json").read_text())["scores"]["strict_f1"]["value"] > 0.9
    predict.run(["predict", f"--model={made}", f"--input={held}", f"--output={out}"])
    sentences = [block.split("\n") for block in out.read_text().rstrip("\n").split("\n\n")]
    assert [[line.split(" ")[0] for line in lines] for lines in sentences] == [words for words, _ in rows]
    found = [line.split(" ")[1] for lines in sentences for line in lines]
    wanted = [tag for _, tags in rows for tag in tags]
    assert {*found} <= {*wanted}
    assert np.mean(np.array(found) == wanted) > 0.95
