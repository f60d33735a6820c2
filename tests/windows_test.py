"""The library and the commands where tests/windows.py plays Windows, each in a fresh process."""

import json
import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

from tests.launch import review_table, short_run

CHECKOUT = pathlib.Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.skipif(not os.path.exists("/proc/locks"), reason="needs /proc")

PARTS = ("--config.sentences=lines", "--config.validation_share=0.2")


def on_windows(code: str, folder: pathlib.Path, *arguments: object) -> None:
    """Runs code in a new process; sys.argv has the arguments."""
    code = "from tests.windows import pretend; pretend()\n" + textwrap.dedent(code)
    command = [sys.executable, "-X", "warn_default_encoding", "-c", code, *map(str, arguments)]
    variables = os.environ | {"PYTHONPATH": str(CHECKOUT)}
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]


def test_files_and_folders_are_replaced_and_what_killed_writers_left_is_cleared(tmp_path, killed_writer):
    """Nothing that is open is moved, and a writer at work is noticed though its mark cannot be read."""
    (tmp_path / "half").mkdir()
    killed_writer(tmp_path / "out", new=tmp_path / "half")
    code = """
    import os, pathlib
    from bert import files
    from bert.errors import InputError
    out = pathlib.Path("out")
    for text in ("old", "new"):
        files.write(pathlib.Path("file"), text)
        with files.replacing_file(pathlib.Path("other")) as path:
            path.write_text(text, "utf-8")
        with files.replacing(out, busy="wait") as new:
            (new / "a").write_text(text, "utf-8")
            try:
                with files.replacing(out, busy="wait"):
                    raise SystemExit("two writers")
            except InputError as error:
                assert str(error) == "wait"
        files.recover_interrupted_replace(out, "a", clear=True)
    for path in ("out/a", "file", "other"):
        assert pathlib.Path(path).read_text("utf-8") == "new", path
    with files.lock(pathlib.Path("lock"), "busy"):
        try:
            with files.lock(pathlib.Path("lock"), "busy"):
                raise SystemExit("held twice")
        except InputError as error:
            assert str(error) == "busy"
    assert sorted(os.listdir()) == ["file", "lock", "other", "out"]
    """
    on_windows(code, tmp_path)


def test_a_config_file_on_a_drive_is_parted_from_its_argument():
    from launch import config_files

    for path in ("C:\\recipes\\a.py", "C:/recipes/a.py", "a.py"):
        assert config_files.path_of(["", f"--config={path}:tiny"], None) == path


@pytest.mark.slow
def test_a_model_is_prepared_pretrained_finetuned_and_used(tmp_path):
    """Commands as they are started, twice where they go on; then the library on what they wrote."""
    lines = [row["review"] + " ." for row in review_table.reviews(400, 0)]
    documents = ["\n".join(lines[i : i + 4]) for i in range(0, len(lines), 4)]
    (tmp_path / "text.txt").write_text("\n\n".join(documents))
    table = review_table.write(tmp_path / "train.csv", review_table.reviews(40, 0))
    vocabulary = f"--config.vocab={review_table.TINY / 'vocab.txt'}"
    prepare = ["prepare", "--config=configs/prepare.py", f"--config.corpus={tmp_path / 'text.txt'}", vocabulary, *PARTS]
    chosen = [f"--config.data={table}", "--config.text=review", "--config.label=liked", "--config.epochs=1"]
    predict = ["predict", f"--model={tmp_path / 'liked'}", f"--input={table}", f"--output={tmp_path / 'out.csv'}"]
    score = ["score", f"--model={tmp_path / 'run'}", f"--data={tmp_path / 'text.txt'}"]
    commands = [
        [*prepare, f"--out={tmp_path / 'prepared'}"],
        [*short_run.command(tmp_path / "prepared", tmp_path / "run"), "--config.total_steps=4"],
        short_run.command(tmp_path / "prepared", tmp_path / "run"),
        ["finetune", *review_table.QUICK, *chosen, f"--workdir={tmp_path / 'liked'}"],
        score,
        *[predict] * 2,
        *[["report", str(tmp_path / "liked"), f"--out={tmp_path / 'report.html'}"]] * 2,
        *[["export", f"--source={tmp_path / 'liked'}", f"--out={tmp_path / 'exported'}"]] * 2,
    ]
    code = """
    import json, sys
    from launch.commands import module_of
    import bert, importlib
    folder, tiny, commands = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
    assert bert.load(tiny).fill_mask("the [MASK] sat .")
    for command in commands:
        print(command, file=sys.stderr)
        importlib.import_module(module_of(command[0])).run(command)
    for name in ("liked", "exported"):
        assert bert.load(f"{folder}/{name}").predict([{"review": "a great movie"}])
    bert.save(bert.load(f"{folder}/run"), f"{folder}/saved")
    """
    on_windows(code, CHECKOUT, tmp_path, review_table.TINY, json.dumps(commands))
    assert not list(tmp_path.rglob("*.unfinished-*"))
