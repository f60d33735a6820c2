"""Pictures as examples: [CLS], then the patches row by row. NumPy only.

Axes: N picture, X row, Y column, C channel, K numbers of a patch.
"""

import numpy as np

from bert.data.encoded_examples import EncodedExamples, starts_of


def patches(pictures_NXYC: np.ndarray, size: int) -> np.ndarray:
    """[N, X/p Y/p, K]: the patches of ``size`` p, row by row, each pixel by pixel with its channels; p divides X, Y."""
    N, X, Y, C = pictures_NXYC.shape
    cut = pictures_NXYC.reshape(N, X // size, size, Y // size, size, C).swapaxes(2, 3)
    return cut.reshape(N, -1, size * size * C)


def encode(pictures_NXYC: np.ndarray, size: int, **of_example: np.ndarray) -> EncodedExamples:
    """The pictures as examples of equal lengths, their patches as the array ``patches`` of each token."""
    patches_NTK = patches(pictures_NXYC.astype(np.float32), size)
    with_cls = np.concatenate([np.zeros_like(patches_NTK[:, :1]), patches_NTK], axis=1)
    N, T, K = with_cls.shape
    lengths, ids = np.full(N, T, np.int32), np.zeros(N * T, np.int32)
    return EncodedExamples(
        ids, starts_of(lengths.tolist()), lengths, of_example, {"patches": with_cls.reshape(N * T, K)}
    )
