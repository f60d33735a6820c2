"""From an annotation tool to a tagger and back, by the commands: one export trains, predictions go into every tool."""

import json
import pathlib
import random

import pytest

import bert
from launch import evaluate, predict
from tasks.annotations.annotated_texts import AnnotationSettings
from tasks.annotations.tools import TOOLS, read_annotated
from tests.launch.made_sentences import run

pytestmark = pytest.mark.usefixtures("one_device")
NAMES = {"paris": "LOC", "new york": "LOC", "john": "PER", "mary": "PER"}
OTHER = ["the", "movie", "book", "of", "mat", "sat", "is", "fun", "good", "😀", "東京", "e\u0301"]
SETTINGS = ("--config.max_length=24", "--config.window_step=12", "--config.epochs=8")


def annotated(count: int, seed: int) -> list[tuple[str, list[tuple[int, int, str]]]]:
    """Texts of several lines with their spans; every text ends in CR LF."""
    rng, texts = random.Random(seed), []
    for _ in range(count):
        text, spans = "", []
        for word in rng.choices([*OTHER, *NAMES, *NAMES], k=rng.randint(4, 9)):
            if word in NAMES:
                spans.append((len(text), len(text) + len(word), NAMES[word]))
            text += word + rng.choice([" ", "  ", ", ", "\r\n"])
        texts.append((text.strip() + "\r\n", spans))
    return texts


def export(tool: str, folder: pathlib.Path, texts) -> pathlib.Path:
    """The texts as the tool exports them; of doccano and Label Studio by three annotators, one of whom sees no places.

    Offsets of doccano are UTF-16 units.
    """
    path = folder / {"label_studio": "export.json", "prodigy": "export.jsonl"}.get(tool, tool)
    without = [(text, [span for span in spans if span[2] != "LOC"]) for text, spans in texts]
    people = {"anna": texts, "ben": texts, "cleo": without}
    if tool == "label_studio":
        tasks = []
        for number, (text, _) in enumerate(texts):
            annotations = [
                {"completed_by": {"id": i, "email": f"{name}@x.org"}, "was_cancelled": False, "result": [
                    {"type": "labels", "from_name": "ner", "to_name": "doc",
                     "value": {"start": a, "end": b, "text": text[a:b], "labels": [label]}}
                    for a, b, label in marked[number][1]
                ]} for i, (name, marked) in enumerate(people.items())
            ]  # fmt: skip
            tasks.append({"id": number, "data": {"body": text}, "annotations": annotations})
        path.write_text(json.dumps(tasks))
    elif tool == "prodigy":
        marks = [[{"start": a, "end": b, "label": label} for a, b, label in spans] for _, spans in texts]
        rows = [{"text": text, "spans": one, "answer": "accept"} for (text, _), one in zip(texts, marks, strict=True)]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        path.mkdir()
        for name, marked in people.items() if tool == "doccano" else ():
            units = [[len(t[:a].encode("utf-16-le")) // 2 for a in range(len(t) + 1)] for t, _ in marked]
            rows = [
                {"id": i, "text": text, "label": [[units[i][a], units[i][b], label] for a, b, label in spans]}
                for i, (text, spans) in enumerate(marked)
            ]
            (path / f"{name}.jsonl").write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
        for i, (text, spans) in enumerate(texts) if tool == "brat" else ():
            lines = [f"T{n}\t{label} {a} {b}\t{text[a:b]}\n" for n, (a, b, label) in enumerate(spans)]
            (path / f"d{i}.txt").write_bytes(text.encode())
            (path / f"d{i}.ann").write_text("".join(lines))
    return path


def train(data: pathlib.Path, *words: str) -> bert.LoadedModel:
    """A model trained on the data; the run is beside them."""
    return bert.load(run(data.parent, "run", "--config=configs/tagging.py", f"--config.data={data}", *SETTINGS, *words))


def predicted(trained: pathlib.Path, source: pathlib.Path, target: pathlib.Path, tool: str):
    """The texts of the predictions that are written for a tool."""
    target = target.with_suffix({"label_studio": ".json", "brat": ""}.get(tool, ".jsonl"))
    predict.run(["predict", f"--model={trained}", f"--input={source}", f"--output={target}", f"--format={tool}"])
    if tool == "label_studio":
        target.write_text(target.read_text().replace('"predictions"', '"annotations"'))
    return read_annotated(str(target), AnnotationSettings(no_spans="nothing")).texts


def unlabelled(folder: pathlib.Path, texts) -> pathlib.Path:
    path = folder / "new.json"
    path.write_text(json.dumps([{"id": 900 + i, "data": {"body": text}} for i, (text, _) in enumerate(texts)]))
    return path


@pytest.mark.slow
def test_an_export_trains_and_unlabelled_tasks_get_predictions(tmp_path, capsys):
    """With the names of three annotators; after three steps, so only texts and ids are what they were."""
    data = export("label_studio", tmp_path, annotated(48, seed=0))
    model = train(data, "--config.epochs=1", "--config.validation_share=0",
                  "--config.annotator_weights=cleo@x.org=2")  # fmt: skip
    assert set(model.labels) == {"O", "B-LOC", "I-LOC", "B-PER", "I-PER"}
    assert "export of label_studio" in capsys.readouterr().out
    held = annotated(5, seed=1)
    found = predicted(tmp_path / "run", unlabelled(tmp_path, held), tmp_path / "out" / "a", "doccano")
    assert [(text.id, text.text) for text in found] == [(str(900 + i), text) for i, (text, _) in enumerate(held)]


@pytest.mark.slow
@pytest.mark.parametrize("tool", TOOLS)
def test_every_tool_trains_a_tagger_whose_spans_go_into_every_tool(tmp_path, tool):
    data, trained = export(tool, tmp_path, annotated(200, seed=0)), tmp_path / "run"
    model = train(data, "--config.metric=f1")
    text = "😀 mary\r\nsat in New  York"
    (told,) = model.predict([text])
    assert [(e["type"], text[e["start"] : e["end"]]) for e in told["entities"]] == [
        ("PER", "mary"),
        ("LOC", "New  York"),
    ]
    evaluate.run(["evaluate", f"--model={trained}", f"--data={data}", f"--out={tmp_path / 's.json'}"])
    assert json.loads((tmp_path / "s.json").read_text())["scores"]["f1"]["value"] > 0.95
    held = annotated(20, seed=1)
    for other in TOOLS:
        found = predicted(trained, unlabelled(tmp_path, held), tmp_path / "out" / other, other)
        assert [(text.id, text.text) for text in found] == [(str(900 + i), text) for i, (text, _) in enumerate(held)]
        spans = [[tuple(span) for _, marks in text.annotations for span in marks] for text in found]
        assert sum(got == want for got, (_, want) in zip(spans, held, strict=True)) >= 18
