"""Names that other tools give to settings, and ours: one table, for messages and for docs/. foreign_flags.py reads it.

Tools: transformers' TrainingArguments and its scripts (run_mlm_flax, run_glue, run_qa, run_ner), Sentence-Transformers'
trainer, Google's scripts (run_pretraining, run_classifier, run_squad), NVIDIA's BERT, fairseq, AllenNLP, spaCy.
foreign_tools.py says which tool has which names. Here are files, columns, logs and uploads; foreign_training.py has
the settings of training.
"""

from launch import foreign_training
from launch.foreign_values import (
    ABSENT,
    FINETUNING,
    IN_PREPARING,
    IN_PRETRAINING,
    NOT_NEEDED,
    SWITCH,
    TEXT,
    TRAINING,
    YES_NO,
    OneOf,
    Ours,
    none,
    other,
)


def _wandb(value: str) -> str:
    return "wandb"


_PREPARED = "--config.data names the folder that bert prepare wrote from the text"
_RESUME = "a run resumes from its newest checkpoint where its command is given again, with no other option"
_OFFLINE = "nothing is downloaded or executed from a hub: name folders and files that are here"
_HELD_OUT = "held-out text is split off beforehand: --config.validation_share of bert prepare"
_NOT_DOWNLOADED = "data sets are not downloaded; name a file, or a folder that save_to_disk wrote"
_ALL_ROWS = "all rows of a file are used; make a shorter file, such as by head -n 1000"
_LOGS = "metrics.jsonl and tensorboard/ are in the folder of a run"
_PUSH = none("a trained model is uploaded by: bert push DIR USER/NAME")

# The names of theirs, the same thing in other tools -> ours, in the order of preference: the first counts that the
# command at hand has. Where it has none of them, the first tells which commands do: those in brackets.
# fmt: off
_FILES: dict[str, dict[str, tuple[Ours, ...]]] = {
    TRAINING: {
        # files and folders
        "model_name_or_path model_name init_checkpoint bert_model pretrained_model_name_or_path initial_checkpoint "
        "finetune_from_model restore_file model": (
            Ours("init_from"), Ours("--model"), Ours("--source"),
            none("the text is prepared without a model; --config.vocab takes a model's folder for its vocabulary",
                 IN_PREPARING),
        ),
        "output_dir result_dir save_dir checkpoint_dir checkpoint_path output_path output_file output destdir "
        "serialization_dir": (Ours("--workdir"), Ours("--output"), Ours("--out"), Ours("--show")),
        "overwrite_output_dir": (
            Ours("overwrite", value=SWITCH),
            none("a run is resumed, never overwritten; name a new --workdir, or remove the old one", "--workdir"),
            none("a finished file of the same name is replaced"),
        ),
        "resume_from_checkpoint resume auto_resume init_from_scratch reset_optimizer reset_dataloader reset_meters "
        "reset_lr_scheduler recover": (none(_RESUME),),
        "include_package user_dir": (none("a task of your own is written as docs/own_task.md shows"),),
        # what is logged, evaluated and saved
        "logging_steps log_interval log_freq logging_interval logging_strategy": (Ours("log_every"),),
        "logging_dir tensorboard_logdir json_summary": (none(_LOGS),),
        "report_to with_tracking": (
            Ours("tracker", _LOGS + " always", OneOf(wandb="wandb", mlflow="mlflow", tensorboard="", none="")),
        ),
        "wandb_project wandb_entity use_wandb wandb": (
            Ours("tracker", "WANDB_PROJECT and WANDB_ENTITY before the command say where to", _wandb),
        ),
        "run_name wandb_run_name wandb_name": (none("a run is named as its folder: --workdir", "--workdir"),),
        "save_total_limit keep_checkpoint_max keep_interval_updates keep_last_epochs": (Ours("keep_checkpoints"),),
        "log_level log_level_replica log_on_each_node log_format logging_first_step logging_nan_inf_filter "
        "disable_tqdm disable_progress_bar show_progress_bar verbose_logging report_loss debug skip_memory_metrics "
        "include_tokens_per_second include_num_input_tokens_seen include_for_metrics include_inputs_for_metrics "
        "save_safetensors save_on_each_node save_only_model no_epoch_checkpoints skip_checkpoint "
        "restore_callback_states_from_checkpoint enable_jit_checkpoint": (NOT_NEEDED,),
        "do_train do_eval evaluate_during_training": (
            none("bert pretrain and bert finetune train and evaluate; bert evaluate only evaluates"),
        ),
        "do_predict do_test": (none("run bert predict with the model afterwards"),),
        # where things come from, and go to
        "push_to_hub hub_model_id hub_strategy hub_always_push repo_id repo_type folder_path": (_PUSH,),
        "hub_private_repo": (Ours("--private", value=YES_NO), _PUSH),
        "hub_revision create_pr": (Ours("--revision", "the branch to upload to", other), _PUSH),
        "commit_message": (Ours("--message"), _PUSH),
        "hub_token token use_auth_token": (
            none("only bert push needs a token: from HF_TOKEN in the environment, or hf auth login"),
        ),
        "trust_remote_code cache_dir model_revision revision": (none(_OFFLINE),),
        "use_fast_tokenizer use_slow_tokenizer overwrite_cache skip_cache streaming low_cpu_mem_usage "
        "remove_unused_columns dataloader_pin_memory dataloader_persistent_workers dataloader_prefetch_factor "
        "shuffle_train_dataset": (NOT_NEEDED,),
        "dataloader_num_workers preprocessing_num_workers num_workers dataset_num_proc num_proc": (
            Ours("workers"), none("batches are prepared while the device computes; no setting is needed"),
        ),
        "max_train_samples max_eval_samples max_predict_samples max_eval_steps": (none(_ALL_ROWS),),
    },
    FINETUNING: {
        "task_name task criterion": (
            none("the file of settings chooses the task: --config=configs/glue.py:TASK for GLUE, else "
                 "configs/table.py, configs/tagging.py, configs/squad.py or configs/bio_mrc.py", "epochs"),
            none("bert pretrain has no tasks; config.objective chooses what is predicted", IN_PRETRAINING),
            none("the task comes with the model"),
        ),
        "validation_file predict_file dev_file eval_file valid_file eval_data_file validation_data_path validpref "
        "dev": (
            Ours("validation"), Ours("--input"), Ours("--data"), none(_HELD_OUT),
        ),
        "test_file": (Ours("--input"), Ours("--data"), none("run bert evaluate with the model afterwards")),
        "text_column_name text_column text_column_names sentence1_key sentence_column": (
            Ours("words"), Ours("text_column"), Ours("--text_column"), Ours("text"), Ours("--text"),
            none("columns are chosen by bert prepare: --config.text_column of bert prepare", IN_PRETRAINING),
            none("this command reads no table"),
        ),
        "text_column_delimiter": (Ours("text", "two columns with a comma are a pair", other),),
        "label_column_name label_column label_column_names": (Ours("label"), Ours("tags"), Ours("--label")),
        "label_all_tokens": (Ours("labelled_pieces", value=OneOf(true="all", false="first")),),
        "num_labels num_classes label_list labels_file labels": (none("the classes are read from the data"),),
        "return_entity_level_metrics": (Ours("metrics", "entities are always scored by kind; empty: all", other),),
    },
    TEXT: {
        "train_file train_data_file train_data input_file input_files data_dir input_dir data_path train_data_path "
        "trainpref train": (
            Ours("corpus"), none(_PREPARED, IN_PRETRAINING), Ours("--input"), Ours("--data"), Ours("data"),
        ),
        "dataset_name dataset_config_name dataset": (
            Ours("corpus", _NOT_DOWNLOADED, other), none(_PREPARED, IN_PRETRAINING),
            Ours("--input", _NOT_DOWNLOADED, other), Ours("--data", _NOT_DOWNLOADED, other),
            Ours("data", _NOT_DOWNLOADED, other),
        ),
        "tokenizer_name vocab_file vocab_path tokenizer tokenizer_file": (
            Ours("vocab"),
            none("the vocabulary comes with the prepared text: --config.vocab of bert prepare", IN_PRETRAINING),
            none("the vocabulary comes with the model"),
        ),
        "do_lower_case lower_case lowercase do_lowercase": (
            Ours("lower_case", value=SWITCH),
            none("it comes with the prepared text: --config.lower_case of bert prepare", IN_PRETRAINING),
            none("the model's folder says it: do_lower_case in tokenizer_config.json"),
        ),
        "min_frequency limit_alphabet": (
            none("--config.vocab_size alone says how large a vocabulary is", "vocab_size"),
        ),
        "line_by_line": (
            Ours("sentences", "split: each line is a paragraph; lines: a sentence; the report says what was "
                 "detected", other),
            none("lines are read by bert prepare: --config.sentences of bert prepare", IN_PRETRAINING),
        ),
    },
    "bert embed": {
        "pooling_mode pooling_strategy": (Ours("--pooling"),),
        "normalize_embeddings": (Ours("--normalize", value=YES_NO),),
        "prompt_name": (Ours("--prompt"),),
        "convert_to_numpy convert_to_tensor multi_process": (NOT_NEEDED,),
    },
    "bert fill-mask": {
        "top_k topk": (none("each class has its probability in the output", "--rank"), Ours("--top")),
        "return_all_scores": (none("each class has its probability in the output"),),
    },
    "bert generate": {
        "do_sample": (Ours("--temperature", "1 draws by the model's probabilities", OneOf(true="1", false="0")),),
        "num_beams num_return_sequences repetition_penalty no_repeat_ngram_size": (ABSENT,),
    },
    "bert export": {
        "framework opset monolith no_post_process library_name atol": (NOT_NEEDED,),
    },
}
# fmt: on
TABLE: dict[str, dict[str, tuple[Ours, ...]]] = {
    home: _FILES.get(home, {}) | foreign_training.TABLE.get(home, {})
    for home in dict.fromkeys((*_FILES, *foreign_training.TABLE))
}
