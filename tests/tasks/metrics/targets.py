"""What tests of metrics share: names, targets as arrays [N, C], and the values of scores."""

import numpy as np

NO_YES = ("no", "yes")
ALL_CLASS = ("accuracy", "f1", "acc_and_f1", "macro_f1", "micro_f1", "weighted_f1", "matthews", "cross_entropy", "n")
ALL_NUMBER = ("pearson", "spearman", "corr", "mse", "mae", "n")


def one_hot(classes, count):
    return np.eye(count, dtype=np.float32)[np.asarray(classes, int)]


def column(numbers):
    return np.asarray(numbers, np.float64)[:, None]


def values(scores):
    return {name: result.value for name, result in scores.items()}
