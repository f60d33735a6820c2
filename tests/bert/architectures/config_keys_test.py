"""Keys of other people's config.json: each is refused, known to be harmless, or reported."""

import pytest
import transformers

from bert import prediction
from bert.architectures import config_keys
from bert.architectures.bert import BertConfig
from bert.errors import InputError

TINY = {"vocab_size": 100, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
OTHERS = [
    ({"model_type": "roberta"}, "model_type is 'roberta'"),
    ({"model_type": ["bert"]}, r"model_type is \['bert'\]"),
    ({"architectures": ["RobertaForMaskedLM"]}, "architectures names RobertaForMaskedLM"),
    ({"model_type": "bert", "architectures": ["XLMRobertaModel"]}, "architectures names XLMRobertaModel"),
    ({"architectures": ["TFElectraForPreTraining"]}, "architectures names ElectraForPreTraining"),
    ({"architectures": "AlbertModel"}, "architectures names AlbertModel"),
    ({"architectures": ["BertGenerationEncoder"]}, "architectures names BertGenerationEncoder"),
    ({"position_embedding_type": "relative_key_query"}, "position_embedding_type is 'relative_key_query'"),
    ({"position_embedding_type": None}, "position_embedding_type is None"),
    ({"is_decoder": "yes"}, "is_decoder is 'yes'"),
    ({"add_cross_attention": True}, "add_cross_attention is True"),
    ({"is_encoder_decoder": True}, "is_encoder_decoder is True"),
    ({"pruned_heads": {"0": [1]}}, "pruned_heads is not empty"),
    ({"embedding_size": 16}, "embedding_size is 16, hidden_size 32"),
    ({"quantization_config": {"load_in_8bit": True}}, "quantization_config .*dequantize"),
    ({"alibi_starting_size": 512}, "alibi_starting_size is 512.*ALiBi"),
    ({"rope_theta": 10000.0}, "rope_theta .*rotary"),
    ({"relative_attention": True}, "relative_attention is True"),
    ({"prenorm": True}, "prenorm is True.*before the sublayers"),
]


@pytest.mark.parametrize(("values", "words"), OTHERS, ids=lambda v: str(v)[:40])
def test_what_is_no_bert_is_refused_by_the_key(values, words):
    with pytest.raises(InputError, match=f"^my.json: {words}"):
        BertConfig.from_json(TINY | values, source="my.json")


@pytest.mark.parametrize(
    "values",
    [
        {"model_type": None, "europe_rank": 3},
        {"architectures": ["BertForMaskedLM"], "pruned_heads": {}, "embedding_size": 32, "is_decoder": False},
        {"architectures": None, "relative_attention": False, "use_cache": False, "chunk_size_feed_forward": 8},
        {"architectures": ["FlaxBertModel"], "torch_dtype": "float16", "classifier_dropout": 0.3, "prenorm": None},
    ],
)
def test_a_plain_bert_is_read_whatever_else_it_says(values):
    assert BertConfig.from_json(TINY | values) == BertConfig.from_json(TINY)


def test_keys_that_nothing_reads_are_noted():
    """Not those that are known, nor those without a value."""
    (note,) = BertConfig.json_notes(TINY | {"layer_norm_epsilon": 1e-3, "moe\n": 4, "nothing": None}, source="my.json")
    assert note.startswith("my.json: not known here")
    assert note.endswith("layer_norm_epsilon, moe\n")
    (note,) = BertConfig.json_notes(TINY | {"architectures": ["MyTagger", "BertModel"]})
    assert "MyTagger" in note
    assert len(BertConfig.json_notes({f"key{i}" * 50: i for i in range(1000)})[0]) < 1200


def test_every_key_of_transformers_and_ours_is_known():
    """Of the configuration that the installed version writes, and of the tasks whose settings stand in an export."""
    config = BertConfig.from_json(transformers.BertConfig().to_dict())
    assert config == BertConfig.of_size("base", vocab_size=30522)
    assert BertConfig.json_notes(transformers.BertConfig(architectures=["BertModel"]).to_dict()) == []
    assert set(prediction.TASKS) < set(config_keys.WRITTEN_HERE)
    assert BertConfig.json_notes({key: {"a": 1} for key in ("files", "scored", "finetuning")}) == []


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("BertModel", "Bert"),
        ("BertForPreTraining", "Bert"),
        ("BertLMHeadModel", "Bert"),
        ("RobertaPreLayerNormForMaskedLM", "RobertaPreLayerNorm"),
        ("DebertaV2ForTokenClassification", "DebertaV2"),
        ("GPT2LMHeadModel", "GPT2"),
        ("T5EncoderModel", "T5"),
        ("Model", "Model"),
        ("", ""),
    ],
)
def test_family_of_a_class(name, family):
    assert config_keys.family_of(name) == family
