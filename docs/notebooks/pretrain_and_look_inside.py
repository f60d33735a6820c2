# %% [markdown]
# # Pretrain a model and look inside
#
# This notebook prepares text, pretrains a small BERT on it for a minute or two, fills masks before and after, looks at
# attention, searches with vectors of texts, and reads the curves.
#
# Cells that call `command` run the program `bert`, as you would type it in a terminal. The others use the Python
# interface; each says which command does the same.

# %%
import pathlib
import subprocess
import sys

import numpy as np

import bert

# %% [markdown]
# ## Settings
#
# Text of your own is better: `corpus = "texts/*.txt"`, and a few sentences like those in it, with `[MASK]` in the place
# of a word. With more steps, the model learns more.

# %% tags=["parameters"]
corpus = "installed-docs"  # the documentation of the installed Python packages; or a folder, files, a pattern
folder = "runs/notebook"  # everything that the cells write is in it
steps = 1_000
sentences = [
    "the shape of the [MASK] array is returned as a tuple of integers .",
    "raises a value error if the [MASK] is not valid .",
    "this function returns a new [MASK] of the same length .",
]
texts = [
    "Return the eigenvalues of a matrix.",
    "Raised when a file is not found.",
    "Compute the sine of each element.",
    "Open a connection to a server.",
]
query = "The determinant of an array."  # the most similar of the texts is searched for
more: list[str] = []  # settings of pretraining, such as "--config.batch_size=64"


# %%
def command(*words: object) -> None:
    """Runs the program `bert` with these words; what it prints appears below the cell."""
    print("bert", *words, flush=True)
    subprocess.run([sys.executable, "-m", "bert", *map(str, words)], check=True)


prepared, run = f"{folder}/prepared", f"{folder}/pretrained"

# %% [markdown]
# ## Prepare the text
#
# The command splits documents into sentences, learns a vocabulary, and writes token ids. The report says what was kept
# and what was dropped, and why. One document in twenty is held out: its scores show what the model has learnt. A
# finished folder is not prepared again.

# %%
command("prepare", f"--config.corpus={corpus}", "--config.validation_share=0.05", f"--out={prepared}")

# %% [markdown]
# ## Pretrain
#
# The recipe is that of `make pretrain`, with fewer steps. The model learns to predict masked words, and whether two
# segments follow each other. At the end, the command compares its answers to our sentences with those before training,
# when all weights were random.
#
# You can stop it: run the cell again, and it goes on at the newest checkpoint.

# %%
command(
    "pretrain",
    "--config=quickstart",
    f"--config.data={prepared}",
    f"--config.total_steps={steps}",
    "--config.warmup_share=0.1",
    f"--config.log_every={max(1, steps // 20)}",
    f"--config.evaluate_every={max(1, steps // 5)}",
    f"--config.probes={tuple(sentences)}",
    *more,
    f"--workdir={run}",
)

# %% [markdown]
# ## Look at the curves
#
# A falling loss means that the model learns. Where the validation loss rises while the training loss falls, it learns
# the text by heart. `report.html` in the folder of the run has all curves for a browser;
# [reports](../reports.md) explains them.

# %%
command("report", run, "--text")

# %% [markdown]
# ## A page for a browser: attention, step by step
#
# The page computes each number from the vectors of this model; choose a number to see the sum that makes it.
# [One step of attention](../attention.md) explains the steps.

# %%
page = pathlib.Path(folder, "attention.html").absolute()
command("fill-mask", f"--model={run}", sentences[0], f"--show={page}")
print(page.as_uri())

# %% [markdown]
# ## Fill masks
#
# `bert.load` reads a run, a directory of Hugging Face or a checkpoint of Google. For each mask, `fill_mask` gives the
# most probable entries of the vocabulary; the rest of the probability is spread over all others.

# %%
model = bert.load(run)
print(model)
for sentence in sentences:
    for candidates in model.fill_mask(sentence, top=4):
        shown = ", ".join(f"{token} {probability:.3f}" for token, probability in candidates)
        rest = 1 - sum(probability for _, probability in candidates)
        print(f"{sentence}\n  {shown}; all others {rest:.3f}")

# %% [markdown]
# ## Which tokens does the mask attend to?
#
# `model.attention` gives the weights of all heads of a layer, `[heads, queries, keys]`. Each row of weights adds up to
# 1. Weights say where a head takes its values from; they do not explain the prediction.

# %%
layer = model.config.num_layers - 1
attention = model.attention(sentences[0], layer=layer)
mask = attention.pieces.index("[MASK]")
for head, weights in enumerate(attention.weights[:, mask]):
    top = np.argsort(-weights)[:3]
    print(f"layer {layer}, head {head}: " + ", ".join(f"{attention.pieces[key]} {weights[key]:.3f}" for key in top))

# %% [markdown]
# `model.attention_steps` has each step of one head: queries, keys, values, scores, weights, the weighted average of the
# values (`mixture`), and the vectors that follow, up to the next layer. Here, the lengths of the vector at the mask:

# %%
attention_steps = model.attention_steps(sentences[0], layer=layer, head=0)
by_hand = attention_steps.weights[mask] @ attention_steps.v
np.testing.assert_allclose(by_hand, attention_steps.mixture[mask], atol=1e-5)
for name, lengths in attention_steps.norms().items():
    print(f"{name:18}{lengths[mask]:8.3f}")

# %% [markdown]
# ## Vectors of texts, and search
#
# `embed` makes one vector of each text, here the mean over its tokens; `search` finds the most similar ones. A model
# that was pretrained for minutes mostly compares words. The command is
# `bert embed --model=DIR --input=texts.txt --output=vectors.npy`.

# %%
vectors = model.embed(texts)
print(f"{len(vectors)} vectors of {vectors.shape[1]} numbers")
for index, similarity in model.search(query, vectors, top=3):
    print(f"{similarity:.3f}  {texts[index]}")

# %% [markdown]
# ## From here
#
# - [From your own csv to a model](own_csv_to_model.py) starts from this model.
# - [Exchange weights](../weights.md) with other libraries: `bert export`, or `bert.save(model, "out/")`.
