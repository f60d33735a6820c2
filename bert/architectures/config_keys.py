"""Keys of config.json that `BertConfig` has no field for: each is refused, ignored, or reported as unknown.

bert/interop/other_models.py checks the names and shapes of tensors.

Source: transformers ``configuration_utils.py`` and ``models/*/configuration_*.py``; google-research/bert.
"""

import re
from collections.abc import Collection, Mapping
from typing import Any

from bert.errors import InputError, check_choice

# By pretraining, by the tasks (their names are those of inference.TASKS) and by bert finetune.
WRITTEN_HERE = (
    *("written_by", "pretraining", "finetuning", "files", "scored", "card"),
    *("classification", "bio_mrc", "squad", "tagging", "pictures", "translation", "captioning"),
)
# They change no output of an encoder that is not a decoder: what a file was made by, words for tokenizers and
# generation, what is returned, how it is computed, the shares dropped in training.
_HARMLESS = """
    _attn_implementation _attn_implementation_autoset _attn_implementation_internal _commit_hash _name_or_path adapters
    architectures attn_implementation chunk_size_feed_forward classifier_dropout cross_attention_hidden_size
    custom_pipelines directionality do_lower_case dtype finetuning_task framework gradient_checkpointing id2label
    label2id language max_seq_length model_max_length model_type name name_or_path num_choices num_labels
    output_attentions output_hidden_states output_past pooler_fc_size pooler_num_attention_heads pooler_num_fc_layers
    pooler_size_per_head pooler_type prefix problem_type return_dict sentence_transformers task_specific_params
    tf_legacy_loss tie_encoder_decoder tie_word_embeddings tokenizer_class torch_dtype torchscript
    transformers.js_config transformers_version use_bfloat16 use_cache use_return_dict version xla_device
    bos_token_id cls_token_id decoder_start_token_id eos_token_id mask_token_id pad_token_id sep_token_id unk_token_id
    bad_words_ids begin_suppress_tokens diversity_penalty do_sample early_stopping encoder_no_repeat_ngram_size
    exponential_decay_length_penalty forced_bos_token_id forced_eos_token_id length_penalty max_length min_length
    no_repeat_ngram_size num_beam_groups num_beams num_return_sequences output_scores remove_invalid_values
    repetition_penalty return_dict_in_generate suppress_tokens temperature top_k top_p typical_p
"""
# Checked by `refuse_other_models`.
_CHECKED = "add_cross_attention embedding_size is_decoder is_encoder_decoder position_embedding_type pruned_heads"
_KNOWN = frozenset([*_HARMLESS.split(), *_CHECKED.split(), *WRITTEN_HERE])
# Keys of any value but none, 0 and false that say how else positions, norms or weights are.
_OTHER_COMPUTATION = {
    r"alibi": "linear position biases (ALiBi)",
    r"rotary|rope_": "rotary positions",
    r"relative_(attention|position)": "relative positions",
    r"pre_?norm|norm_first|normalize_before": "norms before the sublayers",
    r"quantization_config": "quantized weights (dequantize the model and save it again)",
}
# Beginnings of the names of transformers' classes of other models.
_FAMILIES = """
    Albert Bart BertGeneration BigBird Bros Camembert Canine ConvBert Data2VecText Deberta DebertaV2
    DistilBert Electra Ernie ErnieM Esm EuroBert FNet Flaubert Funnel GPT2 IBert JinaBert LayoutLM LayoutLMv2 LayoutLMv3
    Lilt Longformer Luke Lxmert MPNet MarkupLM MegatronBert MobileBert ModernBert Mra Nezha NomicBert Nystromformer
    OpenAIGPT QDQBert RemBert RoCBert RoFormer Roberta RobertaPreLayerNorm Splinter SqueezeBert T5 Tapas VisualBert XLM
    XLMRoberta XLMRobertaXL XLNet Xmod Yoso
"""


def architectures(values: Mapping[str, Any]) -> list[str]:
    """The classes that the file names, without TF and Flax prefixes."""
    named = values.get("architectures")
    named = named if isinstance(named, list) else [named]
    return [re.sub("^(TF|Flax)", "", name) for name in named if isinstance(name, str)]


def family_of(name: str) -> str:
    """The model's name in that of a class: "Bert" of BertForMaskedLM."""
    return re.split(r"(?<=.)(?:Model|LMHead|PreTrained|Encoder|Decoder|For[A-Z])", name)[0]


def says_bert(values: Mapping[str, Any]) -> bool:
    """Whether the file calls its model a BERT, by ``model_type`` or ``architectures``."""
    return values.get("model_type") == "bert" or any(family_of(name) == "Bert" for name in architectures(values))


def respelled(text: str, names: Mapping[str, str]) -> str:
    """A message with our names of fields as the file spells them; ``names``: ours -> the file's."""
    return re.sub("|".join(rf"\b{name}\b" for name in names), lambda match: names[match[0]], text)


def refuse_other_models(values: Mapping[str, Any], source: str) -> None:
    """Raises InputError for what is no BERT encoder, naming the key, its value and what it means."""
    if values.get("model_type") is not None:  # files from before 2020 and Google's have none
        check_choice(f"{source}: model_type", values["model_type"], ("bert",))
    if other := next((name for name in architectures(values) if family_of(name) in _FAMILIES.split()), None):
        raise InputError(f"{source}: architectures names {other:.100}, a model of another kind; load a BERT")
    positions = values.get("position_embedding_type", "absolute")
    check_choice(f"{source}: position_embedding_type", positions, ("absolute",))
    if values.get("is_decoder") not in (None, False, True):
        raise InputError(f"{source}: is_decoder is {values['is_decoder']!r:.100}; it must be true or false")
    for name in ("add_cross_attention", "is_encoder_decoder"):
        if values.get(name):
            way_out = "load an encoder, or both halves with model_type 'encoder-decoder'"
            raise InputError(f"{source}: {name} is {values[name]!r:.100}; {way_out}")
    if values.get("pruned_heads"):
        raise InputError(f"{source}: pruned_heads is not empty; load a model with all heads")
    width = values.get("embedding_size")
    if width not in (None, values.get("hidden_size")):
        both = f"embedding_size is {width!r:.100}, hidden_size {values.get('hidden_size')!r:.100}"
        raise InputError(f"{source}: {both}, as in ELECTRA and ALBERT; load a model with one width")
    for key, value in values.items():
        for pattern, meaning in _OTHER_COMPUTATION.items():
            if value and re.search(f"(^|_)({pattern})", key):
                raise InputError(f"{source}: {key} is {value!r:.100}: {meaning}; load a plain BERT")


def notes(values: Mapping[str, Any], held: Collection[str], source: str, *, family: str = "Bert") -> list[str]:
    """One line each for classes and for keys that nothing here reads; the keys ``held`` are read elsewhere.

    ``family``: what the names of the model's classes begin with.
    """
    lines = []
    if others := [name for name in architectures(values) if family_of(name) != family]:
        read = f"not known here; read as a {family.upper() if family == 'Bert' else family}"
        lines.append(f"{source}: architectures names {', '.join(others)[:200]}, {read}")
    known = _KNOWN.union(held)
    if unknown := sorted(key for key, value in values.items() if key not in known and value is not None):
        shown = ", ".join(key[:60] for key in unknown[:12]) + (", ..." if len(unknown) > 12 else "")
        lines.append(f"{source}: not known here, so without effect, whatever they mean elsewhere: {shown}")
    return lines


def notes_of_own(values: Mapping[str, Any], held: Collection[str], source: str) -> list[str]:
    """`notes` of a file that only this library reads, whatever classes it names."""
    return notes({name: value for name, value in values.items() if name != "architectures"}, held, source)
