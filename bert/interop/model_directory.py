"""What a model directory of any format holds, and how parts that it lacks are made new."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from bert.config import BertConfig
from bert.errors import InputError
from bert.interop.parameters import Params
from bert.interop.report import Report
from bert.interop.weight_names import PARTS, WITH_CLASSES
from bert.text.tokenizer import Tokenizer


class ModelDirectory(NamedTuple):
    """What a model directory holds.

    params: nested dict of float32 NumPy arrays, {"encoder": ..., "head": ...}.
    parts: what is there, keys of `weight_names.PARTS`: "encoder" and the parts of its head.
    tokenizer: None where the directory has no vocabulary.
    labels: names of the classifier's classes, in the order of its scores; of a model without one what its config says.
    extra: the keys of config.json that describe neither the encoder nor the classes (a task's settings).
    """

    config: BertConfig
    params: Params
    parts: tuple[str, ...]
    tokenizer: Tokenizer | None
    report: Report
    labels: tuple[str, ...]
    extra: dict[str, Any]


def with_fresh(
    found: ModelDirectory, parts: Sequence[str], labels: Sequence[str] | None = None, seed: int = 0
) -> ModelDirectory:
    """The model with those parts of a head made new that it lacks; the report says which.

    A classifier of other classes than ``labels`` is replaced. The encoder is never made new.

    Args:
      parts: such as "pooler" or "sequence_classifier".
      labels: names of the classes, needed for a new classifier; in another order they are the same classes.
      seed: of the new parts.

    Raises:
      InputError: an unknown part, or a classifier without names for its classes.
    """
    known = [part for part in PARTS if part != "encoder"]
    for part in parts:
        if part not in known:
            raise InputError(f"{part!r} cannot be made new; it must be one of {', '.join(known)}")
    head = dict(found.params["head"])
    classifier = next((part for part in WITH_CLASSES if part in parts), None)
    if classifier:
        _drop_other_classifier(head, found, classifier, labels)
    absent = [part for part in parts if part not in head]
    if classifier in absent:
        if not labels:
            raise InputError(f"{classifier} can only be made new with names for its classes; give labels")
        found = found._replace(labels=tuple(labels))
    for part in absent:
        head[part] = _fresh(part, found.config, len(found.labels), seed)
    found.report.fresh += absent
    return found._replace(params={**found.params, "head": head}, parts=("encoder", *head))


def _drop_other_classifier(head: Params, found: ModelDirectory, wanted: str, labels: Sequence[str] | None) -> None:
    """Takes a classifier out of ``head`` that is of another kind than ``wanted`` or has other classes."""
    given = next((part for part in WITH_CLASSES if part in head), None)
    if given is None or (given == wanted and (labels is None or sorted(labels) == sorted(found.labels))):
        return
    for leaf, value in sorted(head.pop(given).items()):
        classes = f"{len(labels)} classes ({', '.join(labels)})" if labels else "its classes"
        found.report.replaced[f"{given}/{leaf}"] = f"shape {list(value.shape)}; {wanted} is made new for {classes}"


def _fresh(part: str, config: BertConfig, classes: int, seed: int) -> Params:
    """Newly initialised parameters of a part, as float32 NumPy arrays."""
    from bert.model import heads  # Linen is slow to import, and rarely needed here

    key = jax.random.fold_in(jax.random.key(seed), list(PARTS).index(part))
    hidden_BTD = np.zeros((1, 1, config.hidden_size), np.float32)
    inputs = [hidden_BTD, np.zeros((config.vocab_size, config.hidden_size), np.float32)]
    made = heads.part(part, config, classes).init(key, *inputs[: 2 if part == "mlm" else 1])
    return jax.tree.map(np.asarray, made["params"])
