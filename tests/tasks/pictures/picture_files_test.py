"""Pictures of an .npz file become examples; what is wrong there is named in one line."""

import numpy as np
import pytest

from bert.errors import InputError
from tasks.pictures import picture_files
from tasks.pictures.job import fold_of

PICTURES = np.arange(2 * 4 * 4, dtype=np.uint8).reshape(2, 4, 4)


@pytest.fixture
def saved(tmp_path):
    """saved(images=..., labels=...) -> path of an .npz file with these arrays."""

    def save(**arrays) -> str:
        np.savez(tmp_path / "a.npz", **arrays)
        return str(tmp_path / "a.npz")

    return save


def test_classes_are_numbers_or_names_in_order(saved):
    part = picture_files.read(saved(images=PICTURES, labels=[10, 9]), "images", "labels")
    assert part.labels == ("9", "10")
    np.testing.assert_array_equal(part.targets, [[0, 1], [1, 0]])
    np.testing.assert_array_equal(part.pictures, PICTURES[..., None])
    assert part.take([1]).pictures.shape == (1, 4, 4, 1)
    named = picture_files.read(saved(x=PICTURES[..., None], y=["b", "a"]), "x", "y", labels=("b", "c", "a"))
    np.testing.assert_array_equal(named.targets, [[1, 0, 0], [0, 0, 1]])
    assert (
        picture_files.read(saved(images=PICTURES), "images", "labels", labels=("a", "b"), labelled="no").targets is None
    )


@pytest.mark.parametrize(("arrays", "said"), [
    ({"x": PICTURES}, r"a.npz: has no array 'images' \(it has x\)"),
    ({"images": PICTURES}, r"a.npz: has no array 'labels' \(it has images\)"),
    ({"images": PICTURES[0], "labels": [0, 1]}, r"a.npz: images is uint8 \[4, 4\]; it must be numbers \[N, rows"),
    ({"images": PICTURES, "labels": [0, 1, 2]}, r"labels is int64 \[3\]; .* for each of the 2 pictures"),
    ({"images": PICTURES, "labels": [0.5, 1]}, r"labels is float64 \[2\]"),
    ({"images": PICTURES[:0], "labels": PICTURES[:0, 0, 0]}, "images holds no picture"),
    ({"images": np.where(PICTURES == 20, np.nan, 0.0), "labels": [0, 1]}, "images: picture 1 holds a pixel that is no"),
    ({"images": PICTURES * 1e300, "labels": [0, 1]}, "images: picture 0 holds a pixel that is no finite"),
    ({"images": PICTURES[:, :0], "labels": [0, 1]}, r"images is uint8 \[2, 0, 4\]; it must be numbers \[N, rows"),
    ({"images": np.array([{}, {}]), "labels": [0, 1]}, r"a.npz: images is an array of Python objects"),
    ({"images": PICTURES, "labels": np.array(["a", "b"], object)}, r"a.npz: labels .*labels\.astype\(str\)"),
])  # fmt: skip
def test_a_file_of_another_form_is_refused(saved, arrays, said):
    with pytest.raises(InputError, match=said):
        picture_files.read(saved(**arrays), "images", "labels")


def test_files_that_are_none_and_unknown_classes_are_refused(saved, tmp_path):
    with pytest.raises(InputError, match=r"b.npz: no such file.*'digits'"):
        picture_files.read(str(tmp_path / "b.npz"), "images", "labels")
    np.savez_compressed(tmp_path / "e.npz", images=PICTURES)
    damaged = bytearray((tmp_path / "e.npz").read_bytes())
    damaged[80] ^= 255  # within what is compressed
    for content in (b"not a zip", damaged):
        (tmp_path / "c.npz").write_bytes(content)
        with pytest.raises(InputError, match=r"c.npz: .*damaged"):
            picture_files.read(str(tmp_path / "c.npz"), "images", "labels")
    np.save(tmp_path / "d.npy", PICTURES)
    with pytest.raises(InputError, match=r"d.npy: .*\.npz file with the arrays images and labels"):
        picture_files.read(str(tmp_path / "d.npy"), "images", "labels")
    with pytest.raises(InputError, match=r"a.npz: labels: picture 1 .*'7'.*0, 1"):
        picture_files.read(saved(images=PICTURES, labels=[0, 7]), "images", "labels", labels=("0", "1"))


def test_each_picture_is_in_one_of_the_folds_which_have_their_share_of_each_class(saved):
    classes = np.repeat([0, 1, 2], [50, 31, 20])
    part = picture_files.read(saved(images=np.zeros((101, 2, 2)), labels=classes), "images", "labels")
    fold_N = fold_of(part, 5)
    for count, rows in zip((50, 31, 20), (fold_N[classes == c] for c in range(3)), strict=True):
        assert np.abs(np.bincount(rows, minlength=5) - count / 5).max() < 1
    np.testing.assert_array_equal(fold_N, fold_of(part, 5))
