"""Names that other tools give to settings of training: lengths, batches, steps, the optimizer, the model, masks."""

from launch.foreign_values import (
    ABSENT,
    FINETUNING,
    HAS_SIZES,
    IN_PREPARING,
    IN_PRETRAINING,
    NOT_NEEDED,
    PRETRAINING,
    SQUAD,
    SWITCH,
    TRAINING,
    OneOf,
    Ours,
    none,
    other,
    whole_number,
)

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
_RUNS_AGAIN = "an evaluation saves a checkpoint, and their number in an epoch is set"
_LENGTH_OF_MODEL = "the longest row is that of the model, as its training set it"
_HELD_OUT = "held-out text is split off beforehand: --config.validation_share of bert prepare"
_SIZE = "tiny, mini, small, medium, base or large; config.model has each size by itself"
_COMPILED = "each step is compiled as one program for any device"

# fmt: off
TABLE: dict[str, dict[str, tuple[Ours, ...]]] = {
    TRAINING: {
        # steps and batches
        "per_device_train_batch_size per_gpu_train_batch_size batch_size_per_device micro_batch_size max_sentences "
        "max_tokens": (Ours("batch_size", _BATCH, other), Ours("--batch_size")),
        "train_batch_size global_batch_size": (Ours("batch_size", _BATCH), Ours("--batch_size")),
        "per_device_eval_batch_size per_gpu_eval_batch_size eval_batch_size predict_batch_size batch_size_valid": (
            Ours("--batch_size"), none("evaluations compute as many rows at a time as training does"),
        ),
        "gradient_accumulation_steps update_freq accumulation_steps grad_accum_steps num_accumulation_steps "
        "num_gradient_accumulation_steps accumulate_gradient": (
            Ours("micro_batches", "a batch of batch_size is computed in so many parts"),
        ),
        "auto_find_batch_size": (Ours("micro_batches", "where memory is short, more parts of a batch", other),),
        "gradient_checkpointing checkpoint_activations activation_checkpointing": (Ours("model.remat", value=SWITCH),),
        "max_seq_length max_seq_len block_size tokens_per_sample max_source_length": (
            Ours("max_length"), Ours("--max_length"),
            none("rows get their length in training: --config.max_length of bert pretrain", IN_PREPARING),
            none(_LENGTH_OF_MODEL),
        ),
        "pad_to_max_length pad_to_multiple_of group_by_length length_column_name drop_last dataloader_drop_last": (
            none("short examples share a row, so padding needs no setting"),
        ),
        # the optimizer
        "learning_rate lr peak_lr base_lr max_lr learn_rate": (Ours("optimizer.learning_rate"),),
        "lr_scheduler_type lr_scheduler lr_schedule scheduler lr_decay_style": (
            Ours("optimizer.schedule", value=_SCHEDULE),
        ),
        "lr_poly_power lr_scheduler_kwargs": (Ours("optimizer.power", "of polynomial and google", other),),
        "end_learning_rate lr_end min_lr": (none("linear, polynomial and cosine schedules end at 0"),),
        "warmup_ratio warmup_proportion": (Ours("warmup_share"),),
        "weight_decay weight_decay_rate": (Ours("optimizer.weight_decay"),),
        "optim optimizer optimizer_type": (Ours("optimizer.name", value=_OPTIMIZER),),
        "adafactor": (Ours("optimizer.name", "adamw, google_adamw or lamb; there is no Adafactor", other),),
        "adam_beta1 beta1": (Ours("optimizer.b1"),),
        "adam_beta2 beta2": (Ours("optimizer.b2"),),
        "adam_betas": (Ours("optimizer.b1", "its second number is config.optimizer.b2", other),),
        "adam_epsilon adam_eps": (Ours("optimizer.eps"),),
        "max_grad_norm clip_norm gradient_clip_val grad_norm grad_clipping": (Ours("optimizer.clip_norm"),),
        "neftune_noise_alpha optim_args optim_target_modules encoder_layerdrop": (ABSENT,),
        # the model
        "fp16 bf16 amp use_amp use_fp16 fp16_full_eval bf16_full_eval mixed_precision half_precision fp16_opt_level "
        "manual_fp16 memory_efficient_fp16 torch_dtype precision dtype": (
            Ours("model.dtype", "bfloat16 has the range of float32 and needs no loss scaling; float16 is not "
                 "offered", _HALF), Ours("--dtype", "of the exported weights: float32, float16 or bfloat16", other),
            none("a model is computed in the numbers that its training set"),
        ),
        "loss_scale init_loss_scale fp16_init_scale fp16_scale_window threshold_loss_scale fp16_backend "
        "half_precision_backend": (none("there is no float16, so losses need no scale; leave it out"),),
        "config_name bert_config_file config_file model_config config_overrides": (
            Ours("model.size", _SIZE, other), HAS_SIZES,
        ),
        "model_type arch": (
            Ours("model.model_type", "for a BERT leave it out, and set config.model.size", other), HAS_SIZES,
        ),
        "hidden_dropout_prob dropout": (Ours("model.hidden_dropout"),),
        "attention_probs_dropout_prob": (Ours("model.attention_dropout"),),
        # devices
        "no_cuda use_cpu device cuda_device gpu_id use_tpu tpu_name tpu_zone gcp_project n_gpu num_gpus "
        "num_tpu_cores tpu_num_cores gpus master cuda use_mps_device": (
            none("all devices that JAX finds are used; JAX_PLATFORMS=cpu before the command keeps it on the CPU"),
        ),
        "local_rank world_size distributed_world_size distributed_port nproc_per_node horovod use_hvd": (
            Ours("--coordinator", "under Slurm and Open MPI start the command in each task; elsewhere the others are "
                 "--num_processes and --process_id", other), none("this command runs in one process"),
        ),
        "fsdp deepspeed sharded_ddp ddp_backend": (
            Ours("mesh.mode", "dp, fsdp, tp or fsdp_tp", OneOf(full_shard="fsdp", fully_sharded="fsdp")),
        ),
        "torch_compile torch_compile_backend torch_compile_mode torchdynamo use_xla enable_xla xla jit jit_mode_eval "
        "iterations_per_loop": (none(_COMPILED),),
        "full_determinism": (none("runs are the same each time, without a setting"),),
        "accelerator_config parallelism_config fsdp_config fsdp_min_num_params ddp_find_unused_parameters "
        "find_unused_parameters ddp_bucket_cap_mb ddp_broadcast_buffers ddp_timeout use_ipex tf32 use_liger_kernel "
        "liger_kernel_config tpu_metrics_debug torch_empty_cache_steps gradient_checkpointing_kwargs ray_scope "
        "allreduce_post_accumulation allreduce_post_accumulation_fp16 average_tokens_across_devices past_index "
        "use_legacy_prediction_loop prediction_loss_only eval_accumulation_steps eval_do_concat_batches "
        "batch_eval_metrics eval_use_gather_object label_names ignore_data_skip required_batch_size_multiple": (
            NOT_NEEDED,
        ),
        "random_seed data_seed set_seed seed shuffle_seed": (Ours("seed"), Ours("--seed")),
    },
    FINETUNING: {
        "num_train_epochs num_epochs max_epoch n_epochs epochs max_epochs": (
            Ours("epochs"), Ours("total_steps", _STEPS, other),
        ),
        "validation_split_percentage validation_split": (
            Ours("validation_share", "a share: 5 percent are 0.05", _percent), none(_HELD_OUT),
        ),
        "early_stopping_patience early_stopping patience": (
            Ours("patience", "counted in evaluations"),
            none("bert pretrain trains all of --config.total_steps", IN_PRETRAINING),
        ),
        "early_stopping_threshold": (Ours("patience", "any better value counts", other),),
        "load_best_model_at_end save_best_model": (
            Ours("metric", "model/ is always that of the best evaluation; this setting chooses by what", other),
            none("model/ is of the last step"),
        ),
        "metric_for_best_model best_checkpoint_metric": (Ours("metric", value=_metric),),
        "greater_is_better maximize_best_checkpoint_metric": (none("each metric knows which way is better"),),
        "metric_name": (Ours("metrics"), Ours("--metrics")),
        "label_smoothing_factor label_smoothing": (Ours("label_smoothing"),),
        "layerwise_lr_decay layer_wise_lr_decay layerwise_learning_rate_decay llrd lr_layer_decay layer_lr_decay": (
            Ours("optimizer.layer_decay"),
        ),
        "freeze_layers freeze_encoder freeze_n_layers freeze_embeddings num_frozen_layers": (
            Ours("optimizer.frozen_layers", "how many of the lowest blocks; 0: the embeddings only", other),
        ),
        "do_regression is_regression regression_target": (Ours("kind", value=OneOf(true="number", false="class")),),
        "ignore_mismatched_sizes": (none("a task gets a new head of its own size"),),
    },
    SQUAD: {
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
    PRETRAINING: {
        "warmup_steps num_warmup_steps warmup_updates": (
            Ours("optimizer.warmup_steps"),
            Ours("warmup_share", "bert finetune takes the warm-up as a share of all steps", other),
        ),
        "save_checkpoints_steps save_steps save_interval_updates num_steps_per_checkpoint save_strategy "
        "checkpointing_steps": (Ours("save_every"), Ours("evaluations_per_epoch", _RUNS_AGAIN, _EVERY)),
        "eval_steps evaluation_steps eval_strategy evaluation_strategy validate_interval_updates eval_frequency": (
            Ours("evaluate_every"), Ours("evaluations_per_epoch", value=_EVERY),
        ),
        "save_interval validate_interval": (
            Ours("evaluate_every", _STEPS, other), Ours("evaluations_per_epoch", "at least one", other),
        ),
        "eval_delay eval_on_start": (none("evaluations begin with the first interval"),),
        "max_steps num_train_steps max_update total_num_update train_steps total_training_steps": (
            Ours("total_steps", value=whole_number), Ours("steps", value=whole_number),
        ),
        "mlm": (Ours("objective", value=OneOf(true="mlm", false="causal")),),
        "mlm_probability masked_lm_prob mask_prob mlm_prob masking_ratio": (
            Ours("examples.mask_rate"), none(_WHILE_TRAINING, IN_PREPARING),
        ),
        "max_predictions_per_seq": (
            Ours("examples.mask_budget", "0 chooses it from mask_rate and max_length"),
            none(_WHILE_TRAINING, IN_PREPARING),
        ),
        "dupe_factor": (none("each epoch draws new masks and pairs, so the text is not repeated"),),
        "short_seq_prob": (Ours("examples.short_probability"), none(_WHILE_TRAINING, IN_PREPARING)),
        "do_whole_word_mask wwm whole_word_mask whole_word_masking mask_whole_words": (
            Ours("examples.whole_words", value=SWITCH), none(_WHILE_TRAINING, IN_PREPARING),
        ),
        "random_token_prob": (Ours("examples.random_share"),),
        "leave_unmasked_prob": (
            Ours("examples.mask_share", "the chosen tokens that mask_share and random_share leave stay as they are",
                 other),
        ),
        "freq_weighted_replacement mask_multiple_length shorten_method": (ABSENT,),
        "num_hidden_layers encoder_layers": (Ours("model.num_layers"), HAS_SIZES),
        "num_attention_heads encoder_attention_heads": (Ours("model.num_heads"), HAS_SIZES),
        "encoder_embed_dim": (Ours("model.hidden_size"), HAS_SIZES),
        "encoder_ffn_embed_dim": (Ours("model.intermediate_size"), HAS_SIZES),
        "max_positions": (Ours("model.max_position_embeddings"), HAS_SIZES),
        "activation_fn": (Ours("model.hidden_act"), HAS_SIZES),
    },
}
