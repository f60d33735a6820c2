"""`python -m launch.embed`: the vectors that the library gives, in a file that is whole; one line for bad input."""

import numpy as np
import pyarrow.parquet
import pytest

import bert
from launch import embed, runtime
from tests.bert.interop.sentence_directory import TINY, make
from tests.bert.refusals import refused

TEXTS = ["the cat sat", "who is the dog", ""]


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    """Compiled programs go to the user's cache; here, that of the tests stays."""
    folders = set()
    monkeypatch.setattr(runtime, "start", lambda **options: folders.add(options["cache"]))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    yield
    assert folders <= {tmp_path / "cache" / "bert-jax"}


def test_lines_and_tables(tmp_path, capsys):
    """As declared by default; what the options choose otherwise."""
    model = make(tmp_path / "model", {"pooling_mode": "cls"}, ("Normalize",), settings={"prompts": {"q": "the "}})
    loaded = bert.load(model)
    (tmp_path / "a.txt").write_text("\n".join(TEXTS[:2]) + "\n\n")
    out = tmp_path / "a.npy"
    embed.run(["embed", f"--model={model}", f"--input={tmp_path / 'a.txt'}", f"--output={out}"])
    np.testing.assert_allclose(np.load(out), loaded.embed(TEXTS), rtol=0, atol=1e-6)
    said = capsys.readouterr().out
    for words in ("3 texts", "1 of them empty", "cls, made one long", f"wrote {out}: 3 vectors of 32"):
        assert words in said
    (tmp_path / "a.csv").write_text("id;said\n" + "\n".join(f"{i};{text}" for i, text in enumerate(TEXTS)))
    out = tmp_path / "a.parquet"
    words = ["--text=said", "--pooling=max,mean", "--normalize=no", "--prompt=q", "--batch_size=1", "--delimiter=;"]
    embed.run(["embed", f"--model={model}", f"--input={tmp_path / 'a.csv'}", f"--output={out}", *words])
    table = pyarrow.parquet.read_table(out)
    assert table["id"].to_pylist() == ["0", "1", "2"]
    want = loaded.embed(TEXTS, ("max", "mean"), normalize=False, prompt="q")
    np.testing.assert_allclose(np.stack(table["embedding"].to_numpy()), want, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--output=a.csv"], ("--output=a.csv", ".npy, .parquet")),
        (["--output={input}"], ("--output", "ending")),
        (["--output={folder}/o.npy", "--text=said"], ("--text=said", "each line")),
        (["--output={folder}/o.npy", "--columns=id,text"], ("a.txt", "no table", "--columns")),
        (["--output={folder}/o.npy", "--pooling=media"], ("'media'", "mean")),
        (["--output={folder}/o.npy", "--prompt=q"], ("'q'", "declares none")),
        (["--output={folder}/o.npy", "--normalize=maybe"], ("--normalize=maybe", "yes or no")),
        (["--output={folder}/none/o.npy", "--batch_size=0"], ("--batch_size=0", "at least 1")),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(tmp_path, words, said):
    source = tmp_path / "a.txt"
    source.write_text("the cat\n")
    words = [word.format(folder=tmp_path, input=source) for word in words]
    with refused(*said):
        embed.run(["embed", f"--model={TINY}", f"--input={source}", *words])
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
