# %% [markdown]
# # From your own csv to a model to share
#
# This notebook reads a table, fine-tunes a model on it, looks at the errors, chooses what to annotate next and how sure
# the model must be, and exports it with a model card.
#
# Cells that call `command` run the program `bert`, as you would type it in a terminal. The others use Python.

# %%
import collections
import csv
import importlib
import inspect
import json
import pathlib
import random
import subprocess
import sys

import numpy as np
import onnxruntime

import bert

# %% [markdown]
# ## Settings
#
# Your table may be a csv, with a header and a row for each text. Without one, the next cell makes a table of what is on
# this machine: the first lines of the documentation of SciPy's functions, and the module that each comes from.

# %% tags=["parameters"]
table = ""  # your csv
text, label = "text", "label"  # names of its columns
start = "runs/notebook/pretrained"  # a model to start from: a run or a directory; this is that of the other notebook
folder = "runs/notebook"  # everything that the cells write is in it
max_length = 64  # tokens of a text, at most; longer ones are cut. The model was pretrained on rows of 64
epochs = 20  # a few thousand rows need 3 to 5, a few hundred 20
learning_rate = 1e-3  # for a small model; 2e-5 to 5e-5 for one of the released sizes
more: list[str] = []  # other settings of fine-tuning, such as "--config.seeds=5"


# %%
def command(*words: object) -> None:
    """Runs the program `bert` with these words; what it prints appears below the cell."""
    print("bert", *words, flush=True)
    subprocess.run([sys.executable, "-m", "bert", *map(str, words)], check=True)


def write(path: pathlib.Path, rows: list[dict[str, str]]) -> None:
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


place = pathlib.Path(folder)
place.mkdir(parents=True, exist_ok=True)
if not table:
    table, found = str(place / "table.csv"), {}
    for name in ("linalg", "optimize", "signal", "stats"):
        module = importlib.import_module(f"scipy.{name}")
        for value in vars(module).values():
            if inspect.isroutine(value) and (documentation := inspect.getdoc(value)):
                for paragraph in documentation.split("\n\n")[:2]:
                    if "----" not in paragraph:  # the list of parameters
                        found[" ".join(paragraph.split())] = name
    write(pathlib.Path(table), [{text: paragraph, label: name} for paragraph, name in sorted(found.items())])

# %% [markdown]
# ## Look at the table
#
# How many rows has each class, and how long are the texts? Of rows with the same text, the first is kept: else a text
# could be in the training part and in the test.

# %%
with open(table, newline="", encoding="utf-8") as file:
    read = list(csv.DictReader(file))
rows = list({row[text]: row for row in reversed(read)}.values())
lengths = sorted(len(ids) for ids in bert.load(start).vocabulary.encode_ids([row[text] for row in rows]))
print(f"{len(rows)} rows with different texts, of {len(read)}")
print(f"tokens of a text: half of them up to {lengths[len(lengths) // 2]}, at most {lengths[-1]}")
for name, count in collections.Counter(row[label] for row in rows).most_common():
    print(f"{count:6}  {name}")
for row in random.Random(0).sample(rows, 3):
    print(f"{row[label]}: {row[text][:90]}")

# %% [markdown]
# ## Set parts aside
#
# Two tenths of the rows are for the test at the end, and one tenth is the validation part, which chooses the best of
# the evaluations. Two tenths stand for texts that nobody has annotated yet.

# %%
random.Random(1).shuffle(rows)
tenth = len(rows) // 10
test, validation, new, train = (
    rows[: 2 * tenth],
    rows[2 * tenth : 3 * tenth],
    rows[3 * tenth : 5 * tenth],
    rows[5 * tenth :],
)
for name, part in (("test", test), ("validation", validation), ("new", new), ("train", train)):
    write(place / f"{name}.csv", part)
    print(f"{len(part):6}  {name}")

# %% [markdown]
# ## Fine-tune
#
# `more = ["--config.seeds=5"]` trains five times and keeps the best model; with few rows, that is worth the time.
# `--config.baseline=True` fits a linear model on the words, too: what does BERT add?
# [Fine-tuning](../finetuning.md) explains the settings.

# %%
run = f"{folder}/finetuned"
command(
    "finetune",
    "--config=table",
    f"--config.data={place / 'train.csv'}",
    f"--config.validation={place / 'validation.csv'}",
    f"--config.text={text}",
    f"--config.label={label}",
    f"--config.init_from={start}",
    f"--config.max_length={max_length}",
    f"--config.epochs={epochs}",
    f"--config.optimizer.learning_rate={learning_rate}",
    *more,
    f"--workdir={run}",
)

# %% [markdown]
# ## Evaluate on the test part
#
# The command prints each score with a 95 % interval, a line for each class, the confusion matrix (a row is a true
# class, a column what the model said), and the rows with the worst predictions. Look for wrong labels there first.
# `report.html` in the folder of the run shows the same of the validation part, with the curves; see
# [reports](../reports.md).

# %%
command("evaluate", f"--model={run}", f"--data={place / 'test.csv'}", f"--out={place / 'scores.json'}")

# %% [markdown]
# `scores.json` has all of it for programs. Which classes are confused most often?

# %%
confusion = json.loads((place / "scores.json").read_text(encoding="utf-8"))["confusion"]
classes = confusion["labels"]
pairs = [
    (count, true, said)
    for true, counts in zip(classes, confusion["counts"], strict=True)
    for said, count in zip(classes, counts, strict=True)
    if true != said and count
]
for count, true, said in sorted(pairs, reverse=True)[:3]:
    print(f"{count:6}  {true} taken for {said}")

# %% [markdown]
# ## What should be annotated next?
#
# Texts of which the model is least sure often teach it most. The command is
# `bert predict --rank=entropy --top=10`, which writes them to a file; `--rank=margin` is another measure.

# %%
model = bert.load(run)
unsure = model.predict([row[text] for row in new], measure="entropy")
for index in sorted(range(len(new)), key=lambda i: -unsure[i]["entropy"])[:5]:
    print(f"{unsure[index]['entropy']:.3f} nats  {unsure[index]['label']}?  {new[index][text][:80]}")

# %% [markdown]
# ## How sure must the model be?
#
# If errors are dear, let the model answer only where its probability is high, and give the other texts to a person. The
# cell takes the lowest threshold for which at least 95 % of the answers on the validation part are right. The test part
# shows what it is worth: it may be less, because the threshold was chosen on few rows.


# %%
def answers(part: list[dict[str, str]]) -> list[tuple[float, bool]]:
    """(probability of the predicted class, whether it is right) of each row."""
    found = model.predict([row[text] for row in part])
    return [(max(p["probabilities"].values()), p["label"] == row[label]) for p, row in zip(found, part, strict=True)]


def kept(answers: list[tuple[float, bool]], threshold: float) -> list[bool]:
    """The answers whose probability reaches the threshold: right or not."""
    return [right for probability, right in answers if probability >= threshold]


def share(rights: list[bool]) -> float:
    return sum(rights) / len(rights) if rights else 0.0


chosen_on, tried_on = answers(validation), answers(test)
good = [p for p, _ in chosen_on if share(kept(chosen_on, p)) >= 0.95]
threshold = min(good, default=1.0)
print(f"threshold {threshold:.3f}")
for name, known in (("validation", chosen_on), ("test", tried_on)):
    rights = kept(known, threshold)
    print(f"{name}: {len(rights)} of {len(known)} rows get an answer; right: {share(rights):.3f}")
    print(f"{name}: all rows get an answer; right: {share(kept(known, 0)):.3f}")

# %% [markdown]
# ## Export
#
# `bert.save` writes a directory that transformers and this library load; `format="onnx"` writes a file for
# onnxruntime. The command is `bert export --source=RUN --out=DIR --license=mit`. Both come with a model card,
# `README.md`: data, settings, scores, and code that loads the model. Edit it; exports keep what you wrote.

# %%
shipped = bert.save(model, place / "shipped")
onnx = bert.save(model, place / "shipped-onnx", format="onnx")
print(*sorted(path.name for path in shipped.iterdir()), sep=", ")
print((shipped / "README.md").read_text(encoding="utf-8")[:1200])

# %% [markdown]
# ## Load the export and predict
#
# The same in transformers, which needs PyTorch:
#
# ```
# from transformers import pipeline
#
# pipeline("text-classification", model="runs/notebook/shipped")("Minimize a function.")
# ```

# %%
some = sorted(test, key=lambda row: len(row[text]))[:3]
some_texts = [row[text] for row in some]
again = bert.load(shipped)
predictions = again.predict(some_texts)
assert predictions == model.predict(some_texts)
for row, prediction in zip(some, predictions, strict=True):
    probability = max(prediction["probabilities"].values())
    print(f"{prediction['label']} {probability:.4f} (true: {row[label]})  {row[text][:80]}")

# %% [markdown]
# And the ONNX file in onnxruntime, for the first of these texts: token ids in, logits out. A softmax makes
# probabilities of them.

# %%
session = onnxruntime.InferenceSession(onnx / "model.onnx")
ids, type_ids = again.join(some_texts[0], None)
inputs = {"input_ids": [ids], "attention_mask": [[1] * len(ids)], "token_type_ids": [type_ids]}
(logits,) = session.run(["logits"], {name: np.array(value, np.int64) for name, value in inputs.items()})
exponentials = np.exp(logits[0] - logits[0].max())
for name, probability in zip(again.labels, exponentials / exponentials.sum(), strict=True):
    print(f"{name} {probability:.4f}")

# %% [markdown]
# ## From here
#
# `bert push runs/notebook/shipped NAME` uploads the directory to the Hugging Face Hub; see
# [publishing](../publishing.md).
