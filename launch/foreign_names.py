"""Names that other tools give to settings, and ours: one table, for messages and for docs/. foreign_flags.py reads it.

Tools: transformers' TrainingArguments and its scripts (run_mlm_flax, run_glue, run_qa, run_ner), Sentence-Transformers'
trainer, Google's scripts (run_pretraining, run_classifier, run_squad), NVIDIA's BERT, fairseq. foreign_tools.py says
which tool has which names.
"""

from collections.abc import Callable
from typing import NamedTuple

Convert = Callable[[str], str | None]  # a value of theirs -> ours; None: there is none, or it is not known


def same(value: str) -> str | None:
    return value or None


def other(value: str) -> None:
    """Of settings that count in another unit, so that the user computes the value."""


class OneOf(dict[str, str]):
    """By a table from theirs to ours; an option without a value is true."""

    def __call__(self, value: str) -> str | None:
        return self.get({"": "true", "1": "true", "0": "false"}.get(value, value).lower().replace("-", "_"))


class Ours(NamedTuple):
    """What stands for a foreign name in a command that has ``name``: a setting, or an option such as "--model"; "" is
    in each command. Without ``value`` it is not to be given, and ``note`` says what to do instead."""

    name: str
    note: str = ""
    value: Convert | None = same


def none(note: str, of: str = "") -> Ours:
    return Ours(of, note, None)


_SWITCH = OneOf(true="True", false="False")
_HALF = OneOf(
    true="bfloat16", false="float32", no="float32", fp16="bfloat16", float16="bfloat16", bf16="bfloat16",
    bfloat16="bfloat16", float32="float32", o0="float32", o1="bfloat16", o2="bfloat16",
)  # fmt: skip
_SCHEDULE = OneOf(
    linear="linear", cosine="cosine", polynomial="polynomial", polynomial_decay="polynomial", constant="constant",
    constant_with_warmup="constant", inverse_sqrt="inverse_sqrt", warmup_stable_decay="wsd", warmuplinear="linear",
    warmupcosine="cosine", warmupconstant="constant", constantlr="constant", poly="polynomial",
)  # fmt: skip
_OPTIMIZER = OneOf(
    adamw="adamw", adamw_torch="adamw", adamw_torch_fused="adamw", adamw_hf="adamw", adam="adamw", lamb="lamb",
    fusedlamb="lamb", bertadam="google_adamw",
)  # fmt: skip
_EVERY = OneOf(epoch="1")


def _metric(value: str) -> str | None:
    return value.removeprefix("eval_") or None


def _percent(value: str) -> str | None:
    return f"{int(value) / 100:g}" if value.isdecimal() else None


_STEPS = "bert pretrain counts optimizer steps; it prints how many an epoch has"
_BATCH = "batch_size counts the rows of a step over all devices: per device * devices * accumulation"
_WHILE_TRAINING = "masks and pairs are drawn in training, new ones in each epoch, by settings of bert pretrain"
_PREPARED = "--config.data names the folder that bert prepare wrote from the text"
_RUNS_AGAIN = "an evaluation saves a checkpoint, and their number in an epoch is set"
_MODEL_HAS_SIZES = "sizes come with the weights, from the config.json or bert_config.json beside them"
_LENGTH_OF_MODEL = "the longest row is that of the model, as its training set it"
_RESUME = "a run resumes from its newest checkpoint where its command is given again, with no other option"
_OFFLINE = "nothing is downloaded or executed from a hub: name folders and files that are here"
_IN_PRETRAINING, _IN_PREPARING = "examples.objective", "corpus"  # settings that no other command has
_NO_PADDING = "short examples share a row, so padding needs no setting"
_COMPILED = "each step is compiled as one program for any device"

# The names of theirs, the same thing in other tools -> ours, in the order of preference: the first counts that the
# command at hand has. Where it has none of them, the first tells which commands do: those in brackets.
_TRAINING, _FINETUNING, _PRETRAINING = "bert pretrain and bert finetune", "bert finetune", "bert pretrain"
_SQUAD, _TEXT = "bert finetune with configs/squad.py", "bert prepare"
# fmt: off
TABLE: dict[str, dict[str, tuple[Ours, ...]]] = {
    _TRAINING: {
        # files and folders
        "model_name_or_path model_name init_checkpoint bert_model pretrained_model_name_or_path initial_checkpoint "
        "finetune_from_model restore_file model": (
            Ours("init_from"), Ours("--model"), Ours("--source"),
            none("the text is prepared without a model; --config.vocab takes a model's folder for its vocabulary",
                 _IN_PREPARING),
        ),
        "config_name bert_config_file config_file model_config model_type": (
            Ours("model.size", "tiny, mini, small, medium, base or large; config.model has each size by itself", other),
            none(_MODEL_HAS_SIZES),
        ),
        "output_dir result_dir save_dir checkpoint_dir checkpoint_path output_path output_file": (
            Ours("--workdir"), Ours("--output"), Ours("--out"), Ours("--show"),
        ),
        "overwrite_output_dir": (
            Ours("overwrite", value=_SWITCH),
            none("a run is resumed, never overwritten; name a new --workdir, or remove the old one", "--workdir"),
            none("a finished file of the same name is replaced"),
        ),
        "resume_from_checkpoint resume auto_resume init_from_scratch reset_optimizer": (none(_RESUME),),
        # steps and batches
        "per_device_train_batch_size per_gpu_train_batch_size batch_size_per_device micro_batch_size": (
            Ours("batch_size", _BATCH, other), Ours("--batch_size"),
        ),
        "train_batch_size max_sentences global_batch_size": (Ours("batch_size", _BATCH), Ours("--batch_size")),
        "per_device_eval_batch_size per_gpu_eval_batch_size eval_batch_size predict_batch_size batch_size_valid": (
            Ours("--batch_size"), none("evaluations compute as many rows at a time as training does"),
        ),
        "gradient_accumulation_steps update_freq accumulation_steps grad_accum_steps": (
            Ours("micro_batches", "a batch of batch_size is computed in so many parts"),
        ),
        "gradient_checkpointing checkpoint_activations activation_checkpointing": (Ours("model.remat", value=_SWITCH),),
        "max_seq_length max_seq_len block_size tokens_per_sample max_source_length": (
            Ours("max_length"), Ours("--max_length"),
            none("rows get their length in training: --config.max_length of bert pretrain", _IN_PREPARING),
            none(_LENGTH_OF_MODEL),
        ),
        "pad_to_max_length pad_to_multiple_of group_by_length drop_last": (none(_NO_PADDING),),
        # the optimizer
        "learning_rate lr peak_lr base_lr max_lr": (Ours("optimizer.learning_rate"),),
        "lr_scheduler_type lr_scheduler lr_schedule scheduler lr_decay_style": (
            Ours("optimizer.schedule", value=_SCHEDULE),
        ),
        "warmup_ratio warmup_proportion": (Ours("warmup_share"),),
        "weight_decay weight_decay_rate": (Ours("optimizer.weight_decay"),),
        "optim optimizer optimizer_type": (Ours("optimizer.name", value=_OPTIMIZER),),
        "adafactor": (Ours("optimizer.name", "adamw, google_adamw or lamb; there is no Adafactor", other),),
        "adam_beta1 beta1": (Ours("optimizer.b1"),),
        "adam_beta2 beta2": (Ours("optimizer.b2"),),
        "adam_betas": (Ours("optimizer.b1", "its second number is config.optimizer.b2", other),),
        "adam_epsilon adam_eps": (Ours("optimizer.eps"),),
        "max_grad_norm clip_norm gradient_clip_val": (Ours("optimizer.clip_norm"),),
        # the model
        "fp16 bf16 amp use_amp use_fp16 fp16_full_eval bf16_full_eval mixed_precision half_precision fp16_opt_level "
        "manual_fp16 torch_dtype precision dtype": (
            Ours("model.dtype", "bfloat16 has the range of float32 and needs no loss scaling; float16 is not "
                 "offered", _HALF), Ours("--dtype", "of the exported weights: float32, float16 or bfloat16"),
            none("a model is computed in the numbers that its training set"),
        ),
        "hidden_dropout_prob dropout": (Ours("model.hidden_dropout"),),
        "attention_probs_dropout_prob": (Ours("model.attention_dropout"),),
        # devices
        "no_cuda use_cpu device use_tpu tpu_name n_gpu num_gpus num_tpu_cores gpus master cuda use_mps_device": (
            none("all devices that JAX finds are used; JAX_PLATFORMS=cpu before the command keeps it on the CPU"),
        ),
        "local_rank world_size distributed_world_size distributed_port nproc_per_node horovod": (
            Ours("--coordinator", "under Slurm and Open MPI start the command in each task; elsewhere the others are "
                 "--num_processes and --process_id", other), none("this command runs in one process"),
        ),
        "fsdp deepspeed sharded_ddp ddp_backend": (
            Ours("mesh.mode", "dp, fsdp, tp or fsdp_tp", OneOf(full_shard="fsdp", fully_sharded="fsdp")),
        ),
        "torch_compile use_xla xla jit jit_mode_eval": (none(_COMPILED),),
        # what is logged, evaluated and saved
        "logging_steps log_interval log_freq logging_interval": (Ours("log_every"),),
        "logging_dir tensorboard_logdir json_summary report_to wandb_project": (
            none("metrics.jsonl and tensorboard/ are in the folder of a run"),
        ),
        "save_total_limit keep_checkpoint_max keep_interval_updates keep_last_epochs": (Ours("keep_checkpoints"),),
        "do_train do_eval evaluate_during_training": (
            none("bert pretrain and bert finetune train and evaluate; bert evaluate only evaluates"),
        ),
        "do_predict do_test": (none("run bert predict with the model afterwards"),),
        # where things come from
        "push_to_hub hub_model_id hub_token hub_strategy": (
            none("nothing is uploaded; bert export writes a directory that the hub takes"),
        ),
        "trust_remote_code cache_dir use_auth_token token model_revision revision use_fast_tokenizer overwrite_cache": (
            none(_OFFLINE),
        ),
        "random_seed data_seed set_seed seed": (Ours("seed"), Ours("--seed")),
        "dataloader_num_workers preprocessing_num_workers num_workers dataset_num_proc num_proc": (
            Ours("workers"), none("batches are prepared while the device computes; no setting is needed"),
        ),
        "max_train_samples max_eval_samples max_predict_samples": (
            none("all rows of a file are used; make a shorter file, such as by head -n 1000"),
        ),
    },
    _FINETUNING: {
        "num_train_epochs num_epochs max_epoch n_epochs epochs max_epochs": (
            Ours("epochs"), Ours("total_steps", _STEPS, other),
        ),
        "task_name task": (
            none("the file of settings chooses the task: --config=configs/glue.py:TASK for GLUE, else "
                 "configs/table.py, configs/tagging.py, configs/squad.py or configs/bio_mrc.py", "--workdir"),
            none("the task comes with the model"),
        ),
        "validation_file predict_file dev_file eval_file valid_file eval_data_file": (
            Ours("validation"), Ours("--input"), Ours("--data"),
            none("held-out text is split off beforehand: --config.validation_share of bert prepare"),
        ),
        "test_file": (Ours("--input"), Ours("--data"), none("run bert evaluate with the model afterwards")),
        "validation_split_percentage validation_split": (
            Ours("validation_share", "a share: 5 percent are 0.05", _percent),
            none("held-out text is split off beforehand: --config.validation_share of bert prepare"),
        ),
        "text_column_name text_column text_column_names sentence1_key sentence_column": (
            Ours("words"), Ours("text_column"), Ours("--text_column"), Ours("text"), Ours("--text"),
            none("columns are chosen by bert prepare: --config.text_column of bert prepare", _IN_PRETRAINING),
            none("this command reads no table"),
        ),
        "label_column_name label_column label_column_names": (Ours("label"), Ours("tags"), Ours("--label")),
        "label_all_tokens": (Ours("labelled_pieces", value=OneOf(true="all", false="first")),),
        "num_labels num_classes label_list labels_file": (none("the classes are read from the data"),),
        "return_entity_level_metrics": (Ours("metrics", "entities are always scored by kind; empty: all", other),),
        "early_stopping_patience early_stopping patience": (
            Ours("patience", "counted in evaluations"),
            none("bert pretrain trains all of --config.total_steps", _IN_PRETRAINING),
        ),
        "early_stopping_threshold": (Ours("patience", "any better value counts", other),),
        "load_best_model_at_end save_best_model": (
            Ours("metric", "model/ is always that of the best evaluation; this setting chooses by what", other),
            none("model/ is of the last step"),
        ),
        "metric_for_best_model best_checkpoint_metric": (Ours("metric", value=_metric),),
        "greater_is_better maximize_best_checkpoint_metric": (none("each metric knows which way is better"),),
        "label_smoothing_factor label_smoothing": (Ours("label_smoothing"),),
        "layerwise_lr_decay layer_wise_lr_decay layerwise_learning_rate_decay llrd lr_layer_decay layer_lr_decay": (
            Ours("optimizer.layer_decay"),
        ),
        "freeze_layers freeze_encoder freeze_n_layers freeze_embeddings num_frozen_layers": (
            Ours("optimizer.frozen_layers", "how many of the lowest blocks; 0: the embeddings only", other),
        ),
    },
    _SQUAD: {
        "doc_stride": (
            Ours("window_step", "from the start of a window to the start of the next, as in Google's run_squad; in "
                 "run_qa doc_stride is the overlap of two windows", other),
        ),
        "max_query_length": (Ours("max_question"),),
        "max_answer_length": (Ours("max_answer"), Ours("max_span")),
        "n_best_size": (Ours("best"),),
        "version_2_with_negative": (Ours("no_answer", value=OneOf(true="yes", false="no")),),
        "null_score_diff_threshold": (none("the threshold is chosen on the validation questions"),),
    },
    _PRETRAINING: {
        "warmup_steps num_warmup_steps warmup_updates": (
            Ours("optimizer.warmup_steps"),
            Ours("warmup_share", "bert finetune takes the warm-up as a share of all steps", other),
        ),
        "save_checkpoints_steps save_steps save_interval_updates num_steps_per_checkpoint save_strategy": (
            Ours("save_every"), Ours("evaluations_per_epoch", _RUNS_AGAIN, _EVERY),
        ),
        "eval_steps evaluation_steps eval_strategy evaluation_strategy validate_interval_updates": (
            Ours("evaluate_every"), Ours("evaluations_per_epoch", value=_EVERY),
        ),
        "max_steps num_train_steps max_update total_num_update train_steps total_training_steps": (
            Ours("total_steps"), Ours("steps"),
        ),
        "mlm_probability masked_lm_prob mask_prob mlm_prob masking_ratio": (
            Ours("examples.mask_rate"), none(_WHILE_TRAINING, _IN_PREPARING),
        ),
        "max_predictions_per_seq": (
            Ours("examples.mask_budget", "0 chooses it from mask_rate and max_length"),
            none(_WHILE_TRAINING, _IN_PREPARING),
        ),
        "dupe_factor": (none("each epoch draws new masks and pairs, so the text is not repeated"),),
        "short_seq_prob": (Ours("examples.short_probability"), none(_WHILE_TRAINING, _IN_PREPARING)),
        "do_whole_word_mask wwm whole_word_mask whole_word_masking mask_whole_words": (
            Ours("examples.whole_words", value=_SWITCH), none(_WHILE_TRAINING, _IN_PREPARING),
        ),
        "random_token_prob": (Ours("examples.random_share"),),
        "leave_unmasked_prob": (
            Ours("examples.mask_share", "the chosen tokens that mask_share and random_share leave stay as they are",
                 other),
        ),
        "num_hidden_layers encoder_layers": (Ours("model.num_layers"), none(_MODEL_HAS_SIZES)),
        "num_attention_heads encoder_attention_heads": (Ours("model.num_heads"), none(_MODEL_HAS_SIZES)),
        "encoder_embed_dim": (Ours("model.hidden_size"), none(_MODEL_HAS_SIZES)),
        "encoder_ffn_embed_dim": (Ours("model.intermediate_size"), none(_MODEL_HAS_SIZES)),
        "max_positions": (Ours("model.max_position_embeddings"), none(_MODEL_HAS_SIZES)),
    },
    _TEXT: {
        "train_file train_data_file train_data input_file input_files data_dir input_dir data_path": (
            Ours("corpus"), none(_PREPARED, _IN_PRETRAINING), Ours("--input"), Ours("--data"), Ours("data"),
        ),
        "dataset_name dataset_config_name dataset": (
            Ours("corpus", "data sets are not downloaded; name a folder that save_to_disk wrote", other),
            none(_PREPARED, _IN_PRETRAINING), Ours("--input", "data sets are not downloaded; name a file", other),
            Ours("--data", "data sets are not downloaded; name a file", other),
            Ours("data", "data sets are not downloaded; name a file, or a folder that save_to_disk wrote", other),
        ),
        "tokenizer_name vocab_file vocab_path tokenizer tokenizer_file": (
            Ours("vocab"),
            none("the vocabulary comes with the prepared text: --config.vocab of bert prepare", _IN_PRETRAINING),
            none("the vocabulary comes with the model"),
        ),
        "do_lower_case lower_case lowercase do_lowercase": (
            Ours("lower_case", value=_SWITCH),
            none("it comes with the prepared text: --config.lower_case of bert prepare", _IN_PRETRAINING),
            none("the model's folder says it: do_lower_case in tokenizer_config.json"),
        ),
        "line_by_line": (
            Ours("sentences", "split: each line is a paragraph; lines: a sentence; the report says what was "
                 "detected", other),
            none("lines are read by bert prepare: --config.sentences of bert prepare", _IN_PRETRAINING),
        ),
    },
    "bert embed": {
        "pooling_mode pooling_strategy": (Ours("--pooling"),),
        "normalize_embeddings": (Ours("--normalize", value=OneOf(true="yes", false="no")),),
        "prompt_name": (Ours("--prompt"),),
    },
    "bert fill-mask": {"top_k topk": (Ours("--top"),)},
}
