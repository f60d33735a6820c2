"""Names of models on the Hugging Face hub where a folder is expected: how to get the model, and whether it can be read.

Nothing is downloaded here, so a name is only recognised by its form. Source: huggingface_hub 2.4 (``hf download``).
"""

import os
import pathlib
import re

_GPTS = r"(distil)?gpt2(-(medium|large|xl))?|openai-gpt"  # whole names of causal models that can be loaded
# Words in the names of models -> what they are, none of which can be loaded; the first that fits counts.
_OTHERS = {
    r"modern-?bert|ettin": "a ModernBERT",
    r"xlm|camembert|multilingual-e5|bge-m3|paraphrase-multilingual": "an XLM-RoBERTa or of its kind",
    r"distilroberta|roberta|bertweet|phobert|codebert": "a RoBERTa",
    r"distil-?bert": "a DistilBERT",
    r"(?<![a-z])albert": "an ALBERT",
    r"deberta": "a DeBERTa",
    r"electra": "an ELECTRA",
    r"mobilebert|squeezebert|convbert|bigbird|big-bird|longformer|nomic-bert|jina|canine|fnet": "another architecture",
    r"mpnet": "an MPNet",
    r"(?<![a-z])(m|by|flan-|sentence-|gtr-)?t5(?![a-z0-9])": "a T5",
    r"gpt|llama|mistral|qwen|gemma|opt-|bloom|(?<![a-z])bart(?![a-z])|pegasus|xlnet": "no encoder like BERT",
}
# Bare names that the hub keeps under an owner.
_OWNERS = {
    r"bert-(base|large)-.+": "google-bert",
    r"gpt2(-(medium|large|xl))?|openai-gpt": "openai-community",
    r"distilgpt2": "distilbert",
    r"(all|multi-qa|msmarco|paraphrase|nli|stsb)-.+": "sentence-transformers",
}
_BERTS = r"bert|minilm|bge-|gte-|e5-|sentence-transformers"  # in names of models that can be one
_LOCAL = ("runs", "run", "models", "model", "prepared", "data", "out", "output", "checkpoints", "tmp", "exports")


def shown(path: str | os.PathLike[str]) -> str:
    """The path as it was typed, also where `pathlib` made one slash of the two in an address."""
    return re.sub(r"^(https?|hf):/+", r"\1://", str(path))


def advice(path: str | os.PathLike[str]) -> str:
    """The end of a message on a path that is not there, if it has the form of a model's name on the hub; else ''."""
    text = shown(path).rstrip("/")
    name = re.sub(r"^(hf://|(https?://)?(huggingface\.co|hf\.co)/)(models/)?|/tree/[^/]+$", "", text)
    if not _is_model(name, is_address=name != text):
        return ""
    model = name.rpartition("/")[2].lower()
    loads = re.fullmatch(_GPTS, model)
    if not loads and (what := next((what for words, what in _OTHERS.items() if re.search(words, model)), None)):
        known = "google-bert/bert-base-uncased"
        return f"by its name it is {what}, which cannot be loaded here; take a BERT, such as {known}"
    if "/" not in name:
        owner = next((owner for form, owner in _OWNERS.items() if re.fullmatch(form, name)), "OWNER")
        name = f"{owner}/{name}"
    return f"nothing is downloaded; where there is a network, run hf download {name} --local-dir DIR, then pass DIR"


def _is_model(name: str, *, is_address: bool) -> bool:
    """Whether a path that is not there can be meant as "name" or "owner/name" on the hub."""
    if not re.fullmatch(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?", name):
        return False
    owner, _, model = name.rpartition("/")
    if is_address or pathlib.Path(model).suffix[1:].isalpha():  # such as vocab.txt
        return is_address
    if owner:  # a folder that is there, or is called as folders are, is meant as one
        return not pathlib.Path(owner).exists() and owner not in _LOCAL
    return any(re.search(words, model.lower()) for words in (_BERTS, *_OTHERS))
