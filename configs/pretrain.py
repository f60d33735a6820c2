"""Pretraining on a prepared folder: masked words and next sentence, with the recipe of the BERT paper.

    --config=configs/pretrain.py:SIZE        SIZE: tiny, mini, small, medium, base (default), large

Values only. Steps are optimizer steps, lengths are tokens.
"""

from ml_collections import ConfigDict, config_dict


def get_config(size: str = "base") -> ConfigDict:
    config = ConfigDict()
    config.data = config_dict.placeholder(str)  # folder written by launch.prepare
    config.init_from = ""  # model, run directory or Google checkpoint whose weights to start from; empty: random ones
    config.init_fresh = ""  # parts of the head to make new where init_from lacks them: mlm, pooler, next_sentence
    config.seed = 0  # of weights, dropout, data order and masks
    config.total_steps = 1_000_000  # BERT appendix A.2
    config.batch_size = 256  # rows over all devices; BERT appendix A.2
    config.micro_batches = 1  # parts of a batch computed one after the other, for less memory
    config.max_length = 128  # tokens a row, [CLS] and [SEP] among them; BERT trains 90 % of its steps at 128

    config.model = ConfigDict()
    config.model.size = size  # as released by Google
    # Each replaces that size's own value, where it is set.
    config.model.num_layers = config_dict.placeholder(int)
    config.model.hidden_size = config_dict.placeholder(int)
    config.model.num_heads = config_dict.placeholder(int)
    config.model.intermediate_size = config_dict.placeholder(int)  # of the feed-forward part; not set: 4 hidden_size
    config.model.hidden_act = "gelu"  # the exact one (erf)
    config.model.hidden_dropout = 0.1  # BERT appendix A.2
    config.model.attention_dropout = 0.1
    config.model.max_position_embeddings = 512
    config.model.initializer_range = 0.02  # standard deviation of random weights; BERT appendix A.2
    # Of matrix products. bfloat16 is faster on accelerators, and rounds; float32 itself is rounded there by default
    # (TF32 on NVIDIA, bfloat16 passes on TPU) unless JAX_DEFAULT_MATMUL_PRECISION=highest is set.
    config.model.dtype = "float32"
    config.model.layer_loop = "auto"  # scan (one block compiled), unroll, or auto: unroll on CPU
    config.model.remat = False  # compute blocks again in the backward pass: less memory, a third more arithmetic
    # core, or fused: cuDNN's kernel on NVIDIA GPUs in bfloat16, for less memory; it needs attention_dropout=0.
    config.model.attention = "core"

    config.examples = ConfigDict()
    config.examples.objective = "nsp"  # nsp: next sentence; sop: sentence order (ALBERT); none: no pairs (RoBERTa)
    config.examples.packed = True  # several short examples in a row
    config.examples.max_examples = 0  # of them in a row at most; 0: an eighth of max_length
    config.examples.short_probability = 0.1  # share of examples with a random shorter length; BERT
    config.examples.mask_rate = 0.15  # share of tokens chosen for prediction; BERT section 3.1
    config.examples.mask_share = 0.8  # of the chosen: replaced by [MASK]
    config.examples.random_share = 0.1  # of the chosen: replaced by a random token; the rest stay
    config.examples.whole_words = False  # choose whole words instead of single pieces
    config.examples.mask_budget = 0  # predictions a row at most; 0: what the rate needs

    config.optimizer = ConfigDict()
    config.optimizer.name = "adamw"  # adamw, google_adamw (no bias correction), lamb
    config.optimizer.learning_rate = 1e-4  # the peak; BERT appendix A.2
    config.optimizer.schedule = "linear"  # linear, polynomial, google (decay counted from step 0), constant
    config.optimizer.warmup_steps = 10_000  # 1 % of training; BERT appendix A.2
    config.optimizer.power = 1.0  # of the polynomial decay
    config.optimizer.weight_decay = 0.01  # on kernels and embeddings only; BERT appendix A.2
    config.optimizer.b1 = 0.9
    config.optimizer.b2 = 0.999
    config.optimizer.eps = 1e-6  # google-research/bert, optimization.py
    config.optimizer.clip_norm = 1.0  # of the whole gradient; 0: no clipping; google-research/bert, optimization.py

    config.mesh = ConfigDict()
    config.mesh.mode = "dp"  # dp (copies), fsdp (split parameters), tp (split heads), fsdp_tp
    config.mesh.model_devices = 1  # devices that share one copy of the rows, for tp

    config.log_every = 100  # steps
    config.evaluate_every = 10_000  # steps
    config.save_every = 5_000  # steps
    config.keep_checkpoints = 2  # newest ones
    config.stop_after_skips = 20  # non-finite steps in a row
    config.probes = ()  # texts with [MASK] whose answers are printed before and after training
    # keep: freed memory stays with the process, steps on CPUs take up to 15 % less time; system: as glibc does, with a
    # half to a third of the memory.
    config.allocator = "keep"
    return config
