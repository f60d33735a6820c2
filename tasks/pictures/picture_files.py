"""Reads pictures with their classes: arrays of an .npz file, or the handwritten digits of scikit-learn."""

import zipfile
import zlib
from collections.abc import Sequence

import numpy as np

from bert.errors import InputError
from bert.extras import check_installed
from bert.prediction.pictures import as_pictures
from tasks.files.examples import TextExamples
from tasks.files.reports import ReadReport, check_labelled

DIGITS = "digits"  # as a path: 1,797 digits of 8 x 8 pixels (Alpaydin and Kaynak 1998), which scikit-learn holds


def read(
    path: str, images: str, classes: str, *, labels: Sequence[str] | None = None, labelled: str = "needed"
) -> TextExamples:
    """The pictures of a file, an example each; their texts are names such as "picture 17".

    Args:
      images, classes: names of the arrays [N, X, Y] or [N, X, Y, C], and [N] (numbers or names).
      labels: the classes of a model; None: those of the file, in order.
      labelled: of `reports.LABELLED`.

    Raises InputError for a file or array that is not there or has another form, and an unknown class.
    """
    check_labelled(labelled)
    arrays = _digits(images, classes) if path == DIGITS else arrays_of(path, images, classes)
    pictures_NXYC = as_pictures(array_of(arrays, images, path), name=f"{path}: {images}")
    N = len(pictures_NXYC)
    if not N:
        raise InputError(f"{path}: {images} holds no picture; give at least one")
    targets = None
    if labelled == "needed" or (labelled == "if there" and classes in arrays):
        class_N = array_of(arrays, classes, path)
        if class_N.shape != (N,) or class_N.dtype.kind not in "buiU":
            what = f"{path}: {classes} is {class_N.dtype} {list(class_N.shape)}"
            raise InputError(f"{what}; it must be a whole number or a text for each of the {N:,} pictures")
        known = tuple(map(str, np.unique(class_N))) if labels is None else tuple(labels)
        targets = _targets(class_N, known, f"{path}: {classes}")
        labels = known
    return TextExamples(
        [(f"picture {i}",) for i in range(N)],
        targets,
        [{"picture": i} for i in range(N)],
        [f"{path}: picture {i}" for i in range(N)],
        tuple(labels or ()),
        "class",
        ReadReport(path, N, N),
        pictures_NXYC,
    )


def _targets(class_N: np.ndarray, labels: Sequence[str], where: str) -> np.ndarray:
    index_of = {label: i for i, label in enumerate(labels)}
    for i, name in enumerate(map(str, class_N)):
        if name not in index_of:
            raise InputError(f"{where}: picture {i} is {name!r}; the model knows {', '.join(labels)}")
    return np.eye(len(labels), dtype=np.float32)[[index_of[str(name)] for name in class_N]]


def _digits(images: str, classes: str) -> dict[str, np.ndarray]:
    check_installed("sklearn", "scikit-learn", "baseline", f"config.data={DIGITS}")
    from sklearn.datasets import load_digits

    digits = load_digits()
    return {images: digits.images, classes: digits.target}


def arrays_of(path: str, *needed: str) -> dict[str, np.ndarray]:
    """The arrays of an .npz file. InputError, with the names of those that are ``needed``, for another file."""
    arrays, name = dict[str, np.ndarray](), ""
    try:
        file = np.load(path, allow_pickle=False)
        if isinstance(file, np.lib.npyio.NpzFile):
            with file:
                for name in file.files:
                    arrays[name] = file[name]
            return arrays
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; name an .npz file with pictures and classes, or {DIGITS!r}") from None
    except (OSError, ValueError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        if name and str(error).startswith("Object arrays"):
            rule = f"Python objects, which are not read; write texts by {name}.astype(str), pictures by np.stack"
            raise InputError(f"{path}: {name} is an array of {rule}") from None
        why = "it is damaged or another kind of file"
        raise InputError(f"{path}: cannot be read ({why}); write it by numpy.savez") from None
    way_out = f"write an .npz file with the arrays {' and '.join(needed)} by numpy.savez"
    raise InputError(f"{path}: is one array; {way_out}")


def array_of(arrays: dict[str, np.ndarray], name: str, path: str) -> np.ndarray:
    if name not in arrays:
        raise InputError(f"{path}: has no array {name!r} (it has {', '.join(arrays) or 'none'}); set its name")
    return arrays[name]
