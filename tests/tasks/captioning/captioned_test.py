"""Files of pictures with captions: what is read, and one line for what does not fit."""

import numpy as np
import pytest

from bert.errors import InputError
from tasks.captioning import captioned, emoji
from tasks.captioning.captioned import FILE_SETTINGS

PICTURES = np.random.default_rng(0).integers(0, 256, (3, 4, 6, 3), np.uint8)
TEXTS = np.array(["a cat ", "a dog", "a dog"])


@pytest.fixture
def arrays(tmp_path):
    """arrays(images=..., captions=...) -> the path of an .npz file."""

    def one(**of_file) -> str:
        np.savez(tmp_path / "a.npz", **of_file)
        return str(tmp_path / "a.npz")

    return one


def read(data, **how):
    return captioned.read(data, FILE_SETTINGS, **how)


def test_arrays_and_scenes(arrays):
    part = read(arrays(images=PICTURES, captions=TEXTS))
    assert [row.target for row in part.rows] == ["a cat", "a dog", "a dog"]
    np.testing.assert_array_equal(part.rows[2].picture, PICTURES[2])
    assert part.rows[2].picture.dtype == np.uint8
    assert [row.target for row in read(arrays(images=PICTURES), labelled=False).rows] == [None] * 3
    grids = captioned.read(arrays(f=PICTURES[..., :2] / 7, captions=TEXTS), FILE_SETTINGS | {"images": "f"})
    np.testing.assert_allclose(grids.rows[0].picture, PICTURES[0, ..., :2] / 7, rtol=1e-6)
    scenes = read("scenes:test:2")
    assert scenes.rows[1].place == "scenes:test:2: scene 1"
    assert scenes.rows[1].things


def test_equal_pictures_are_in_one_part(arrays):
    """Each picture has five captions."""
    pictures = np.random.default_rng(1).integers(0, 256, (12, 2, 2, 3), np.uint8)
    part = read(arrays(images=pictures.repeat(5, 0), captions=np.array([f"text {i}" for i in range(60)])))
    train, held = captioned.split(part, 0.25, 0)
    assert len(held.rows) == 15
    assert not set(map(captioned.source_key, train.rows)) & set(map(captioned.source_key, held.rows))


@pytest.mark.parametrize(("of_file", "said"), [
    ({"images": PICTURES}, "a.npz: has no array 'captions' .*images"),
    ({"images": PICTURES, "captions": TEXTS[:2]}, r"captions is .* \[2\]; .*each of the 3 pictures"),
    ({"images": PICTURES, "captions": np.arange(3)}, "captions is int64.*must be a text"),
    ({"images": PICTURES, "captions": np.array(["a", " ", "b"])}, "a.npz: picture 1: the caption is empty"),
    ({"images": PICTURES, "captions": TEXTS.astype(object)}, r"a.npz: captions .*captions\.astype\(str\)"),
    ({"images": PICTURES, "captions": np.char.encode(TEXTS)}, r"captions is .S.*np\.char\.decode\(captions"),
    ({"images": PICTURES[..., 0, 0], "captions": TEXTS}, r"images is uint8 \[3, 4\]; .*channels"),
    ({"images": PICTURES[:, :0], "captions": TEXTS}, r"images is uint8 \[3, 0, 6, 3\]; .*channels"),
    ({"images": PICTURES[:0], "captions": TEXTS[:0]}, "a.npz: no pictures"),
])  # fmt: skip
def test_arrays_that_do_not_fit(arrays, of_file, said):
    with pytest.raises(InputError, match=said):
        read(arrays(**of_file))


def test_a_file_of_one_array_is_refused_by_the_arrays_that_it_lacks(tmp_path):
    np.save(tmp_path / "a.npy", PICTURES)
    with pytest.raises(InputError, match=r"a.npy: .*\.npz file with the arrays images and captions"):
        read(str(tmp_path / "a.npy"))


def test_tables_that_do_not_fit(write, tmp_path):
    """No file is opened before it is known to be there."""
    with pytest.raises(InputError, match=r"a.csv:2: no picture"):
        read(write("a.csv", "picture,caption\n,a cat\nb.png,a dog\n"))
    with pytest.raises(InputError, match=r"a.csv:2: b.png: no such file"):
        read(write("a.csv", "picture,caption\nb.png,a dog\n"))
    for cell, said in {".": "is a folder", "a" * 300: "no such file"}.items():
        with pytest.raises(InputError, match=rf"a.csv:2: {cell}: {said}"):
            read(write("a.csv", f"picture,caption\n{cell},a dog\n"))
    with pytest.raises(InputError, match=r"a.csv: no column 'image'"):
        captioned.read(write("a.csv", "picture,caption\nb.png,a dog\n"), FILE_SETTINGS | {"text": "image,caption"})
    with pytest.raises(InputError, match=r"a.csv: text .*'picture', 'caption', that of the pictures"):
        captioned.read(write("a.csv", "picture,caption\nb.png,a dog\n"), FILE_SETTINGS | {"text": "picture"})
    with pytest.raises(InputError, match=r"has no captions; name a table"):
        read(str(tmp_path))
    with pytest.raises(InputError, match=r"nowhere.csv: no such file"):
        read(str(tmp_path / "nowhere.csv"))


def test_a_picture_needs_pillow(write, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    write("b.png", b"")
    with pytest.raises(InputError, match=r"a.csv:2: b.png: .*pillow"):
        read(write("a.csv", "picture,caption\nb.png,a dog\n"))


def test_files_of_pictures(write, tmp_path):
    """A table beside its pictures, and a folder; another size, and a file that is none, are refused with their line."""
    image = pytest.importorskip("PIL.Image")
    for name, picture in zip("abc", (*PICTURES[:2], PICTURES[0, :2]), strict=True):
        image.fromarray(picture).save(tmp_path / f"{name}.png")
    part = read(write("t.csv", "picture,caption\na.png,a cat\nb.png,a dog\na.png,two cats\n"))
    assert [row.target for row in part.rows] == ["a cat", "a dog", "two cats"]
    np.testing.assert_array_equal(part.rows[1].picture, PICTURES[1])
    with pytest.raises(InputError, match=r"t.csv:3: c.png .*2 x 6 x 3"):
        read(write("t.csv", "picture,caption\na.png,a cat\nc.png,a dog\n"))
    with pytest.raises(InputError, match=r"t.csv:3: b.png: .*empty"):
        read(write("t.csv", "picture,caption\na.png,a cat\nb.png,\n"))
    write("d.png", b"no picture")
    with pytest.raises(InputError, match=r"t.csv:2: d.png: is no picture"):
        read(write("t.csv", "picture,caption\nd.png,a cat\n"))
    with pytest.raises(InputError, match=r"d.png: is no picture((?!row).)*$"):
        read(str(tmp_path), labelled=False)
    (tmp_path / "d.png").unlink()
    with pytest.raises(InputError, match=r"/c.png is 2 x 6 x 3, but a.png"):
        read(str(tmp_path), labelled=False)
    (tmp_path / "c.png").unlink()
    assert [row.source for row in read(str(tmp_path), labelled=False).rows] == ["a.png", "b.png"]


def test_pixels_of_more_than_8_bits(tmp_path):
    """Grey of 16 bits becomes 8; where nobody knows what is white, the mode is named."""
    image = pytest.importorskip("PIL.Image")
    grey = np.array([[0, 257 * 100], [257 * 101 - 1, 65535]])
    for name, kind in {"a.png": np.uint16, "a.ppm": np.int32, "a.tif": np.int32, "b.tif": np.float32}.items():
        image.fromarray(grey.astype(kind)).save(tmp_path / name)
    for name in ("a.png", "a.ppm"):
        read_one = captioned._picture(tmp_path / name, name)
        np.testing.assert_array_equal(read_one, np.repeat([[[0], [100]], [[101], [255]]], 3, axis=2))
    for name, mode in {"a.tif": "I", "b.tif": "F"}.items():
        with pytest.raises(InputError, match=rf"^{name}: .*mode {mode},.*8 bits"):
            captioned._picture(tmp_path / name, name)


def test_a_picture_is_turned_as_it_says_and_may_be_too_large(tmp_path, monkeypatch):
    image = pytest.importorskip("PIL.Image")
    turned = image.Exif()
    turned[0x0112] = 6  # Orientation: the first row is on the right
    image.fromarray(PICTURES[0]).save(tmp_path / "a.png", exif=turned)
    np.testing.assert_array_equal(captioned._picture(tmp_path / "a.png", "a.png"), np.rot90(PICTURES[0], -1))
    monkeypatch.setattr(image, "MAX_IMAGE_PIXELS", 4)
    with pytest.raises(InputError, match=r"^a.png: .*24 pixels"):
        captioned._picture(tmp_path / "a.png", "a.png")


def test_people_among_emoji(write, tmp_path):
    """Of a role in five skins and three genders one skin is held out; the picture of a hand is in no part."""
    image = pytest.importorskip("PIL.Image")
    names = [f"{who}: {skin}" for skin in emoji.SKINS for who in ("cook", "man cook", "woman cook")]
    names.append("waving hand: dark skin tone")
    image.fromarray(PICTURES[0]).save(tmp_path / "a.png")
    data = write("t.csv", "picture,caption\n" + "".join(f"a.png,{name}\n" for name in names))
    parts = {part: read(f"emoji:{part}:{data}").rows for part in emoji.PARTS}
    assert {part: len(rows) for part, rows in parts.items()} == {"train": 12, "held-out": 3}
    assert {row.person.role for row in parts["held-out"]} == {"cook"}
    people = read(f"emoji:held-out:{data}", labelled=False)
    assert [row.target for row in people.rows] == [None] * 3
    assert people.report.beside[0] == data  # which no output may replace, though the source is named otherwise
    with pytest.raises(InputError, match=r"emoji:test:.*'test'.*held-out"):
        read(f"emoji:test:{data}")
    with pytest.raises(InputError, match=r"emoji:train: .*no table"):
        read("emoji:train")
    with pytest.raises(InputError, match=r"u.csv: has no role .*English"):
        read("emoji:train:" + write("u.csv", "picture,caption\na.png,a cat\n"))


def test_a_model_reads_one_size(arrays):
    with pytest.raises(InputError, match=r"a.npz: picture 0.*8 x 6 x 3"):
        read(arrays(images=PICTURES, captions=TEXTS), shape=(8, 6, 3))
