"""Fine-tuning beside transformers in PyTorch (slow, where torch is installed): the same losses, step by step."""

import json
import random

import jax
import numpy as np
import pytest

from bert.data.encoded_examples import ExampleSettings, TrainingBatches, epoch_order
from bert.interop import export, sources
from bert.prediction import classification
from bert.training import optim, sharding
from bert.training.step import Setup, abstract_state, init_state, make_train_step
from tasks.classification.job import Classification
from tests.torch_package import import_torch

STEPS, BATCH, LENGTH, RATE = 20, 16, 24, 1e-3
WORDS = [
    "the",
    "cat",
    "dog",
    "sat",
    "on",
    "mat",
    "good",
    "bad",
    "movie",
    "great",
    "awful",
    "book",
    "city",
    "paris",
    "france",
    "who",
    "what",
    "in",
    "is",
    "fun",
]
KINDS = {"class": ("no", "perhaps", "yes"), "number": ("LABEL_0",), "classes": ("a", "b", "c")}


def made_up(kind: str) -> tuple[list[tuple[str, ...]], np.ndarray]:
    """Pairs of made-up sentences and their targets."""
    rng, number = random.Random(0), np.random.default_rng(0)
    texts = [tuple(" ".join(rng.choices(WORDS, k=rng.randint(1, 9))) for _ in range(2)) for _ in range(STEPS * BATCH)]
    if kind == "number":
        return texts, number.uniform(0, 5, (len(texts), 1)).astype(np.float32)
    if kind == "classes":
        return texts, number.integers(0, 2, (len(texts), 3)).astype(np.float32)
    return texts, number.dirichlet(np.ones(3), len(texts)).astype(np.float32)  # soft labels


@pytest.mark.slow
@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_losses_of_twenty_steps_are_those_of_torch(tiny_directory, tmp_path, kind, packed):
    """Same start, same batches, no dropout, AdamW with warm-up, decay and clipping: each loss within 1e-4."""
    torch = import_torch()
    import transformers

    labels = KINDS[kind]
    found = sources.read(tiny_directory, fresh=("pooler", "sequence_classifier"), labels=labels)
    params = {"encoder": found.params["encoder"], "head": {p: found.params["head"][p] for p in
                                                           ("pooler", "sequence_classifier")}}  # fmt: skip
    extra = classification.ClassificationOptions(kind, (), LENGTH).to_json()
    export.save_model_directory(tmp_path / "start", found.config, params, found.tokenizer, labels=labels, extra=extra)
    texts, targets = made_up(kind)
    encoded = classification.encode(
        texts, found.tokenizer, LENGTH, targets=targets, target_weights=np.ones(len(texts), np.float32)
    )
    settings = ExampleSettings(BATCH, LENGTH if not packed else 64, packed, seed=3)
    ours = our_losses(found.config, params, TrainingBatches(encoded, settings), kind, len(labels))

    theirs = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "start").eval()
    assert json.loads((tmp_path / "start" / "config.json").read_text())["problem_type"] == theirs.config.problem_type
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "start")
    order = epoch_order(encoded.length_N, BATCH, (settings.seed, 0))
    decayed = [p for n, p in theirs.named_parameters() if not n.endswith("bias") and "LayerNorm" not in n]
    others = [p for n, p in theirs.named_parameters() if n.endswith("bias") or "LayerNorm" in n]
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}], lr=RATE, eps=1e-6
    )
    schedule = transformers.get_linear_schedule_with_warmup(optimizer, 4, STEPS)
    for step in range(STEPS):
        chosen = order[step * BATCH : (step + 1) * BATCH]
        a, b = ([texts[i][side] for i in chosen] for side in (0, 1))
        inputs = tokenizer(a, b, padding=True, truncation=True, max_length=LENGTH, return_tensors="pt")
        loss = theirs(**inputs, labels=torch.tensor(targets[chosen])).loss if kind != "class" else None
        if loss is None:
            loss = torch.nn.functional.cross_entropy(theirs(**inputs).logits, torch.tensor(targets[chosen]))
        assert ours[step] == pytest.approx(loss.item(), abs=1e-4), step
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(theirs.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    assert np.std(ours) > 1e-3, "the losses move"


def our_losses(config, params, batches, kind, classes) -> list[float]:
    config = config.__class__(**{**vars(config), "hidden_dropout": 0.0, "attention_dropout": 0.0})
    task = Classification(kind, classes)
    rule = optim.OptimizerSettings(total_steps=STEPS, learning_rate=RATE, warmup_steps=4, weight_decay=0.1)
    mesh = sharding.make_mesh(devices=jax.devices()[:1])
    setup = Setup(task.model(config), task, rule, mesh)
    losses = []
    with jax.set_mesh(mesh):
        target = abstract_state(setup, batches(0))
        state, (step, read) = init_state(setup, target, batches(0), params), make_train_step(setup, target)
        for number in range(STEPS):
            state, told = step(state, sharding.place(batches(number), mesh))
            values = read(told)
            losses.append(values["loss"] / values["loss_count"])
    return losses
