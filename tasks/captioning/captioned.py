"""Reads pictures with captions: scenes drawn here, arrays of an .npz file, tables of files, emoji, a folder."""

import dataclasses
import os
import pathlib
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bert.errors import InputError, check_choice
from bert.extras import check_installed
from bert.prediction.pictures import as_pictures
from tasks.captioning import emoji, scenes
from tasks.captioning.emoji import Person
from tasks.captioning.scenes import Thing
from tasks.files import equal_texts, tables
from tasks.files.reports import ReadReport, ReadRows
from tasks.pictures import picture_files
from tasks.translation import pairs

SCENES, EMOJI = "scenes", "emoji"
# As of `pairs.FILE_SETTINGS`; ``images`` and ``captions`` are arrays of an .npz file.
FILE_SETTINGS = pairs.FILE_SETTINGS | {"images": "images", "captions": "captions"}
ENDINGS = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp")


class Captioned(NamedTuple):
    """A picture, its name as ``source``, and its caption as ``target``; None where only pictures were read."""

    source: str
    target: str | None
    place: str
    picture: np.ndarray  # uint8 or float32 [X, Y, C]
    things: tuple[Thing, ...] = ()  # of a scene
    person: Person | None = None  # of an emoji, in a part of these
    cells: Mapping[str, Any] = {}  # the row of a table, by column

    def __str__(self) -> str:
        """What messages call it: its place, and its name where the place has another."""
        return self.place if self.place.endswith(self.source) else f"{self.place}: {self.source}"


Captions = ReadRows[Captioned]


def read(
    data: str, settings: Mapping[str, Any], *, labelled: bool = True, shape: Sequence[int] | None = None
) -> Captions:
    """The pictures of ``data`` and (``labelled``) their captions, all of one size, which ``shape`` may say.

    Raises InputError, with its place, for a picture without a caption, a caption without a picture, an empty caption, a
    file that is not there, and pictures of several sizes or of another one.
    """
    if data.partition(":")[0] == SCENES and not pathlib.Path(data).exists():
        return _of_scenes(data, labelled, shape)
    if data.partition(":")[0] == EMOJI and not pathlib.Path(data).exists():
        return _of_emoji(data, settings, labelled, shape)
    path = tables.check_path(data)
    if path.suffix.lower() in (".npz", ".npy"):
        return _of_arrays(data, settings, labelled, shape)
    if path.is_dir() or path.suffix.lower() in ENDINGS:
        if labelled:
            raise InputError(f"{data}: has no captions; name a table with the columns picture and caption")
        return _of_folder(path, shape)
    return _of_table(data, settings, labelled, shape)


def source_key(row: Captioned) -> Hashable:
    """The same for equal pictures."""
    return row.picture.shape, row.picture.tobytes()


def key_of(row: Captioned) -> Hashable:
    """The same for equal pictures with equal captions."""
    return source_key(row), equal_texts.key_of([row.target or ""])


def split(part: Captions, share: float, seed: int, *, equal_apart: bool = False) -> tuple[Captions, Captions]:
    """As `pairs.split`: equal pictures stay in one part."""
    return pairs.split_by(part, share, seed, None if equal_apart else [source_key(row) for row in part.rows])


def _of_scenes(data: str, labelled: bool, shape: Sequence[int] | None) -> Captions:
    part, count = scenes.named(data)
    drawn = enumerate(scenes.scenes(part, count))
    rows = [
        Captioned(f"scene {i}", s.caption if labelled else None, f"{data}: scene {i}", s.picture, s.things)
        for i, s in drawn
    ]
    return _report(data, rows, shape)


def _of_arrays(data: str, settings: Mapping[str, Any], labelled: bool, shape: Sequence[int] | None) -> Captions:
    images, captions = settings["images"], settings["captions"]
    arrays = picture_files.arrays_of(data, images, captions)
    picture_NXYC = picture_files.array_of(arrays, images, data)
    as_bytes = picture_NXYC.dtype == np.uint8 and picture_NXYC.ndim == 4 and 0 not in picture_NXYC.shape[1:]
    picture_NXYC = picture_NXYC if as_bytes else as_pictures(picture_NXYC, name=f"{data}: {images}")
    targets: list[str | None] = [None] * len(picture_NXYC)
    if labelled:
        caption_N = picture_files.array_of(arrays, captions, data)
        if caption_N.dtype.kind != "U" or caption_N.shape != (len(picture_NXYC),):
            what = f"{data}: {captions} is {caption_N.dtype} {list(caption_N.shape)}"
            way_out = f"; write bytes by np.char.decode({captions}, 'utf-8')" if caption_N.dtype.kind == "S" else ""
            rule = f"it must be a text for each of the {len(picture_NXYC):,} pictures of {images}"
            raise InputError(f"{what}; {rule}{way_out}")
        targets = [text.strip() for text in caption_N.tolist()]
    rows = [
        Captioned(f"picture {i}", target, f"{data}: picture {i}", picture)
        for i, (picture, target) in enumerate(zip(picture_NXYC, targets, strict=True))
    ]
    return _report(data, rows, shape)


def _of_folder(path: pathlib.Path, shape: Sequence[int] | None) -> Captions:
    files = [path] if path.is_file() else sorted(file for file in path.iterdir() if file.suffix.lower() in ENDINGS)
    rows = [Captioned(file.name, None, str(file), _picture(file, str(file))) for file in files]
    return _report(str(path), rows, shape)


def _of_table(data: str, settings: Mapping[str, Any], labelled: bool, shape: Sequence[int] | None) -> Captions:
    read_rows, columns, notes = pairs.rows_of_table(data, settings, labelled, "pictures")
    folder, pictures, rows = pathlib.Path(data).parent, dict[str, np.ndarray](), list[Captioned]()
    for row in read_rows:
        if not row.source:
            raise InputError(f"{row.place}: no picture in {columns[0]}; name its file, or take out the row")
        if row.source not in pictures:
            pictures[row.source] = _picture(folder / row.source, f"{row.place}: {row.source}")
        rows.append(Captioned(row.source, row.target, row.place, pictures[row.source], cells=row.cells))
    part = _report(data, rows, shape, notes)
    read_files = (data, *(str(folder / name) for name in pictures))  # data: of emoji the source is named otherwise
    return part._replace(report=dataclasses.replace(part.report, beside=read_files))


def _of_emoji(data: str, settings: Mapping[str, Any], labelled: bool, shape: Sequence[int] | None) -> Captions:
    """The people in a table that belong to a part of `emoji.PARTS`; its captions say which."""
    part, _, table = data.partition(":")[2].partition(":")
    check_choice(f"the part of {data}, which is emoji:PART:TABLE,", part, emoji.PARTS)
    if not table:
        raise InputError(f"{data}: names no table; write emoji:PART:TABLE")
    rows, report = _of_table(table, settings, True, shape)
    people = [emoji.person(row.target or "") for row in rows]
    of_part = zip(rows, people, emoji.part_of(people), strict=True)
    wanted = [
        row._replace(person=person, target=row.target if labelled else None)
        for row, person, its_part in of_part
        if its_part == part
    ]
    if not wanted:
        rule = "has no role in all skins and genders; captions must be the English names of emoji"
        raise InputError(f"{table}: {rule}, say by config.text=image,captions.en")
    elsewhere = {"in the other part, or of no role in all skins and genders": len(rows) - len(wanted)}
    return Captions(wanted, dataclasses.replace(report, source=data, kept=len(wanted), elsewhere=elsewhere))


def _picture(file: pathlib.Path, place: str) -> np.ndarray:
    """uint8 [X, Y, 3], turned as its EXIF orientation says; what is transparent is white."""
    if not os.path.isfile(file):  # false, too, for a name that is too long
        what = "is a folder" if os.path.isdir(file) else "no such file"
        raise InputError(f"{place}: {what}; name the file of a picture, seen from the folder of the table")
    check_installed("PIL", "pillow", "captioning", f"{place}: a file of this kind")
    import PIL.Image
    import PIL.ImageOps

    try:
        with PIL.Image.open(file) as opened:
            image, mode = PIL.ImageOps.exif_transpose(opened), opened.mode
            if mode.startswith("I;16") or (mode == "I" and opened.format in ("PNG", "PPM")):  # grey of 16 bits
                image = PIL.Image.fromarray(np.rint(np.asarray(image) / 257).astype(np.uint8))
            elif mode in ("I", "F"):
                rule = f"has pixels of Pillow's mode {mode}, whose range is not known"
                raise InputError(f"{place}: {rule}; save it as png with 8 bits")
            white = PIL.Image.new("RGBA", image.size, "white")
            return np.asarray(PIL.Image.alpha_composite(white, image.convert("RGBA")).convert("RGB"))
    except InputError:  # which is a ValueError, too
        raise
    except PIL.Image.DecompressionBombError as error:  # "Image size (... pixels) exceeds limit of ... pixels, could be"
        what = str(error).partition(",")[0]
        raise InputError(f"{place}: Pillow refuses it ({what}); scale it down") from None
    except (OSError, ValueError, SyntaxError):
        raise InputError(f"{place}: is no picture, or a damaged one; write it again, or take it out") from None


def _report(data: str, rows: list[Captioned], shape: Sequence[int] | None, notes: tuple[str, ...] = ()) -> Captions:
    if not rows:
        raise InputError(f"{data}: no pictures; is it the right file?")
    first = rows[0]
    check_shapes(rows, *(shape, "the model reads") if shape else (first.picture.shape, f"{first.source} is"))
    for row in rows:
        if row.target == "":
            raise InputError(f"{row}: the caption is empty; write it, or take out the picture")
    return Captions(rows, ReadReport(data, len(rows), len(rows), notes=notes))


def check_shapes(rows: Sequence[Captioned], shape: Sequence[int], whose: str) -> None:
    """Raises InputError for the first picture of another shape; ``whose``: "the model reads"."""
    for row in rows:
        if row.picture.shape != tuple(shape):
            theirs, ours = (" x ".join(map(str, size)) for size in (row.picture.shape, shape))
            raise InputError(f"{row} is {theirs}, but {whose} {ours}; scale them to one size")


def sides(part: Captions) -> tuple[list[np.ndarray], list[str]]:
    """Pictures and captions."""
    return [row.picture for row in part.rows], [row.target or "" for row in part.rows]
