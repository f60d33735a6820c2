"""Code blocks of a model card: how to load and run the model in its own folder, with each program that reads it.

The tests run every block (tests/bert/interop/model_card_test.py).
"""

import json
import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from bert import prediction
from bert.tokenizer.tokenizer import Tokenizer

_TEXT, _OTHER = "Mary sat in New York.", "Where did Mary sit?"
_RUN = """with torch.no_grad():
    outputs = model(**inputs)
"""
# Task -> what a block of transformers prints of the outputs.
_PRINTED = {
    "fill_mask": """ids = outputs.logits[inputs["input_ids"] == tokenizer.mask_token_id].topk(5).indices
print(tokenizer.batch_decode(ids.flatten()))
""",
    "generate": "print(tokenizer.decode(outputs.logits[0, -1].argmax()))  # the next token\n",
    "class": "print(dict(zip(model.config.id2label.values(), outputs.logits.softmax(-1)[0].tolist())))\n",
    "classes": "print(dict(zip(model.config.id2label.values(), outputs.logits.sigmoid()[0].tolist())))\n",
    "number": "print(outputs.logits[0, 0].item())\n",
    "tokens": """tokens = tokenizer.convert_ids_to_tokens(inputs["input_ids"][0])
print([(token, model.config.id2label[i]) for token, i in zip(tokens, outputs.logits[0].argmax(-1).tolist())])
""",
    "squad": """start, end = outputs.start_logits.argmax().item(), outputs.end_logits.argmax().item()
print(tokenizer.decode(inputs["input_ids"][0, start : end + 1]))  # without the rules by which we choose a span
""",
    # The length penalty is transformers' formula, not ours.
    "translation": """search = {"attention_mask": inputs["attention_mask"], "num_beams": 5, "max_new_tokens": 50}
ids = model.generate(inputs["input_ids"], **search)
print(tokenizer.decode(ids[0], skip_special_tokens=True))
""",
    "": "print(outputs.last_hidden_state.shape)\n",
}


def task_of(parts: Collection[str], extra: Mapping[str, Any], *, causal: bool = False) -> str:
    """What the model is for: a task of `prediction.TASKS`, "fill_mask", "generate", or "" for an encoder alone."""
    named = [task for task in prediction.TASKS if task in extra]
    by_part = [task for task, part in prediction.TASKS.items() if part in parts]
    return next(iter([*named, *by_part]), ("generate" if causal else "fill_mask") if "mlm" in parts else "")


def columns(task: str, extra: Mapping[str, Any]) -> list[str]:
    """Names of the columns that a classifier reads; empty where the model does not say."""
    settings = extra.get("classification") if task == "classification" else None
    named = settings.get("text") if isinstance(settings, Mapping) else None
    return [name for name in named if isinstance(name, str)] if isinstance(named, Sequence) else []


def _texts(task: str, extra: Mapping[str, Any], tokenizer: Tokenizer) -> list[str]:
    """The text or pair that the examples run on."""
    if task == "fill_mask":
        return [f"The {tokenizer.vocab[tokenizer.mask_id]} sat on the mat."]
    if task in ("squad", "bio_mrc"):
        return [_OTHER, _TEXT]
    return [_TEXT, _OTHER] if len(columns(task, extra)) == 2 else [_TEXT]


def _row(task: str, extra: Mapping[str, Any]) -> Any:
    """An example for `LoadedModel.predict`."""
    if task in ("squad", "bio_mrc"):
        return {"question": _OTHER, "context": _TEXT}
    if names := columns(task, extra):
        return dict(zip(names, (_TEXT, _OTHER), strict=False))
    return _TEXT


def library(task: str, extra: Mapping[str, Any], tokenizer: Tokenizer | None) -> str:
    """With this library, from Python."""
    match extra.get(task):
        case {"shape": [*shape]} if task in ("pictures", "captioning"):
            load = 'import numpy as np\n\nimport bert\n\nmodel = bert.load(".")\n'
            return f"{load}print(model.predict(np.zeros({(1, *shape)})))\n"
    if tokenizer is None:
        call = "outputs([[1, 2, 3]])"
    elif task == "fill_mask":
        call = f"fill_mask({_texts(task, extra, tokenizer)[0]!r})"
    elif task == "generate":
        call = f"generate({_TEXT!r})"
    elif task:
        call = f"predict([{_row(task, extra)!r}])"
    else:
        call = f"embed([{_TEXT!r}])"
    return f'import bert\n\nmodel = bert.load(".")\nprint(model.{call})\n'


def commands(task: str, extra: Mapping[str, Any], tokenizer: Tokenizer) -> str:
    """With this library, from a shell; empty where a row has no form that each file of the task has."""
    if task == "fill_mask":
        return f"bert fill-mask --model=. {shlex.quote(_texts(task, extra, tokenizer)[0])}\n"
    if task == "generate":
        return f"bert generate --model=. {shlex.quote(_TEXT)}\n"
    if task == "classification" and columns(task, extra) and "files" in extra:
        row = shlex.quote(json.dumps(_row(task, extra), ensure_ascii=False))
        return f"echo {row} > new.jsonl\nbert predict --model=. --input=new.jsonl --output=answers.jsonl\n"
    return ""


def transformers(task: str, extra: Mapping[str, Any], architecture: str, tokenizer: Tokenizer) -> str:
    """With transformers; ``architecture``: its class that reads the whole head. Empty where no outputs are known."""
    name = re.sub("^(Bert|OpenAIGPT|GPT2)", "", architecture)
    loaders = {"fill_mask": "AutoModelForMaskedLM", "generate": "AutoModelForCausalLM",
               "translation": "AutoModelForSeq2SeqLM"}  # fmt: skip
    loader = loaders.get(task, "AutoModel" + name.removeprefix("Model"))
    kind = task
    if task == "classification":
        kinds = {"regression": "number", "multi_label_classification": "classes"}
        kind = kinds.get(str(extra.get("problem_type")), "class")
    elif loader.endswith("TokenClassification"):
        kind = "tokens"
    if kind not in _PRINTED or loader.endswith("NextSentencePrediction"):
        return ""
    texts = ", ".join(map(repr, _texts(task, extra, tokenizer)))
    return (
        f"import torch\nfrom transformers import {loader}, AutoTokenizer\n\n"
        f'tokenizer, model = AutoTokenizer.from_pretrained("."), {loader}.from_pretrained(".")\n'
        f'inputs = tokenizer({texts}, return_tensors="pt")\n{"" if kind == "translation" else _RUN}{_PRINTED[kind]}'
    )


def sentence_transformers() -> str:
    """With Sentence-Transformers."""
    return (
        "from sentence_transformers import SentenceTransformer\n\n"
        f'model = SentenceTransformer(".")\nprint(model.encode([{_TEXT!r}]).shape)\n'
    )


def onnx(task: str, extra: Mapping[str, Any], tokenizer: Tokenizer | None) -> str:
    """With onnxruntime."""
    run = (
        'session = onnxruntime.InferenceSession("model.onnx")\n'
        "inputs = {name: np.array([values], np.int64) for name, values in columns.items()}\n"
        "names = [output.name for output in session.get_outputs()]\n"
        "outputs = dict(zip(names, session.run(None, inputs)))\n"
        "print({name: value.shape for name, value in outputs.items()})\n"
    )
    names = ("input_ids", "attention_mask", "token_type_ids")
    return _program("import numpy as np\nimport onnxruntime\n", names, run, task, extra, tokenizer)


def stablehlo(task: str, extra: Mapping[str, Any], tokenizer: Tokenizer | None) -> str:
    """With JAX and flatbuffers."""
    run = (
        'with open("model.stablehlo", "rb") as file:\n'
        "    model = jax.jit(export.deserialize(bytearray(file.read())).call)\n"
        "outputs = model(*(np.array([values], np.int32) for values in columns.values()))\n"
        "print({name: value.shape for name, value in outputs.items()})\n"
    )
    names = ("token_ids", "type_ids", "mask")
    return _program("import jax\nimport numpy as np\nfrom jax import export\n", names, run, task, extra, tokenizer)


def _program(
    imports: str, names: Sequence[str], run: str, task: str, extra: Mapping[str, Any], tokenizer: Tokenizer | None
) -> str:
    """A block that makes the inputs ``names`` of a text, and runs a program on them."""
    kinds = {"ids": "ids", "type": "type_ids", "mask": "attention_mask"}
    if tokenizer is None:
        values = {"ids": "[1, 2, 3]", "type": "[0, 0, 0]", "mask": "[1, 1, 1]"}
        start = f"{imports}\n"
    else:
        values = {kind: f"encoding.{name}" for kind, name in kinds.items()}
        texts = ", ".join(map(repr, _texts(task, extra, tokenizer)))
        encode = f'encoding = Tokenizer.from_file("tokenizer.json").encode({texts})'
        start = f"{imports}from tokenizers import Tokenizer\n\n{encode}\n"
    of = {name: next(kind for kind in ("type", "mask", "ids") if kind in name) for name in names}
    pairs = ", ".join(f'"{name}": {values[of[name]]}' for name in names)
    return f"{start}columns = {{{pairs}}}\n{run}"
