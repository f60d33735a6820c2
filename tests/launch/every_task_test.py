"""Every fine-tuning task on top of encoders of each kind, by the command: the loss falls, and the model that is
written answers each row, with places inside its text."""

import itertools
import json
import math
import random

import jax
import numpy as np
import pytest

import bert
from bert import architectures, inference
from bert.architectures.bert import BertConfig
from bert.architectures.convolution import DilatedConfig, StridedConfig
from bert.architectures.gpt import GPT2Config, GPTConfig
from bert.architectures.recurrent import RecurrentConfig
from bert.errors import InputError
from bert.tokenizer.backends import load_tokenizer
from launch import finetune
from tests.launch.made_sentences import PEOPLE, PLACES, lines, sentence, spans
from tests.launch.review_table import BAD, GOOD, OTHER, TINY, reviews, write

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_device")]
V, LENGTH = 128, 32
TRANSFORMER = {"hidden_size": 16, "num_layers": 1, "num_heads": 2, "intermediate_size": 64,
               "max_position_embeddings": LENGTH, "initializer_range": 0.1}  # fmt: skip
OTHERS = {"embedding_size": 16, "hidden_size": 32, "max_length": LENGTH}
ENCODERS = {
    "bert": BertConfig(V, **TRANSFORMER),
    "bert-decoder": BertConfig(V, **TRANSFORMER, is_decoder=True),
    "openai-gpt": GPTConfig(V, **TRANSFORMER),
    "gpt2": GPT2Config(V, **TRANSFORMER),
    "birnn": RecurrentConfig(V, **OTHERS),
    "dilated": DilatedConfig(V, **OTHERS, num_layers=2),
    "strided": StridedConfig(V, **OTHERS, num_layers=5),
}
BATCH, EPOCHS = 16, 3
FIXED = (
    f"--config.max_length={LENGTH}", f"--config.batch_size={BATCH}", f"--config.epochs={EPOCHS}",
    "--config.allocator=system", "--config.packed=False", "--config.log_every=1",
    "--config.model.hidden_dropout=0", "--config.optimizer.learning_rate=1e-2",
)  # fmt: skip
WINDOWS = ("--config.window_step=16", "--config.max_question=4")


@pytest.fixture(scope="module")
def starts(tmp_path_factory):
    """encoder -> the directory of a randomly initialised one that reads the words of the tiny BERT."""
    folder, tokenizer = tmp_path_factory.mktemp("starts"), load_tokenizer(TINY)
    ids = dict.fromkeys(("token_ids", "type_ids", "position_ids", "example_ids"), np.ones((1, LENGTH), np.int32))

    def start(name):
        if not (folder / name).exists():
            config = ENCODERS[name]
            encoder = jax.device_get(jax.jit(architectures.build(config).init)(jax.random.key(0), ids)["params"])
            bert.save(inference.from_params(config, {"encoder": encoder, "head": {}}, tokenizer), folder / name)
        return folder / name

    return start


def reviews_table(folder, name, count):
    return write(folder / f"{name}.csv", reviews(count, count))


def numbers_table(folder, name, count):
    """Texts of made-up words, and how many of the words are good ones, in the first text and in both."""
    rng, rows = random.Random(count), []
    for _ in range(count):
        a, b = (rng.choices([*OTHER, *GOOD, *BAD], k=rng.randint(3, 8)) for _ in range(2))
        in_a, in_b = (sum(word in GOOD for word in words) for words in (a, b))
        rows.append({"a": " ".join(a), "b": " ".join(b), "in_a": in_a, "in_both": in_a + in_b})
    return write(folder / f"{name}.csv", rows)


def questions(count):
    """Who asks for people, where for places; both may be in the passage."""
    rng, rows = random.Random(count), []
    for i in range(count):
        asked, named = (("Who?", PEOPLE), ("Where?", PLACES))[i % 2]
        words = sentence(rng, named)
        rows.append({"id": str(i), "question": asked, "context": "  ".join(words), "spans": spans(words, named)})
    return rows


def annotations(folder, name, count):
    rows = [{**row, "annotations": [{"annotator": "anna", "spans": row.pop("spans")}]} for row in questions(count)]
    return lines(folder / f"{name}.jsonl", rows)


def squad_file(folder, name, count):
    paragraphs = [
        {"context": row["context"], "qas": [{"id": row["id"], "question": row["question"], "answers": [
            {"text": row["context"][start:stop], "answer_start": start} for start, stop in row["spans"][:1]]}]}
        for row in questions(count)
    ]  # fmt: skip
    (folder / f"{name}.json").write_text(json.dumps({"data": [{"title": name, "paragraphs": paragraphs}]}))
    return folder / f"{name}.json"


def tagged_sentences(folder, name, count):
    rng, kinds = random.Random(count), dict.fromkeys(PEOPLE, "PER") | dict.fromkeys(PLACES, "LOC")
    blocks = []
    for _ in range(count):
        words = [(part, f"{'I' if i else 'B'}-{kinds[word]}" if word in kinds else "O")
                 for word in sentence(rng, PLACES) for i, part in enumerate(word.split())]  # fmt: skip
        blocks.append("".join(f"{word} {tag}\n" for word, tag in words))
    (folder / f"{name}.conll").write_text("\n".join(blocks))
    return folder / f"{name}.conll"


TEXTS = ["the movie is great", "a book", "bad", "good fun of the city"]
QUESTIONS = [("Who?", "mary sat and  john read"), ("Where?", "the book of paris"), ("Who?", "fun")]


def check_class(answer, text):
    assert answer["label"] in ("yes", "no")
    assert sum(answer["probabilities"].values()) == pytest.approx(1, abs=1e-5)


def check_number(answer, text):
    assert math.isfinite(answer["value"])


def check_answer(answer, row):
    """No answer is none of those that this data has."""
    start, end = answer["start"], answer["end"]
    assert 0 <= start < end <= len(row[1])
    assert answer["answer"] == row[1][start:end]


def check_spans(answer, row):
    """Of the tokens too, for after so few steps there may be no span."""
    assert answer["tokens"]
    for span in answer["spans"] + answer["tokens"]:
        assert 0 <= span["start"] < span["end"] <= len(row[1])
    for span in answer["spans"]:
        assert span["text"] == row[1][span["start"] : span["end"]]


def check_tags(answer, words):
    assert answer["tokens"] == words
    assert len(answer["tags"]) == len(words)
    for entity in answer["entities"]:
        assert entity["text"] == " ".join(words[entity["start"] : entity["end"]]) != ""


TABLE, NUMBER = "--config=table", "--config.kind=number"
# task -> (what writes its files, settings, rows to predict, what checks the answer to a row)
TASKS = {
    "classification": (reviews_table, (TABLE, "--config.text=review", "--config.label=liked"), TEXTS, check_class),
    "regression": (numbers_table, (TABLE, NUMBER, "--config.text=a", "--config.label=in_a"), TEXTS, check_number),
    "similarity": (numbers_table, (TABLE, NUMBER, "--config.text=a,b", "--config.label=in_both"),
                   list(itertools.pairwise(TEXTS)), check_number),
    "squad": (squad_file, ("--config=squad", *WINDOWS), QUESTIONS, check_answer),
    "bio_mrc": (annotations, ("--config=bio_mrc", *WINDOWS), QUESTIONS, check_spans),
    "tagging": (tagged_sentences, ("--config=tagging", "--config.window_step=16"),
                [text.split() for text in TEXTS], check_tags),
}  # fmt: skip


# All tasks on one encoder of each way of reading. Two each on BERT, which other tests have on all tasks, and on those
# that read as another one does.
TWO_EACH = ("bert", "bert-decoder", "openai-gpt", "dilated")
CASES = [(task, encoder) for encoder in ENCODERS if encoder not in TWO_EACH for task in TASKS]
CASES += zip([*TASKS, *TASKS], (encoder for encoder in TWO_EACH for _ in range(2)), strict=False)


@pytest.mark.parametrize(("task", "encoder"), CASES)
def test_the_loss_falls_and_the_model_answers_each_row(starts, tmp_path, task, encoder):
    writer, settings, rows, check = TASKS[task]
    data, validation = (writer(tmp_path, name, count) for name, count in (("train", 64), ("validation", 8)))
    run, start = tmp_path / "run", starts(encoder)
    files = (f"--config.data={data}", f"--config.validation={validation}", f"--config.init_from={start}")
    finetune.run(["finetune", *settings, *FIXED, *files, f"--workdir={run}"])
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    losses = [record["loss"] for record in records if record["split"] == "train"]
    epoch = len(losses) // EPOCHS
    assert np.mean(losses[-epoch:]) < np.mean(losses[:epoch]), losses
    model = bert.load(run)
    assert model.report.notes == []
    predictions = model.predict(rows, batch_size=BATCH, packed=False, details=True)
    for row, prediction in zip(rows, predictions, strict=True):
        check(prediction, row)


def test_rows_of_several_examples_are_refused_for_the_strided_encoder_by_name(starts, tmp_path):
    words = ("--config=table", "--config.text=review", "--config.label=liked", *FIXED, "--config.packed=True")
    data, start = f"--config.data={reviews_table(tmp_path, 'train', 32)}", f"--config.init_from={starts('strided')}"
    with pytest.raises(InputError, match=r"'strided'.*packed=False"):
        finetune.run(["finetune", *words, data, start, f"--workdir={tmp_path / 'run'}"])
    assert not (tmp_path / "run" / "config.json").exists()
