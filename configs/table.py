"""Fine-tuning on a table of your own: one or two text columns, a label, names or numbers.

    --config=configs/table.py --config.data=my.csv --config.text=review --config.label=stars

Values only. Lengths are tokens. The recipe is that of the BERT paper (appendix A.3); for a few thousand rows or fewer
more epochs help (up to 20: Mosbach et al. 2021, Zhang et al. 2021), with several seeds.
"""

from ml_collections import ConfigDict, config_dict


def get_config() -> ConfigDict:
    config = ConfigDict()
    config.task = "classification"  # the file in tasks/
    config.glue = ""  # a task of GLUE, whose files and columns are known; configs/glue.py sets it

    config.data = config_dict.placeholder(str)  # .csv .tsv .txt .jsonl .json .parquet (text also .gz), saved datasets
    config.validation = ""  # the same for validation; empty: split off from the data
    config.validation_share = 0.1  # of the rows, by seed and class, where no validation is given; 0: none
    config.text = ""  # the text column, or two with a comma: sentence1,sentence2
    config.label = ""  # the label column; several with commas: one a class, with votes or probabilities
    config.kind = "auto"  # class (one label), classes (several labels a row), number; auto: numbers if they look so
    config.votes = False  # a cell holds the labels of several annotators, whose shares are the target
    config.separator = ","  # between the labels of a cell
    config.normalize = False  # scale shares that do not sum to 1, instead of refusing them
    config.columns = ""  # names of the columns, for a file without a header
    config.delimiter = ""  # comma, tab, space, or a regular expression; empty: by the file
    config.quoting = "auto"  # yes, no, auto: as the file looks
    config.encoding = "utf-8"
    config.ragged = "refuse"  # lines with a wrong number of fields; drop: leave them out and count them
    config.class_weights = ""  # no=1,yes=3: the loss is sum(weight * loss) / sum(weight); balanced: by rarity

    config.init_from = ""  # model, run directory or Google checkpoint to start from
    config.seed = 0  # of the new head, dropout, data order and split
    config.seeds = 1  # runs with seed, seed + 1, ...; their mean, deviation and best are told
    config.epochs = 3.0  # passes over the training rows; BERT appendix A.3: 2 to 4
    config.batch_size = 32  # examples over all devices; BERT appendix A.3: 16 or 32
    config.micro_batches = 1  # parts of a batch computed one after the other, for less memory
    config.max_length = 128  # tokens of an example at most, [CLS] and [SEP] among them; longer ones are cut
    config.packed = True  # several short examples in a row: the same results, less work
    config.threshold = 0.5  # probability above which one of several labels holds

    config.model = ConfigDict()
    config.model.hidden_dropout = 0.1
    config.model.attention_dropout = 0.1
    config.model.dtype = "float32"  # of matrix products; see configs/pretrain.py
    config.model.layer_loop = "auto"
    config.model.remat = False
    config.classifier_dropout = config_dict.placeholder(float)  # before the scores; not set: as hidden_dropout

    config.optimizer = ConfigDict()
    config.optimizer.name = "adamw"  # with bias correction: small data needs it (Zhang et al. 2021)
    config.optimizer.learning_rate = 3e-5  # the peak; BERT appendix A.3: 2e-5, 3e-5 or 5e-5
    config.optimizer.schedule = "linear"
    config.optimizer.power = 1.0
    config.optimizer.weight_decay = 0.01
    config.optimizer.b1 = 0.9
    config.optimizer.b2 = 0.999
    config.optimizer.eps = 1e-6
    config.optimizer.clip_norm = 1.0
    config.optimizer.layer_decay = 1.0  # each block learns at so many times the rate of the one above it
    config.optimizer.frozen_layers = -1  # lowest blocks that stay as they are, with the embeddings; -1: none
    config.warmup_share = 0.1  # of all steps

    config.metrics = ""  # names with commas; empty: the usual ones for the kind
    config.metric = ""  # chooses the best evaluation; empty: the first of the metrics
    config.positive = ""  # the label that f1 is about; empty: the second of two
    config.evaluations_per_epoch = 1
    config.patience = 0  # evaluations without a better value after which training stops; 0: never
    config.baseline = False  # also fit TF-IDF + logistic regression, to see what BERT adds

    config.mesh = ConfigDict()
    config.mesh.mode = "dp"  # dp, fsdp, tp, fsdp_tp
    config.mesh.model_devices = 1

    config.log_every = 20  # steps
    config.keep_checkpoints = 1  # newest ones; the best model is in model/
    config.stop_after_skips = 20  # non-finite steps in a row
    config.allocator = "keep"
    return config
