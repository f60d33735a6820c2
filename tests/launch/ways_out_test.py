"""Messages and their ways out: what a message advises, done, leads on.

Each row of `WAYS` is a command that is refused, the advice in its message, and that advice as words of the command line
or as files. The changed command must get to its end, or to the first training step, without another message.
"""

import dataclasses
import json
import pathlib
import shutil

import pytest

from bert.errors import InputError
from bert.interop import export, sources
from bert.prediction.classification import ClassificationOptions
from bert.training import train
from launch import command_line, evaluate, fill_mask, finetune, predict, prepare, pretrain
from launch import export as export_command
from tests.launch.review_table import TINY, reviews, write

RUN = {
    "evaluate": evaluate.run,
    "export": export_command.run,
    "fill_mask": fill_mask.run,
    "finetune": finetune.run,
    "predict": predict.run,
    "prepare": prepare.run,
    "pretrain": pretrain.run,
}
FINETUNE = f"finetune --config.init_from={TINY} --config.max_length=16 --workdir=run --config=configs/"
TABLE = f"{FINETUNE}table.py --config.data=reviews.csv --config.text=review --config.label=liked"
ROWS = f"{FINETUNE}table.py --config.text=text --config.label=label"
SQUAD = f"{FINETUNE}squad.py --config.data=squad.json --config.validation_share=0 --config.window_step=4"
BIO = f"{FINETUNE}bio_mrc.py --config.data=squad.json --config.validation_share=0 --config.window_step=4"
TAGGING = f"{FINETUNE}tagging.py --config.data=tags.txt --config.window_step=4"
PREPARE = "prepare --config.corpus=text.txt --config.vocab_size=60 --out=new"
PRETRAIN = "pretrain --config=configs/pretrain.py:tiny --config.data=prepared --workdir=run --config.max_length=32"
PREDICT = "predict --model=classifier --input=reviews.csv --output=out.csv"
EVALUATE = "evaluate --model=classifier --data=reviews.csv"
EXPORT = f"export --source={TINY}"
FILL = f"fill_mask --model={TINY}"
TAG = f"predict --model={TINY.with_name('tiny_tokcls')} --input=a.jsonl --output=out.conll"
LINES = '{"text": "the cat", "label": "a"}\n{"text": "a dog", "label": "b"}\n' * 9
CSV = "text,label\n" + "the cat sat,yes\nthe dog ran,no\n" * 10


@dataclasses.dataclass(frozen=True)
class Way:
    """A command that is refused, and the way out.

    words: of the command. advice: what its message says, as a pattern. change: words to add, of which the last of a
    name wins, or that replace the whole command. files: name -> text, before; mended: after.
    """

    words: str
    advice: str
    change: str = ""
    files: dict[str, str] = dataclasses.field(default_factory=dict)
    mended: dict[str, str] = dataclasses.field(default_factory=dict)


def table(content: str, advice: str, change: str = "", *, name: str = "rows.csv", words: str = "") -> Way:
    """Fine-tuning on a table with the columns text and label; ``change``: words, or the mended table."""
    is_words = change.startswith("--")
    words = f"{ROWS} --config.data={name} {words}"
    return Way(words, advice, change if is_words else "", {name: content}, {} if is_words else {name: change})


WAYS = [
    # Settings and options.
    Way(f"{TABLE} --config.optimiser.name=lamb", r"config\.optimizer\.name\?", f"{TABLE} --config.optimizer.name=lamb"),
    Way(f"{TABLE} --config.seeed=1", r"config\.seed\?", f"{TABLE} --config.seed=1"),
    Way(f"{TABLE} --config.optimizer=lamb", r"--config\.optimizer\.name=lamb",
        f"{TABLE} --config.optimizer.name=lamb"),
    Way(f"{TABLE} --config.epochs", r"--config\.epochs=VALUE", f"{TABLE} --config.epochs=1"),
    Way(f"{PREDICT} --outputt=x.csv", r"--output\?", f"{PREDICT} --output=x.csv"),
    Way(f"{PREDICT} --batch_size=0", "at least 1", "--batch_size=1"),
    Way("predict --model=classifier --input=reviews.csv --output=out.xls", r"csv.* --format=", "--format=csv"),
    Way(f"{PREDICT} --details=yes", "--format=jsonl", "--format=jsonl"),
    Way("predict --model=classifier --input=reviews.csv --output=reviews.csv", "another name", "--output=other.csv"),
    Way(f"{FINETUNE}pretrain.py:tiny", r"configs/table\.py", TABLE),
    Way("pretrain --config=configs/prepare.py --workdir=run", "start from that file", PRETRAIN),
    Way(f"{TABLE} --config.seeds=2 --config.validation_share=0", "config.validation_share",
        "--config.validation_share=0.1"),
    Way(f"{TABLE} --config.init_from=", "name a model directory", f"--config.init_from={TINY}"),
    Way(f"{TABLE} --config.max_length=100", "64 positions; lower it", "--config.max_length=64"),
    Way(f"{TABLE} --config.optimizer.frozen_layers=9", "layers; lower it", "--config.optimizer.frozen_layers=2"),
    Way(f"{TABLE} --config.metric=f2", "'f2'; it must be one of accuracy", "--config.metric=accuracy"),
    Way(f"{TABLE} --config.class_weights=maybe=2", "'maybe'; .* one of no, yes", "--config.class_weights=yes=2"),
    Way(f"{TABLE} --config.optimizer.name=adam", "one of adamw", "--config.optimizer.name=adamw"),
    Way(f"{PRETRAIN} --config.batch_size=4 --config.micro_batches=3", "multiple of 3.*: 3, 6",
        "--config.batch_size=3"),
    Way(f"{TABLE} --config.mesh.model_devices=3 --config.mesh.mode=tp", "must divide the 1 devices",
        "--config.mesh.model_devices=1"),
    Way(f"{TABLE} --config.model.attention=fused", "attention='core'", "--config.model.attention=core"),
    Way(f"{TABLE} --config.allocator=best", "keep, system", "--config.allocator=system"),
    # Tables.
    Way(f"{TABLE} --config.text=reviw", "mean review", "--config.text=review"),
    Way(f"{TABLE} --config.data=reviews.cvs", r"reviews\.csv", "--config.data=reviews.csv"),
    table("the cat sat,yes\nthe dog ran,no\n" * 10, "columns to their names", "--config.columns=text,label"),
    table(CSV, "columns empty", "--config.columns=", words="--config.columns=text,label"),
    table(CSV + "a,b,c\n", "rows.csv:22: .*--config.ragged to drop", "--config.ragged=drop"),
    table(CSV + '"open,yes\n', "set --config.quoting to no", "--config.quoting=no"),
    table(CSV.replace("label", "text"), "name each column once", CSV),
    table(CSV.replace(",", "|"), "delimiter", "--config.delimiter=|", name="rows.txt"),
    table(CSV.replace(",", "|"), "set --config.delimiter to", "--config.delimiter=|"),
    table("text,label\n" + "a b,0.5\nb c,0.7\n" * 9 + "c,x\n", "set --config.kind to class", "--config.kind=class"),
    table("text,label\n" + "a b,0.5\nb c,bad\n", "mend", CSV),
    table("text,label\n" + "a b,0.3\nb c,0.7\n" * 9 + "c,nan\n", "leave the cell empty",
          "text,label\n" + "a b,0.3\nb c,0.7\n" * 9),
    table("text,label\n" + "the cat,yes\n" * 9, "add rows", CSV),
    table(CSV, "validation_share to 0.05", "--config.validation_share=0.05", words="--config.validation_share=0.01"),
    table("text,label\na,0.5\n", "validation_share to 0$", "--config.validation_share=0", words="--config.kind=number"),
    table('{"text": "the cat", "label": ["a", "b"]}\n{"text": "a dog", "label": ["a"]}\n' * 9, "kind to classes",
          "--config.kind=classes", name="rows.jsonl", words="--config.kind=class"),
    table('{"text": "the cat", "label": {"a": 2, "b": 1}}\n{"text": "a dog", "label": {"a": 1, "b": 1}}\n' * 9,
          "normalize", "--config.normalize=true", name="rows.jsonl"),
    table('{"text": "the cat", "label": "a"\n', "one object", LINES, name="rows.jsonl"),
    Way(f"{TABLE} --config.validation=held.csv", "mend it", "", {"held.csv": "review,liked\nthe cat,maybe\n"},
        {"held.csv": "review,liked\nthe cat,yes\n"}),
    Way("evaluate --model=classifier --data=other.csv", "set --text to", "--text=words",
        {"other.csv": "words,liked\nthe cat,yes\n"}),
    Way("predict --model=classifier --output=out.csv --input=other.csv", "set --text to", "--text=words",
        {"other.csv": "words\nthe cat\n"}),
    Way("evaluate --model=classifier --data=other.csv", "set --label to", "--label=tag",
        {"other.csv": "review,tag\nthe cat,yes\n"}),
    Way("evaluate --model=classifier --data=other.csv", "--columns", "--columns=review,liked",
        {"other.csv": "the cat,yes\nthe dog,no\n"}),
    Way("predict --model=classifier --output=out.csv --input=other.csv", "set --ragged to drop", "--ragged=drop",
        {"other.csv": "review\nthe cat\na,b\n"}),
    Way(f"{EVALUATE} --split=test", "name the file", EVALUATE),
    # Questions.
    Way(f"{SQUAD} --config.window_step=20", "set --config.window_step to 10", "--config.window_step=10"),
    Way(f"{SQUAD} --config.max_length=6", "set --config.max_question to 1 and --config.window_step to 2",
        "--config.max_question=1 --config.window_step=2"),
    Way(f"{SQUAD} --config.validation_share=0.1", "validation_share to 0$", "--config.validation_share=0"),
    Way(f"{BIO} --config.annotators=anna,-ben", "not both", "--config.annotators="),
    Way(f"{BIO} --config.votes=most", "soft", "--config.votes=soft"),
    # Tags.
    Way(f"{TAGGING} --config.scheme=iob1 --config.data=plain.txt", "scheme to plain", "--config.scheme=plain",
        {"plain.txt": "the D\ncat N\n\nthe D\ndog N\n"}),
    Way(f"{TAGGING} --config.data=broken.txt", "mend the line", "", {"broken.txt": "mary B-PER\nsat\n\nthe O\n"},
        {"broken.txt": "mary B-PER\nsat O\n\nthe O\ncat O\n"}),
    Way(f"{TAGGING} --config.tags=5", "set .*tags", "--config.tags=-1"),
    # Texts, and pretraining on them.
    Way(f"{PREPARE} --config.corpus=none/*.txt", "no such file", "--config.corpus=text.txt"),
    Way(f"{PREPARE} --config.documents=best", "must be one of auto", "--config.documents=auto"),
    Way(f"{PREPARE} --config.encoding=utf9", "name one such as latin-1", "--config.encoding=latin-1"),
    Way(f"{PREPARE} --out=prepared", "overwrite to True", "--config.overwrite=True"),
    Way(f"{PREPARE} --out=filled", "another folder", "--out=another", {"filled/mine.txt": "x"}),
    Way(f"{PREPARE} --config.corpus=rows.jsonl", "set .*text_column to", "--config.text_column=body",
        {"rows.jsonl": '{"body": "The cat sat. The dog ran."}\n' * 3}),
    Way(f"{PRETRAIN} --config.data=", "bert prepare wrote", "--config.data=prepared"),
    Way(f"{PRETRAIN} --config.max_length=600", "raise config.model.max_position_embeddings",
        "--config.model.max_position_embeddings=600"),
    Way(f"{PRETRAIN} --config.model.num_heads=3", "the nearest is 129", "--config.model.hidden_size=129"),
    Way(f"{PRETRAIN} --config.examples.mask_rate=15", "BERT uses 0.15", "--config.examples.mask_rate=0.15"),
    Way(f"{PRETRAIN} --config.probes=('hello',)", r"has no \[MASK\]", f"{PRETRAIN} --config.probes=('hello[MASK]',)"),
    Way(f"{PRETRAIN} --config.init_fresh=mlm", "leave it out", "--config.init_fresh="),
    Way(f"{PRETRAIN} --workdir=filled", "choose another folder", "--workdir=run", {"filled/mine.txt": "x"}),
    # Models.
    Way(f"{TAG} --input_format=columns", "set --input_format to lines", "--input_format=lines",
        {"a.jsonl": '{"tokens": ["the", "cat"]}\n'}),
    Way(f"{EXPORT} --out={TINY}", "choose another directory", "--out=copy"),
    Way(f"{EXPORT} --out=copy --format=torch", "huggingface", "--format=huggingface"),
    Way(f"{EXPORT} --out=filled", "choose a new or an empty directory", "--out=copy", {"filled/mine.txt": "x"}),
    Way(FILL, "the text is missing", "the[MASK]sat"),
    Way(f"{FILL} the [MASK]", "one text in quotes", f"{FILL} the[MASK]"),
]  # fmt: skip


@pytest.fixture(scope="module")
def files(tmp_path_factory, prepared) -> dict[str, pathlib.Path]:
    """Name -> a file or folder that commands of `WAYS` read."""
    folder = tmp_path_factory.mktemp("files")
    write(folder / "reviews.csv", reviews(80, 0))
    asked = {"question": "who sat ?", "answers": [{"text": "mary", "answer_start": 0}]}
    questions = [{"id": f"q{i}"} | asked for i in range(4)]
    context = "mary sat on the mat . the cat and the dog ran ."
    squad = {"data": [{"title": "a", "paragraphs": [{"context": context, "qas": questions}]}]}
    (folder / "squad.json").write_text(json.dumps(squad))
    (folder / "tags.txt").write_text("mary B-PER\nsat O\n\nthe O\ncat O\n\n" * 9)
    (folder / "text.txt").write_text("The cat sat on the mat. The dog ran.\n\nMary sat. The cat ran.\n\n" * 9)
    source = sources.read(TINY, fresh=("sequence_classifier",), labels=("no", "yes"))
    head = {part: source.params["head"][part] for part in ("pooler", "sequence_classifier")}
    job = {"files": {"text": "review", "label": "liked"}, "scored": {"metrics": ["accuracy"], "positive": "yes"}}
    export.save_model_directory(
        folder / "classifier", source.config, {"encoder": source.params["encoder"], "head": head}, source.tokenizer,
        labels=("no", "yes"), extra=ClassificationOptions("class", ("review",), 16).to_json() | job,
    )  # fmt: skip
    return {path.name: path for path in folder.iterdir()} | {"prepared": prepared}


class Trained(Exception):
    """The first training step would come now."""


def run(words: str) -> None:
    command, *rest = words.split()
    try:
        RUN[command]([command, *rest])
    except InputError as error:
        raise InputError(command_line.as_options(str(error))) from None
    except Trained:
        pass


def fit(run, init_params=None):
    raise Trained


@pytest.mark.usefixtures("one_device")
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.advice)
def test_the_advice_of_a_message_leads_on(way, files, tmp_path, monkeypatch):
    monkeypatch.setattr(train, "fit", fit)
    (tmp_path / "configs").symlink_to(pathlib.Path(__file__).resolve().parents[2] / "configs")
    for name, path in files.items():
        (shutil.copytree if path.is_dir() else shutil.copy)(path, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    for name, text in way.files.items():
        pathlib.Path(name).parent.mkdir(exist_ok=True)
        pathlib.Path(name).write_text(text)
    with pytest.raises(InputError, match=way.advice) as error:
        run(way.words)
    assert "\n" not in str(error.value)
    for name, text in way.mended.items():
        pathlib.Path(name).write_text(text)
    run(way.change if way.change.split("=")[0].split(" ")[0] in RUN else f"{way.words} {way.change}")
