"""The tasks of GLUE: files, columns, label names, metrics, submissions. Values only; the reader is glue.py.

Sources: the files of gluebenchmark.com (names and headers), and other common releases of single sets:
cola_public of the CoLA authors, msr-para-* and msr_paraphrase_* of the MSR corpus, sts-*.csv of the STS benchmark.
Label names and their order are those of the `glue` data set on the Hugging Face hub, so that models can be exchanged.
Metrics and the names of submission files: Wang et al. 2018, and the FAQ of gluebenchmark.com.
"""

import dataclasses
from collections.abc import Mapping

from bert.target_kinds import Kind

FileSet = tuple[str, ...]  # files that make up a split together


@dataclasses.dataclass(frozen=True)
class Layout:
    """Columns of one form of a task's files.

    columns: all names where the file has no header; () where its first line is one.
    text: the column with the sentence, or the two.
    label: a test that has no such column has no labels. index: "" for a row's position, from 0.
    widths: numbers of fields beside that of the columns.
    """

    text: tuple[str, ...]
    label: str = ""
    index: str = ""
    columns: tuple[str, ...] = ()
    widths: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True)
class GlueTask:
    """One task.

    folder: its folder as GLUE names it, looked for inside of the folder that is named, too.
    files: split -> the files to look for, the first choice that is there is read.
    layouts: the forms of its files; the first one that fits a file's first line is taken.
    labels: names in GLUE's order; () for a number. raw: label as the files write it -> name, where they differ.
    metrics: names for tasks/metrics/classification_metrics.py; the first one chooses the best checkpoint.
    submissions: split -> name of the file. written: label name -> how the submission writes it, where it differs.
    ragged: what lines with a wrong number of fields are: an error, or dropped.
    """

    folder: str
    files: Mapping[str, tuple[FileSet, ...]]
    layouts: tuple[Layout, ...]
    labels: tuple[str, ...]
    metrics: tuple[str, ...]
    submissions: Mapping[str, str]
    raw: Mapping[str, str] = dataclasses.field(default_factory=dict)
    ragged: str = "refuse"

    @property
    def kind(self) -> Kind:
        """As in examples.py."""
        return "class" if self.labels else "number"

    @property
    def positive(self) -> str:
        """The label that F1 is about; "" where F1 is no metric of the task."""
        return self.labels[1] if "f1" in self.metrics else ""

    @property
    def text(self) -> tuple[str, ...]:
        """The text columns of a table that glue.read gives."""
        return ("sentence",) if len(self.layouts[0].text) == 1 else ("sentence1", "sentence2")

    @property
    def written(self) -> Mapping[str, str]:
        """Label name -> text of a submission file."""
        return {name: raw for raw, name in self.raw.items()} or {name: name for name in self.labels}


def _splits(train: FileSet = (), dev: FileSet = (), test: FileSet = ()) -> dict[str, tuple[FileSet, ...]]:
    """GLUE's own three files, and other names for each."""
    return {
        "train": (("train.tsv",), *((name,) for name in train)),
        "validation": (("dev.tsv",), *((name,) for name in dev)),
        "test": (("test.tsv",), *((name,) for name in test)),
    }


def _by_number(*names: str) -> dict[str, str]:
    return {str(i): name for i, name in enumerate(names)}


_NLI = ("entailment", "neutral", "contradiction")
_PAIR = ("sentence1", "sentence2")
_MRPC = ("#1 String", "#2 String")
_COLA_RAW = "cola_public/raw/"
_STS = ("genre", "filename", "year", "old_index", "score", *_PAIR, "licence1", "licence2")

TASKS: dict[str, GlueTask] = {
    "cola": GlueTask(
        "CoLA",
        {
            "train": (("train.tsv",), (_COLA_RAW + "in_domain_train.tsv",)),
            "validation": (("dev.tsv",), (_COLA_RAW + "in_domain_dev.tsv", _COLA_RAW + "out_of_domain_dev.tsv")),
            "test": (("test.tsv",),),
        },
        (
            Layout(("sentence",), "label", "index"),
            Layout(("sentence",), "label", columns=("source", "label", "mark", "sentence")),
        ),
        ("unacceptable", "acceptable"),
        ("matthews", "accuracy"),
        {"test": "CoLA.tsv"},
        _by_number("unacceptable", "acceptable"),
    ),
    "sst2": GlueTask(
        "SST-2",
        _splits(train=("train_full.tsv",)),
        (Layout(("sentence",), "label"),),
        ("negative", "positive"),
        ("accuracy",),
        {"test": "SST-2.tsv"},
        _by_number("negative", "positive"),
    ),
    "mrpc": GlueTask(
        "MRPC",
        _splits(
            ("msr-para-train.tsv", "msr_paraphrase_train.txt"),
            ("msr-para-val.tsv",),
            ("msr-para-test.tsv", "msr_paraphrase_test.txt"),
        ),
        (Layout(_MRPC, "Quality", "index"),),
        ("not_equivalent", "equivalent"),
        ("f1", "accuracy"),
        {"test": "MRPC.tsv"},
        _by_number("not_equivalent", "equivalent"),
    ),
    "stsb": GlueTask(
        "STS-B",
        _splits(("sts-train.csv",), ("sts-dev.csv",), ("sts-test.csv",)),
        # The STS benchmark has two licence columns on some rows: 7 or 9 fields.
        (Layout(_PAIR, "score", "index"), Layout(_PAIR, "score", columns=_STS, widths=(7,))),
        (),
        ("pearson", "spearman"),
        {"test": "STS-B.tsv"},
    ),
    "rte": GlueTask(
        "RTE",
        _splits(),
        (Layout(_PAIR, "label", "index"),),
        ("entailment", "not_entailment"),
        ("accuracy",),
        {"test": "RTE.tsv"},
    ),
    "wnli": GlueTask(
        "WNLI",
        # val.tsv goes around as a part of train.tsv that was set aside; together they are GLUE's 635 rows.
        {"train": (("train.tsv", "val.tsv"), ("train.tsv",)), "validation": (("dev.tsv",),), "test": (("test.tsv",),)},
        (Layout(_PAIR, "label", "index"), Layout(_PAIR, "label", "index", columns=("index", *_PAIR, "label"))),
        ("not_entailment", "entailment"),
        ("accuracy",),
        {"test": "WNLI.tsv"},
        _by_number("not_entailment", "entailment"),
    ),
    "qnli": GlueTask(
        "QNLI",
        _splits(),
        (Layout(("question", "sentence"), "label", "index"),),
        ("entailment", "not_entailment"),
        ("accuracy",),
        {"test": "QNLI.tsv"},
    ),
    "qqp": GlueTask(
        "QQP",
        _splits(),
        (Layout(("question1", "question2"), "is_duplicate", "id"),),
        ("not_duplicate", "duplicate"),
        ("f1", "accuracy"),
        {"test": "QQP.tsv"},
        _by_number("not_duplicate", "duplicate"),
        ragged="drop",  # GLUE's own train.tsv has a few questions with line breaks in them
    ),
    "mnli": GlueTask(
        "MNLI",
        {
            "train": (("train.tsv",),),
            "validation": (("dev_matched.tsv",),),
            "validation_mismatched": (("dev_mismatched.tsv",),),
            "test": (("test_matched.tsv",),),
            "test_mismatched": (("test_mismatched.tsv",),),
        },
        (Layout(_PAIR, "gold_label", "index"),),
        _NLI,
        ("accuracy",),
        {"test": "MNLI-m.tsv", "test_mismatched": "MNLI-mm.tsv"},
    ),
    "ax": GlueTask(
        "AX",
        {"test": (("diagnostic-full.tsv",), ("diagnostic.tsv",), ("AX.tsv",), ("test.tsv",))},
        (Layout(_PAIR, "label", "index"), Layout(("Premise", "Hypothesis"), "Label")),
        _NLI,
        ("matthews", "accuracy"),
        {"test": "AX.tsv"},
    ),
}
