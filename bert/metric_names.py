"""Names of metrics, as logs, reports and cards read them: "f1:spam" is the F1 of the class spam."""

PER_LABEL = ("f1:", "precision:", "recall:")
OF_POSITIVE = ("f1", "acc_and_f1")  # of one class, which their names do not say
CONSTANT_ANSWER = "constant_answer"  # a note beside the metrics: "constant_answer:ANSWER"; older logs have no ANSWER


def title(name: str, positive: str | None = None) -> str:
    """The name of a metric in reports, with its class: "f1 of spam"; ``positive`` is the class of f1 and acc_and_f1."""
    measure, _, label = name.partition(":") if name.startswith(PER_LABEL) else (name, "", "")
    if positive is not None and name in OF_POSITIVE:
        label = positive
    return f"{measure} of {label}" if label else name


def is_count(name: str) -> bool:
    """Whether a metric counts something, so that it is a whole number; of labels (``f1:total``) none does."""
    return name == "n" or name.startswith("n_") or name in ("total", "HasAns_total", "NoAns_total")


def is_note(name: str) -> bool:
    """Whether a name among the metrics of an evaluation is the note on a model that gives one answer to everything."""
    return name.partition(":")[0] == CONSTANT_ANSWER
