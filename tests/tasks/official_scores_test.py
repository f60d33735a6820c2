"""Scores of files that the product wrote equal those of the official scripts, written here anew from their rules.

Fifty random files a task, with hostile texts and golds. The files go through the product's own reading, evaluation and
writing of predictions, with random scores in the model's place; what counts them again is below and imports nothing of
the product. seqeval is no dependency, so entities are counted by the rules of conlleval, by hand, too.

Sources: evaluate-v1.1.py and evaluate-v2.0.py of SQuAD, conlleval of CoNLL-2003, eval_script of MultiSpanQA;
scikit-learn and scipy for GLUE.
"""

import collections
import csv
import dataclasses
import itertools
import json
import re
import string
import unicodedata
import warnings

import numpy as np
import pytest
import scipy.stats
import sklearn.metrics

import bert
from bert import inference
from bert.data.encoded_examples import ExampleSettings
from bert.prediction import classification, scores
from bert.prediction.bio_mrc import BioMrcOptions
from bert.prediction.classification import ClassificationOptions
from bert.prediction.tagging import TaggingOptions
from configs import squad as recipe
from tasks.classification import glue
from tasks.squad import job as squad_job
from tests.bert.prediction.table_model import GOLDEN, TableScorer, answerer, tagger

SETS = 50
# Composed and decomposed accents, full width, curly quotes, marks, emoji, a zero-width blank, articles, punctuation.
WORDS = [
    "Paris", "the", "The", "a", "an", "cat", "caf\u00e9", "cafe\u0301", "\uff30\uff21\uff32\uff29\uff33", "\u201cnew",
    "york\u201d", "don\u2019t", "don't", "St.", "!?", "\u2014", "\N{HUGGING FACE}", "\U0001f469\u200d\U0001f52c",
    "o\u0323\u0308", "\u200b", "9/7", "Ang\u00e9lique", "a.", "\u0130", "\u00df", "x\u0301",
]  # fmt: skip
BLANKS = [" ", "  ", "\n", "\t", "\u00a0", "\u3000"]


def text_of(rng, low, high) -> str:
    words = rng.choice(WORDS, rng.integers(low, high))
    return "".join(str(word) + str(rng.choice(BLANKS, p=[0.8, 0.04, 0.04, 0.04, 0.04, 0.04])) for word in words)


def random_scores(seed: int, width: int, encoded) -> np.ndarray:
    """Scores that depend on a token and its place in its window, whatever else is in the file."""
    table = np.random.default_rng(seed).normal(0, 3, (128, 32, width)).astype(np.float32)
    lengths = np.diff(encoded.starts)
    places = np.arange(len(encoded.token_ids)) - np.repeat(encoded.starts[:-1], lengths)
    return table[encoded.token_ids, places]


def value_of(scored, name) -> float | None:
    return scored[name]["value"]


# ---- SQuAD ----


def official_normal(text: str) -> str:
    text = "".join(c for c in text.lower() if c not in set(string.punctuation))
    return " ".join(re.compile(r"\b(a|an|the)\b", re.UNICODE).sub(" ", text).split())


def official_f1(gold: str, said: str, version: str) -> float:
    gold_tokens, said_tokens = official_normal(gold).split(), official_normal(said).split()
    shared = sum((collections.Counter(gold_tokens) & collections.Counter(said_tokens)).values())
    if version == "2.0" and (not gold_tokens or not said_tokens):
        return float(gold_tokens == said_tokens)
    if shared == 0:
        return 0.0
    precision, recall = shared / len(said_tokens), shared / len(gold_tokens)
    return 2 * precision * recall / (precision + recall)


def official_squad(data, said, version: str) -> dict:
    """What the scripts print; questions without the field answers, on which they break, are left out."""
    rows = [qa for article in data for p in article["paragraphs"] for qa in p["qas"] if qa.get("answers") is not None]
    exact, f1 = {}, {}
    for qa in rows:
        golds = [answer["text"] for answer in qa["answers"]]
        if version == "2.0":
            golds = [text for text in golds if official_normal(text)] or [""]
        text = said[qa["id"]]
        exact[qa["id"]] = max(float(official_normal(gold) == official_normal(text)) for gold in golds)
        f1[qa["id"]] = max(official_f1(gold, text, version) for gold in golds)
    parts = {"": [qa["id"] for qa in rows]}
    if version == "2.0":
        parts["HasAns_"] = [qa["id"] for qa in rows if qa["answers"]]
        parts["NoAns_"] = [qa["id"] for qa in rows if not qa["answers"]]
    result = {}
    for name, ids in parts.items():
        result[f"{name}total"] = len(ids)
        for measure, each in (("exact", exact), ("f1", f1)):
            result[name + measure] = 100 * sum(each[id] for id in ids) / len(ids) if ids else None
    return result


def hostile_answers(rng, context: str, version: str) -> list[dict]:
    """Several, with right, wrong and no positions; verbatim, in another Unicode form, elsewhere; of 2.0 also empty."""
    start = int(rng.integers(0, max(1, len(context) - 1)))
    text = context[start : start + int(rng.integers(1, 20))]
    forms = [
        (text, start), (text, start), (text, start + 1), (text, None), (unicodedata.normalize("NFD", text), start),
        (unicodedata.normalize("NFKC", text), start), (text.lower().replace("\u2019", "'"), start),
        (f"the {text} ,", start), ("the", 0), ("!?", 0), ("nowhere to be seen", 3), ("  ", 0), (text_of(rng, 1, 4), 2),
    ]  # fmt: skip
    forms += [("", -1), ("", 0)] * (version == "2.0")
    count = int(rng.integers(0 if version == "2.0" else 1, 4))
    chosen = [forms[i] for i in rng.integers(0, len(forms), count)]
    return [{"text": text} if start is None else {"text": text, "answer_start": start} for text, start in chosen]


def hostile_file(rng, version: str) -> list[dict]:
    data = []
    for title in range(3):
        context = text_of(rng, 4, 14) + "Paris"  # the last word is an answer with its position
        context = " \u200b" if version == "2.0" and rng.random() < 0.1 else context
        asked = [
            {"id": f"{title}.{i}", "question": text_of(rng, 0, 3), "answers": hostile_answers(rng, context, version)}
            for i in range(3)
        ]
        if context.endswith("Paris"):
            asked[0]["answers"].append({"text": "Paris", "answer_start": len(context) - 5})  # type: ignore[attr-defined]
        if rng.random() < 0.2:
            asked[1]["answers"] = None
        if version == "2.0" and rng.random() < 0.2:
            asked[2]["is_impossible"] = True
        data.append({"title": str(title), "paragraphs": [{"context": context, "qas": asked}]})
    context = text_of(rng, 1, 4)  # at least one question that can be trained on, and in 2.0 one without an answer
    sure = [] if version == "2.0" else [{"text": context, "answer_start": 0}]
    qas = [{"id": "sure", "question": "Who?", "answers": sure}]
    return [*data, {"title": "sure", "paragraphs": [{"context": context + "Paris", "qas": qas}]}]


@pytest.mark.parametrize("version", ["1.1", "2.0"])
def test_squad(commands, monkeypatch, version):
    """Of validation in fine-tuning, of evaluate, and of the file that predict writes, by the model that is saved."""
    run, model = commands("squad"), answerer({}, {})
    for scorer in (scores.Scorer, TableScorer):
        monkeypatch.setattr(scorer, "of_tokens", lambda self, encoded, max_length: random_scores(seed, 2, encoded))
    seen = collections.Counter()
    for seed in range(SETS):
        rng = np.random.default_rng((seed, version == "2.0"))
        data = hostile_file(rng, version)
        path = run.write("dev.json", {"version": version, "data": data})
        config = recipe.get_config()
        config.update({"data": path, "validation": path, "max_length": 24, "window_step": 6, "max_question": 8})
        job = squad_job.read(config)
        validated = job.evaluator(model.tokenizer, model.config, ExampleSettings(4, 24), scores.HERE)({})
        model.extra = job.extra(validated)
        found = run.evaluate(model, path).values
        said = json.loads(run.predict(model, path, "predictions.json", "json")["predictions.json"])
        official = official_squad(data, said, version)
        assert {name: value_of(found["scores"], name) for name in official} == pytest.approx(official), seed
        assert {name: validated[name] for name in ("exact", "f1", "total")} == pytest.approx(
            {name: official[name] for name in ("exact", "f1", "total")}
        ), seed
        assert found["rows"]["kept"] == official["total"]
        seen.update(dropped=len(found["rows"]["dropped"]), notes=len(found["rows"]["notes"]))
        seen.update({name: bool(official[name]) for name in ("exact", "f1")} | {"partly": official["f1"] % 1 > 0})
    assert min(seen.values()) > 5, seen


# ---- several spans a question ----


def official_spans(label: list[str], words: list[str]) -> set[str]:
    texts, before = [], "O"
    for tag, word in zip(label, words, strict=True):
        if tag == "B" or (tag == "I" and before == "O"):
            texts.append([word])
        elif tag == "I":
            texts[-1].append(word)
        before = tag
    return {official_normal(" ".join(text)) for text in texts}


def test_multispanqa(commands, monkeypatch):
    """exact_*, against golds of which some have no piece of the vocabulary, or share one."""
    run = commands("bio_mrc")
    model = tagger(("B", "I", "O"), {}, extra=BioMrcOptions(max_length=24, window_step=6, max_question=8).to_json())
    monkeypatch.setattr(TableScorer, "of_tokens", lambda self, encoded, max_length: random_scores(seed, 3, encoded))
    for seed in range(SETS):
        rng = np.random.default_rng(seed)
        rows = []
        for i in range(6):
            words = rng.choice(WORDS, rng.integers(1, 12)).tolist()
            label = rng.choice(["B", "I", "O"], len(words), p=[0.2, 0.2, 0.6]).tolist()
            rows.append({"id": str(i), "question": ["who", "?"], "context": words, "label": label})
        path = run.write("valid.json", {"data": rows})
        found = run.evaluate(model, path).values
        said = json.loads(run.predict(model, path, "out.json", "json")["out.json"])
        golds = [official_spans(row["label"], row["context"]) for row in rows]
        texts = [{official_normal(text) for text in said[row["id"]]} for row in rows]
        hits = sum(len(gold & own) if gold or own else 1 for gold, own in zip(golds, texts, strict=True))
        precision = hits / sum(max(1, len(own)) for own in texts)
        recall = hits / sum(max(1, len(gold)) for gold in golds)
        wanted = {"exact_precision": precision, "exact_recall": recall, "n": 6}
        wanted["exact_f1"] = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
        assert {name: value_of(found["scores"], name) for name in wanted} == pytest.approx(wanted), seed


# ---- entities ----

LABELS = ("O", "B-LOC", "I-LOC", "B-PER", "I-PER")


def conlleval(sentences) -> dict[str, tuple[float, float, float]]:
    """type ("" for all) -> precision, recall, F1; sentences of (gold, predicted) tags."""
    gold_count, said_count, hits = collections.Counter(), collections.Counter(), collections.Counter()
    for gold, said in sentences:
        both = [_chunks(tags) for tags in (gold, said)]
        for count, chunks in zip((gold_count, said_count, hits), (*both, both[0] & both[1]), strict=True):
            count.update(kind for kind, _, _ in chunks)
            count[""] += len(chunks)
    result = {}
    for kind in ("", "LOC", "PER"):
        precision = hits[kind] / said_count[kind] if said_count[kind] else 0.0
        recall = hits[kind] / gold_count[kind] if gold_count[kind] else 0.0
        f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
        result[kind] = (precision, recall, f1)
    return result


def _chunks(tags) -> set[tuple[str, int, int]]:
    """conlleval's: a chunk ends before another tag B, O or another type, and begins at B, after O or another type."""
    found, begin = set(), None
    for place, (before, tag) in enumerate(itertools.pairwise(["O", *tags, "O"])):
        (old, _, old_kind), (new, _, kind) = before.partition("-"), tag.partition("-")
        if begin is not None and (new in "BO" or kind != old_kind):
            found.add((old_kind, begin, place))
            begin = None
        if new == "B" or (new == "I" and (old == "O" or kind != old_kind)):
            begin = place
    return found


def tagged_lines(text: str) -> list[list[list[str]]]:
    return [[line.split(" ") for line in part.split("\n") if line] for part in text.strip("\n").split("\n\n")]


def test_conll(commands, monkeypatch):
    """Precision, recall and F1, all and by type; gold tags of any order, as IOB1 files and broken ones have them."""
    run = commands("tagging")
    options = TaggingOptions(max_length=16, window_step=6, decoding="greedy")
    model = tagger(LABELS, {})
    monkeypatch.setattr(TableScorer, "of_tokens", lambda self, encoded, max_length: random_scores(seed, 5, encoded))
    for seed in range(SETS):
        rng = np.random.default_rng(seed)
        model.extra = dataclasses.replace(options, decoding=("greedy", "viterbi")[seed % 2]).to_json()
        model.extra["files"] = {"tags": "-1", "scheme": "auto"}
        lengths = rng.integers(1, 20, 6)
        gold = [[[str(rng.choice(WORDS)), str(rng.choice(LABELS))] for _ in range(n)] for n in lengths]
        text = "\n\n".join("\n".join(map(" ".join, sentence)) for sentence in gold) + "\n"
        path = run.write("gold.conll", text)
        found = run.evaluate(model, path).values["scores"]
        said = tagged_lines(run.predict(model, path, "out.conll", "conll")["out.conll"])
        assert [[word for word, _ in own] for own in said] == [[word for word, _ in own] for own in gold]
        pairs = [[[tag for _, tag in own] for own in both] for both in zip(gold, said, strict=True)]
        official = conlleval(pairs)
        assert [value_of(found, name) or 0 for name in ("precision", "recall", "f1")] == pytest.approx(official[""]), (
            seed
        )
        assert [value_of(found, f"f1:{kind}") or 0 for kind in ("LOC", "PER")] == pytest.approx(
            [official[kind][2] for kind in ("LOC", "PER")]
        ), seed
        flat = [(a, b) for gold_tags, own in pairs for a, b in zip(gold_tags, own, strict=True)]
        if all(place == 0 or not tag.startswith("I-") or tags[place - 1][1:] == tag[1:]
               for tags, _ in pairs for place, tag in enumerate(tags)):  # fmt: skip
            assert value_of(found, "accuracy") == pytest.approx(np.mean([a == b for a, b in flat]))


# ---- GLUE ----


def glue_model(task: str):
    """A classifier of a task of GLUE; the test gives its probabilities."""
    known, tiny = glue.TASKS[task], bert.load(GOLDEN / "tiny_seqcls")
    classes = max(1, len(known.labels))
    head = {"kernel": np.zeros((32, classes), np.float32), "bias": np.zeros(classes, np.float32)}
    params = {"encoder": tiny.params["encoder"], "head": {**tiny.params["head"], "sequence_classifier": head}}
    extra = ClassificationOptions(known.kind, known.text, 16).to_json() | {"files": {"glue": task}}
    extra |= {"scored": {"positive": known.labels[1]}} if known.labels else {}
    return inference.from_params(tiny.config, params, tiny.tokenizer, labels=known.labels or ("score",), extra=extra)


def of_classes(gold: list[str], said: list[str]) -> dict[str, float]:
    return {
        "accuracy": sklearn.metrics.accuracy_score(gold, said),
        "f1": sklearn.metrics.f1_score(gold, said, pos_label="1", zero_division=0),
        "matthews": sklearn.metrics.matthews_corrcoef(gold, said),
    }


def of_numbers(gold: list[str], said: list[str]) -> dict[str, float]:
    a, b = np.array(gold, float), np.array(said, float)
    return {"pearson": scipy.stats.pearsonr(a, b)[0], "spearman": scipy.stats.spearmanr(a, b)[0]}


@pytest.mark.parametrize(
    ("task", "header", "line", "official"),
    [
        ("cola", [], "source\t{label}\t\t{text}", of_classes),
        ("mrpc", ["Quality\t#1 ID\t#2 ID\t#1 String\t#2 String"], "{label}\t1\t2\t{text}\t{other}", of_classes),
        ("stsb", ["index\tsentence1\tsentence2\tscore"], "{index}\t{text}\t{other}\t{label}", of_numbers),
    ],
)
def test_glue(commands, monkeypatch, task, header, line, official):
    """The labels of the submission file beside those of the task's own file; rows without a text count, too."""
    run, model = commands("classification"), glue_model(task)
    (run.folder / "glue").mkdir()
    for seed in range(SETS):
        rng = np.random.default_rng(seed)
        count = int(rng.integers(4, 12))
        labels = rng.integers(0, 2, count) if official is of_classes else rng.integers(0, 11, count) / 2
        texts = [["" if rng.random() < 0.2 else " ".join(rng.choice(WORDS, 3)) for _ in range(count)] for _ in range(2)]
        rows = [
            line.format(index=i, label=label, text=text, other=other)
            for i, (label, text, other) in enumerate(zip(labels, *texts, strict=True))
        ]
        run.write("glue/dev.tsv", "\n".join([*header, *rows]) + "\n")
        shares = rng.random(count) if seed % 10 else np.full(count, 0.75)  # the same answer for all
        chances = np.stack([1 - shares, shares], 1) if official is of_classes else np.round(shares[:, None] * 40) / 8
        monkeypatch.setattr(classification, "probabilities", lambda *_, chances=chances: chances)
        evaluator, folder = run.evaluator(model), str(run.folder / "glue")
        examples = evaluator.read(folder, split="validation", labelled="needed")
        scored = evaluator.evaluate(examples, resamples=2).values["scores"]
        target = run.folder / "out" / "submission.tsv"
        evaluator.write_predictions(target, evaluator.read(folder, split="validation", labelled="no"), "glue")
        submission = list(csv.DictReader(target.read_text().splitlines(), delimiter="\t"))
        assert [int(row["index"]) for row in submission] == list(range(count))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # one class or one number alone
            wanted = official([str(label) for label in labels], [row["prediction"] for row in submission])
        for name, value in wanted.items():
            assert (value_of(scored, name) or 0) == pytest.approx(np.nan_to_num(value), abs=1e-9), (seed, name)
        assert value_of(scored, "n") == count
