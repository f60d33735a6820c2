"""Where predictions and scores go: into files, links, pipes and devices, never over the input; and what is printed."""

import io
import os
import pathlib
import sys
import threading

import pytest

from bert.errors import InputError
from launch import evaluate, predict

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]

GOLDEN = CHECKOUT / "tests" / "golden"
CLASSIFIER, READER = GOLDEN / "tiny_seqcls", GOLDEN / "tiny_qa"
ROWS = "text,label\nthe good \x1b[2Jfilm,neutral\nthe bad film,entailment\n"
COLUMNS = ("--text=text", "--label=label")


@pytest.fixture
def source(tmp_path) -> pathlib.Path:
    path = tmp_path / "in.csv"
    path.write_text(ROWS)
    return path


def predicted(source, output, *words):
    model = f"--model={CLASSIFIER}"
    return predict.run(["predict", model, f"--input={source}", f"--output={output}", "--format=csv", *COLUMNS, *words])


def scored(source, output):
    evaluate.run(["evaluate", f"--model={CLASSIFIER}", f"--data={source}", f"--out={output}", *COLUMNS])


@pytest.mark.parametrize("command", [predicted, scored])
def test_an_output_that_is_no_plain_file(source, tmp_path, command):
    """A pipe is written into, a link is followed, a folder and a place in a file are refused."""
    command(source, tmp_path / "plain")
    wanted = (tmp_path / "plain").read_bytes()
    pipe, link, read = tmp_path / "pipe", tmp_path / "link", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    command(source, pipe)
    assert pipe.is_fifo()
    reader.join()
    link.symlink_to("linked")
    command(source, link)
    assert read == [(tmp_path / "linked").read_bytes()] == [wanted]
    assert link.is_symlink()
    for place, why in ((source / "x", "Not a directory"), (tmp_path, "is a folder")):
        with pytest.raises(InputError, match=rf"{place}: .*{why}"):
            command(source, place)


@pytest.mark.parametrize("command", [predicted, scored])
def test_a_terminal_shows_how_many_rows_are_done(source, tmp_path, monkeypatch, capfd, command):
    screen = io.StringIO()
    screen.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(sys, "__stderr__", screen)
    command(source, tmp_path / "plain")
    assert "2/2" in screen.getvalue()
    assert "2/2" not in capfd.readouterr().out


@pytest.mark.parametrize("command", [predicted, scored])
def test_standard_output_as_the_output_holds_nothing_else(source, tmp_path, capfd, command):
    command(source, tmp_path / "plain")
    report, _ = capfd.readouterr()
    command(source, "/dev/stdout")
    out, errors = capfd.readouterr()
    assert out == (tmp_path / "plain").read_text()
    assert report.splitlines()[0] in errors


@pytest.mark.parametrize("command", [predicted, scored])
@pytest.mark.parametrize("other", ["link", "hard link", "relative", "link in the way", "dots"])
def test_the_input_is_never_replaced_whatever_it_is_called(source, tmp_path, monkeypatch, command, other):
    (tmp_path / "x").mkdir()
    path = tmp_path / "x" / "other.csv"
    if other == "link":
        path.symlink_to(source)
    elif other == "hard link":
        path.hardlink_to(source)
    elif other == "link in the way":
        (tmp_path / "folder").symlink_to(tmp_path)
        path = tmp_path / "folder" / source.name
    elif other == "dots":
        path = tmp_path / "x" / ".." / source.name
    else:
        monkeypatch.chdir(tmp_path / "x")
        path = pathlib.Path("..") / source.name
    with pytest.raises(InputError, match="is the input"):
        command(source, path)
    assert source.read_text() == ROWS


@pytest.mark.parametrize("command", [predicted, scored])
def test_no_file_is_called_as_a_packed_one_is(source, tmp_path, command):
    with pytest.raises(InputError, match=r"out\.csv\.GZ: .* leave out \.gz"):
        command(source, tmp_path / "out.csv.GZ")


def test_a_file_in_the_input_folder_is_never_replaced(source, tmp_path):
    """By a hard link that lies outside of it, or where a link in it leads."""
    folder = tmp_path / "data"
    folder.mkdir()
    (tmp_path / "hard.csv").write_text("theirs")
    (folder / "test.tsv").hardlink_to(tmp_path / "hard.csv")
    (folder / "dev.tsv").symlink_to(source)
    for output in (tmp_path / "hard.csv", source, folder / "test.tsv"):
        with pytest.raises(InputError, match="is the input"):
            predicted(folder, output)


def test_official_files_beside_the_output_never_replace_the_input(tmp_path, terminal):
    """The file with the candidates has a name of its own; into a pipe or device goes the first file alone."""
    path = tmp_path / "nbest_predictions_dev.json"
    path.write_text(
        '{"data": [{"paragraphs": [{"context": "the cat sat", "qas": [{"id": "a", "question": "who?", "answers": '
        '[{"text": "cat", "answer_start": 4}]}]}]}]}'
    )
    before = path.read_bytes()
    common = ["predict", f"--model={READER}", f"--input={path}"]
    with pytest.raises(InputError, match=r"nbest_.*_dev\.json: is the input"):
        predict.run([*common, f"--output={tmp_path / 'dev.json'}"])
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]
    device, reading = terminal
    predict.run([*common, f"--output={device}", "--format=json"])
    assert os.read(reading, 9).startswith(b"{")
    assert path.read_bytes() == before


def test_a_text_or_a_name_makes_no_line_of_its_own(source, tmp_path, capsys):
    """Worst rows and names are printed on one line each, escaped; the files that are written have them as they are."""
    odd = tmp_path / "a\nerror: fake\x1b.csv"
    source.rename(odd)
    scored(odd, tmp_path / "b\n\x1b.json")
    predicted(odd, tmp_path / "out.csv")
    printed = capsys.readouterr().out
    assert "\x1b" not in printed
    assert not [line for line in printed.splitlines() if line.startswith(("error", ".json"))]
    assert r"good \x1b[2Jfilm" in printed
    assert r"\u001b[2J" in (tmp_path / "b\n\x1b.json").read_text()
    assert "\x1b[2J" in (tmp_path / "out.csv").read_text()


def test_names_that_are_not_utf_8(tmp_path):
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.csv")
    pathlib.Path(odd).write_text(ROWS)
    scored(odd, os.fsdecode(os.fsencode(tmp_path) + b"/\xfe.json"))
    predicted(odd, os.fsdecode(os.fsencode(tmp_path) + b"/\xfd.csv"))
    assert sorted(os.listdir(os.fsencode(tmp_path))) == [b"\xfd.csv", b"\xfe.json", b"\xff.csv"]


def test_the_rows_of_which_the_model_is_least_sure_come_first(source, tmp_path):
    predicted(source, tmp_path / "out.csv", "--rank=disagreement", "--top=1")
    header, row = (tmp_path / "out.csv").read_text().splitlines()
    assert header.endswith(",disagreement")  # a label each row is no votes
    assert len(row.split(",")) == len(header.split(","))
    for words, message in (
        (["--rank=entrop"], "--rank is 'entrop'.*did you mean 'entropy'"),
        (["--top=1"], "--top=1 needs --rank"),
        (["--rank=margin", "--top=0"], "--top=0"),
        (["--rank=margin", "--format=glue"], "glue"),
    ):
        with pytest.raises(InputError, match=message):
            predicted(source, tmp_path / "new.csv", *words)
    assert not (tmp_path / "new.csv").exists()
