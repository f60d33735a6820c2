"""Draws the rows to hold out for validation: a share of each class, without splitting groups of rows.

Axes: N row, C class.
"""

import numpy as np

from bert.errors import check_range


def check_share(share: float) -> None:
    """Refuses a share of rows that is not between 0 and 1."""
    check_range("validation_share", share, above=0, below=1)


def rows_by_class(sizes_C: np.ndarray, share: float) -> np.ndarray:
    """int [C]: how many rows of each class to hold out, so that each class and the whole have the share."""
    exact_C = sizes_C * share
    take_C = np.floor(exact_C).astype(int)
    # The rows that rounding down left over go where most was cut off, so that the whole share is right.
    for c in np.argsort(take_C - exact_C, kind="stable")[: max(round(sizes_C.sum() * share) - take_C.sum(), 0)]:
        take_C[c] += 1
    capped_C: np.ndarray = np.minimum(take_C, sizes_C - 1)
    return capped_C


def draw(class_N: np.ndarray, group_N: np.ndarray, take_C: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """bool [N]: rows drawn at random, ``take_C`` of each class, or as many as whole groups allow.

    A group belongs to the class of its first row. Groups with too many rows are passed over; if rows are missing at the
    end, the smallest of these is taken, unless that would be further off.

    Args:
      class_N: int [N], from 0. group_N: int [N], the first row of each row's group.
    """
    order = np.argsort(group_N, kind="stable")
    first = np.flatnonzero(np.diff(group_N[order], prepend=-1))
    rows_of = dict(zip(group_N[order][first].tolist(), np.split(order, first[1:]), strict=True))
    is_head_N = group_N == np.arange(len(group_N))
    left_C = np.bincount(class_N)
    is_held_N = np.zeros(len(class_N), bool)

    def hold(rows: np.ndarray) -> bool:
        """Holds out the rows if each of their classes keeps another row; returns whether it did."""
        rows_C = np.bincount(class_N[rows], minlength=len(left_C))
        if (left_C[rows_C > 0] <= rows_C[rows_C > 0]).any():
            return False
        left_C[:] -= rows_C
        is_held_N[rows] = True
        return True

    for c, wanted in enumerate(take_C):
        missing, passed_over = int(wanted), []
        for head in rng.permutation(np.flatnonzero(is_head_N & (class_N == c))).tolist():
            if not missing:
                break
            rows = rows_of[head]
            if len(rows) <= missing and hold(rows):
                missing -= len(rows)
            else:
                passed_over.append(rows)
        for rows in sorted(passed_over, key=len) if missing else ():
            if len(rows) > 2 * missing or hold(rows):
                break
    return is_held_N
