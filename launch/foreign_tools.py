"""Which names of `foreign_names.TABLE` each tool has, in the order of its help: for pages that compare it with us."""

_TRAINER = """
    output_dir overwrite_output_dir do_train do_eval do_predict per_device_train_batch_size per_device_eval_batch_size
    gradient_accumulation_steps learning_rate weight_decay adam_beta1 adam_beta2 adam_epsilon max_grad_norm
    num_train_epochs max_steps lr_scheduler_type warmup_ratio warmup_steps optim eval_strategy eval_steps save_strategy
    save_steps save_total_limit load_best_model_at_end metric_for_best_model greater_is_better early_stopping_patience
    early_stopping_threshold label_smoothing_factor logging_dir logging_steps report_to seed fp16 bf16 use_cpu
    local_rank fsdp deepspeed torch_compile gradient_checkpointing dataloader_num_workers group_by_length
    resume_from_checkpoint push_to_hub
"""
_SCRIPTS = """
    model_name_or_path config_name tokenizer_name cache_dir trust_remote_code dataset_name train_file validation_file
    max_seq_length pad_to_max_length preprocessing_num_workers max_train_samples
"""
TOOLS: dict[str, tuple[str, ...]] = {
    tool: tuple(names.split())
    for tool, names in {
        "TrainingArguments": _TRAINER,
        "run_mlm_flax": f"{_SCRIPTS} validation_split_percentage mlm_probability line_by_line dtype adafactor",
        "run_glue": f"task_name {_SCRIPTS} test_file text_column_names label_column_name",
        "run_qa": f"{_SCRIPTS} doc_stride max_answer_length n_best_size version_2_with_negative "
        "null_score_diff_threshold",
        "run_ner": f"{_SCRIPTS} text_column_name label_column_name label_all_tokens return_entity_level_metrics",
        "SentenceTransformerTrainer": "model_name_or_path max_seq_length pooling_mode normalize_embeddings prompt_name "
        "output_path evaluation_steps",
        "Google run_pretraining": "bert_config_file input_file output_dir init_checkpoint max_seq_length "
        "max_predictions_per_seq do_train do_eval train_batch_size eval_batch_size learning_rate num_train_steps "
        "num_warmup_steps save_checkpoints_steps use_tpu vocab_file do_lower_case do_whole_word_mask random_seed "
        "dupe_factor masked_lm_prob short_seq_prob",
        "Google run_classifier and run_squad": "data_dir bert_config_file task_name vocab_file output_dir "
        "init_checkpoint do_lower_case max_seq_length do_train do_eval do_predict train_batch_size eval_batch_size "
        "predict_batch_size learning_rate num_train_epochs warmup_proportion save_checkpoints_steps train_file "
        "predict_file doc_stride max_query_length n_best_size max_answer_length version_2_with_negative "
        "null_score_diff_threshold",
        "NVIDIA BERT": "input_dir config_file bert_model init_checkpoint max_predictions_per_seq train_batch_size "
        "learning_rate max_steps warmup_proportion gradient_accumulation_steps fp16 amp num_steps_per_checkpoint "
        "log_freq checkpoint_activations json_summary",
        "fairseq": "restore_file save_dir tokens_per_sample max_sentences update_freq lr lr_scheduler "
        "warmup_updates total_num_update max_update optimizer adam_betas adam_eps clip_norm weight_decay dropout "
        "mask_prob random_token_prob leave_unmasked_prob mask_whole_words encoder_layers encoder_embed_dim "
        "encoder_ffn_embed_dim encoder_attention_heads max_positions log_interval save_interval_updates "
        "keep_interval_updates distributed_world_size num_workers",
    }.items()
}
