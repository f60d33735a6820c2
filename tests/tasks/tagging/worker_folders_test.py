"""Tagged sentences from folders of workers, with and without the truth."""

import gzip
import re
import tarfile

from tests.tasks.one_line import says
from tests.tasks.tagging.read_tags import read, refused, sentences


def workers(write, truth=True):
    """A folder of three workers: two documents, of one a worker has glued a word, of one a line has no word."""
    for name, content in {
        "crowd/ann/d1.txt": "\na B-X\nb I-X\n\nc O\n",
        "crowd/bob/d1.txt": "a O\nb O\n\nc O\n\n",
        "crowd/cid/d1.txt": "a/B O\nb O\n\nc O\n",
        "crowd/ann/d2.txt": " B-X\nd O\n",
        "crowd/bob/d2.txt": "d O\ne O\n",
        "crowd/cid/d2.txt": "de O\n",
        **({"ground_truth/d1.txt": "a B-X\nb I-X\n\nc O\n", "ground_truth/d2.txt": "d B-Y\n"} if truth else {}),
    }.items():
        path = write(name, content)
    return path[: path.rindex("/crowd/" if not truth else "/ground_truth/")]


def test_workers_with_the_truth_beside_them(write):
    top = workers(write)
    write("crowd/ann/.DS_Store", b"\0")
    write("crowd/.old/d1.txt", "a O\nb O\n\nc O\n")
    write("crowd/ann/d3.txt", "f O\n")
    for path in (top, f"{top}/crowd"):
        rows = read(path)
        assert sentences(rows) == ["a/B-X/O b/I-X/O", "c/O/O"]
        assert [name for name, _ in rows.rows[0].annotations] == ["ann", "bob"]
        assert [row.document for row in rows.rows] == ["d1", "d1"]
        said = str(rows.report)
        assert says(said, "3 rows read, 2 kept; dropped 1: no tags ... ground_truth/d2.txt:1")
        assert says(said, "2 files of 3 workers on 2 documents are used")
        assert says(said, "dropped 1 files ... no word ... crowd/ann/d2.txt:1")
        assert says(said, "dropped 3 files ... cid/d1.txt:1, 'a/B' for 'a'")
        assert says(said, "dropped 1 files ... no such document ... ann/d3.txt")
        assert sentences(read(path, annotators="bob,ground_truth"))[0] == "a/O/B-X b/O/I-X"
        assert sentences(read(path, annotators="ground_truth")) == ["a/B-X b/I-X", "c/O", "d/B-Y"]
        assert sentences(read(path, "no")) == ["a b", "c", "d"]
    assert says(refused(top, annotators="dan"), "no annotator 'dan' ... ann, bob")
    write("crowd/bob/d1.txt", "a O\nb O\n\n\nc X\n")
    assert says(refused(top), "bob/d1.txt:5: 'X' is no tag")


def test_workers_without_the_truth(write):
    """The words of most are right; where no two agree, those of the first."""
    rows = read(f"{workers(write, truth=False)}/crowd")
    assert sentences(rows) == ["a/B-X/O b/I-X/O", "c/O/O", "d/O e/O"]
    assert says(str(rows.report), "in 1 documents no words have most files")
    assert says(str(rows.report), "dropped 2 files ... most workers")


def test_folders_and_files_that_are_none_of_these(write, tmp_path):
    top = workers(write)
    assert says(refused(f"{top}/no_such"), "no_such: no such file or folder")
    assert says(refused(f"{top}/ground_truth"), "ground_truth: holds no folder for each worker")
    write("val/crowd/ann/d.txt", "a O\n")
    write("test/crowd/ann/d.txt", "a O\n")
    assert says(refused(str(tmp_path)), "holds folders of folders (crowd, test, val)")
    assert says(refused(write("a.txt", "a O\n"), format="workers"), "is no folder, but format is workers")
    assert says(refused(top, format="columns"), "is a folder, but format is columns")
    assert says(refused(write("a.tar.gz", b"")), ".tar files are not read ... unpack it first")
    assert says(refused(write("a.xlsx", b"PK")), ".xlsx files are not read ... csv")
    assert says(refused(write("b.txt", gzip.compress(b"a O\n"))), "is packed by gzip")
    write("ground_truth/d2.txt", "d\n")
    assert says(refused(f"{top}/crowd"), "ground_truth/d2.txt:1: ... no word")


def test_the_raw_files_of_workers(shared, tmp_path):
    """806 of 1,964 files have the words of the truth; the numbers of documents and words are those published."""
    with tarfile.open(shared / "data" / "ner_mturk" / "task1.tar.gz") as packed:
        packed.extractall(tmp_path, filter="data")
    used = lost = 0
    for part, words in (("val", 40_360), ("test", 42_598)):
        path = str(tmp_path / "task1" / part)
        rows = read(path)
        said = str(rows.report)
        used += int(re.search(r"([\d,]+) files of 4[67] workers", said)[1])
        lost += sum(int(n) for n in re.findall(r"dropped (\d+) files of workers", said))
        truth = read(path, annotators="ground_truth")
        assert sum(len(row.words) for row in truth.rows) == words
        known = {row.place: row.words for row in truth.rows}
        assert all(known[row.place] == row.words for row in rows.rows)
        assert rows.report.kept == len(rows.rows) < rows.report.read == len(truth.rows)
    assert (used, lost) == (806, 1_964 - 806)


def test_lines_that_are_no_words_are_left_out_and_counted(write, tmp_path):
    write("crowd/ann/d1.txt", "-DOCSTART- O\na B-X\n# b c d\n# O\n-DOCSTART-\nc O\n")
    write("crowd/bob/d1.txt", "a S-X\n# O\n\nc O\n")
    rows = read(tmp_path / "crowd")
    assert sentences(rows) == ["a/B-X/B-X #/O/O", "c/O/O"]
    assert says(str(rows.report), "3 comments and -DOCSTART- lines are left out (first ... ann/d1.txt:1")
