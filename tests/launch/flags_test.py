import importlib
import os
import signal
import subprocess
import sys

import pytest

from bert.errors import InputError
from launch import command_line, flags
from launch.options import Options

CONFIG = """
from ml_collections import ConfigDict, config_dict

def get_config(size="small"):
    if size not in ("small", "large"):
        raise ValueError(f"size {size!r} must be small or large")
    config = ConfigDict()
    config.steps = 1  # optimizer steps
    config.rate = 0.5
    config.name = "a"
    config.cased = config_dict.placeholder(bool)
    config.data = ConfigDict()
    config.data.batch_size = 8 if size == "small" else 64  # rows
    return config
"""


@pytest.fixture
def parse(tmp_path, monkeypatch):
    path = tmp_path / "x.py"
    path.write_text(CONFIG)
    # ml_collections loads each file into this module, where names of the file before would stay.
    monkeypatch.delitem(sys.modules, "config_config", raising=False)

    def one(*words, config_file=str(path), **settings):
        settings = {"options": {"out": "folder to write", "model": "model directory"}, **settings}
        words = [word.replace("FILE", str(path)) for word in words]
        return flags.parse(["prog", *words], doc="Does a thing.", config_file=config_file, **settings)

    return one


def test_settings_options_and_defaults(parse):
    """Values given win, all others keep their defaults, and options that were not given are None."""
    config, options = parse("--config.steps=7", "--config.data.batch_size", "16", "--out=there")
    assert (config.steps, config.data.batch_size, config.rate, options.out, options.model) == (
        7,
        16,
        0.5,
        "there",
        None,
    )


def test_settings_may_stand_before_the_file_and_the_last_one_wins(parse):
    config, _ = parse("--config.steps=3", "--config=FILE:large", "--config.steps=4", config_file=None)
    assert (config.steps, config.data.batch_size) == (4, 64)


def test_of_two_settings_that_decide_the_same_one_is_kept(parse):
    """One on the command line counts before one in the file, the first before the second; never both in silence."""
    for words, kept in ((["--config.steps=3"], (3, None)), (["--config.rate=0.1"], (None, 0.1)), ([], (1, None))):
        config, _ = parse(*words)
        flags.keep_one(["prog", *words], config, "steps", "rate")
        assert (config.steps, config.rate) == kept
    config.update({"steps": None, "rate": 0.5})
    flags.keep_one(["prog"], config, "steps", "rate")
    assert (config.steps, config.rate) == (None, 0.5)
    words = ["--config.rate=0.1", "--config.steps=3"]
    with pytest.raises(InputError, match=r"config\.steps and config\.rate .*both"):
        flags.keep_one(["prog", *words], parse(*words)[0], "steps", "rate")


@pytest.mark.parametrize(
    ("words", "cased"),
    [(["--config.cased=true"], True), (["--config.cased", "False"], False), (["--noconfig.cased"], False), ([], None)],
)
def test_settings_that_may_be_left_open(parse, words, cased):
    """A true/false setting takes every form of writing it, and stays open where nothing is said."""
    assert parse(*words)[0].cased is cased


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--config.stepz=3"], r"unknown setting config.stepz; did you mean config.steps\?$"),
        (
            ["--config.data.batchsize=3"],
            r"unknown setting config.data.batchsize; did you mean config.data.batch_size\?$",
        ),
        (["--config.batch_size=3"], r"unknown setting config.batch_size; did you mean config.data.batch_size\?$"),
        (["--config.zzz=3"], "unknown setting config.zzz; known: config.cased, config.data.batch_size, config.name"),
        (["--config.dta.batch_size=3"], r"config.dta.batch_size.* config.data.batch_size"),
        (["--config.steps.x=3"], r"config.steps.x.* config.steps\?"),
        (["--config.name[0]=b"], r"config.name\[0\].* config.name\?"),
        (["--config.=3"], "unknown setting config.; known"),
        (["--config.steps", "--out=x"], "--config.steps has no value"),
        (["--noconfig.steps"], "--config.steps has no value"),
        (["--config.steps=many"], "--config.steps=many: must be a whole number, in digits$"),
        (["--config.cased=maybe"], "--config.cased=maybe: must be True or False$"),
        (["--config.rate=abc"], "--config.rate=abc: must be a number$"),
        (["--config.steps=1.5"], "--config.steps=1.5: "),
        (["--config.data={'batch_size': 3}"], "config.data is a section; set its fields one by one"),
        (["--config=FILE:huge"], "x.py:huge: size 'huge' must be small or large"),
        (["--config=none.py"], "--config=none.py: no such file"),
        (["--outt=x"], r"unknown option --outt; did you mean --out\?$"),
        (["--help_me=x"], r"unknown option --help_me; "),
        (["--out"], "Missing value for flag --out"),
        (["there"], "'there' belongs to no option"),
        *(
            ([word, "--config.steps=3"], "--config=FILE is missing")
            for word in ("--config", "--config=", "--config=:x")
        ),
    ],
)
def test_what_is_mistyped_is_told_in_one_line_with_the_nearest_name(parse, words, message):
    with pytest.raises(InputError, match=message) as caught:
        parse(*words)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("command", "change", "place"),
    [
        ("pretrain", "config.optimizer.lerning_rate = 3e-4", "config.optimizer.lerning_rate.*optimizer.learning_rate"),
        ("pretrain", "del config.allocator", "lacks config.allocator"),
        ("pretrain", "config = tagging.get_config()", "configs/pretrain.py"),
        ("prepare", "", "configs/prepare.py"),
        ("finetune", "", "config.task"),
        ("finetune", "config.task = 'tagging'", "configs/tagging.py"),
    ],
)
def test_files_of_other_commands_and_misspelt_names_in_files(tmp_path, monkeypatch, command, change, place):
    """A config file that lacks a setting, or has one that nothing reads, is refused by name."""
    monkeypatch.delitem(sys.modules, "config_config", raising=False)
    lines = ["config = pretrain.get_config()", change, "return config"]
    text = "from configs import pretrain, tagging\n\ndef get_config():\n" + "".join(f"    {line}\n" for line in lines)
    (tmp_path / "x.py").write_text(text)
    folder = f"--{'out' if command == 'prepare' else 'workdir'}={tmp_path / 'new'}"
    with pytest.raises(InputError, match=place):
        importlib.import_module(f"launch.{command}").run([command, f"--config={tmp_path / 'x.py'}", folder])
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("words", "spelling"),
    [(["--model=a/bert/"], "--model"), (["--config.name=a/bert"], "--config.name"), (["--model=other"], None)],
)
def test_what_to_pass_is_spelled_as_the_option_that_had_the_name(parse, words, spelling):
    parse(*words)
    message = "a/bert: no such directory; get it, then pass DIR"
    assert command_line.as_options(message) == message.replace(
        "pass DIR", f"pass {spelling}=DIR" if spelling else "pass DIR"
    )


def test_required_options_and_files(parse):
    with pytest.raises(InputError, match=r"--out is missing \(folder"):
        parse(required=("out",))
    with pytest.raises(InputError, match="--out is missing"):
        parse("--out=", required=("out",))
    with pytest.raises(InputError, match="--config=FILE is missing"):
        parse(config_file=None)


def test_words_and_commands_without_config(parse):
    """A command may take words, and may have no config at all; then --config is unknown."""
    config, options = parse("--model=m", "a text", "another", config_file="", arguments="texts")
    assert (options.arguments, options.model, dict(config)) == (["a text", "another"], "m", {})
    with pytest.raises(InputError, match="unknown option --config"):
        parse("--config=FILE", config_file="")


def test_undeclared_options_are_a_mistake_of_the_launcher(parse):
    with pytest.raises(AttributeError, match=r"--input .*out, model"):
        _ = parse()[1].input


def test_the_config_is_locked(parse):
    with pytest.raises(AttributeError):
        parse()[0].new_field = 1


def test_help_lists_options_and_settings(parse, capsys):
    """--help shows what the command does, its options and each setting with its default and comment; exit code 0."""
    with pytest.raises(SystemExit) as caught:
        parse("--help", required=("out",))
    assert caught.value.code == 0
    text = capsys.readouterr().out
    assert "Does a thing." in text
    assert "folder to write (required)" in text
    lines = [line.split() for line in text.splitlines()]
    assert ["--config.steps=1", "optimizer", "steps"] in lines
    assert ["--config.data.batch_size=8", "rows"] in lines
    assert ["--config.rate=0.5"] in lines


def test_long_help_is_wrapped_to_the_terminal_with_all_its_words(parse, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "70")
    long_text = "one two three " * 20
    with pytest.raises(SystemExit):
        parse("--help", options={"out": long_text, "a_name_that_is_longer_than_the_column": "short"})
    shown = capsys.readouterr().out
    assert max(map(len, shown.partition("Options:")[2].partition("Settings in")[0].splitlines())) <= 70
    assert " ".join(long_text.split()) in " ".join(shown.split())
    assert "--a_name_that_is_longer_than_the_column=TEXT short" in " ".join(shown.split())


def _as_a_shell_reads(text):
    done = subprocess.run(["sh", "-c", f"printf '%s\\n' {text}"], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (["--config.steps=9", "--config.name=b c", "--out=x y"], 5),
        (["--config=FILE:large", "--config.data.batch_size=64", "--config.cased=False"], 3),
        (["--config.steps=1"], 2),
    ],
)
def test_what_is_shown_is_what_differs_and_can_be_pasted_back(parse, capsys, given, shown):
    """The file and what differs from it: given to a shell as a command line, they give the same settings."""
    config, options = parse(*given, "--model=m")
    command_line.show(config, options, "runs/x/config.json")
    first, _, command = capsys.readouterr().out.partition("\n")
    words = _as_a_shell_reads(command)
    assert first.endswith("(all are in runs/x/config.json):")
    assert words[0].startswith("--config=")
    assert words[0].endswith("x.py:large" if "--config=FILE:large" in given else "x.py")
    assert len(words) == shown
    again, chosen = parse(*words)
    assert again.to_dict() == config.to_dict()
    assert chosen == options


def test_settings_of_several_texts_can_be_pasted_back(capsys):
    config, options = flags.parse(
        ["x", "--config=configs/pretrain.py:tiny", "--config.probes=('a b', 'c')"], "", {}, config_file=None
    )
    command_line.show(config, options)
    words = _as_a_shell_reads(capsys.readouterr().out)
    assert words[0] == "--config=configs/pretrain.py:tiny"
    assert flags.parse(["x", *words], "", {}, config_file=None)[0].probes == ("a b", "c")


@pytest.mark.parametrize(
    ("body", "code", "error"),
    [
        ("pass", 0, ""),
        ("raise RunError('worker killed')", 1, "error: worker killed\n"),
        ("raise InputError('bad file')", 2, "error: bad file\n"),
        # Names of files and tensors are anyone's: they neither end the line nor steer the terminal.
        (r"raise InputError('a\nerror: b\x1b[2J\udc80 é')", 2, "error: a\\nerror: b\\x1b[2J\\udc80 é\n"),
        (r"raise RunError('a\rb')", 1, "error: a\\rb\n"),
    ],
)
def test_exit_codes(body, code, error):
    """0 when done; 1 and one line for a run that cannot go on; 2 and one line for bad input."""
    imports = "from launch import flags\nfrom bert.errors import InputError, RunError\n"
    program = f"{imports}def run(argv):\n    {body}\nflags.main(run)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (code, error)


def test_yes_or_no():
    """An option that is neither is refused, not taken for no."""
    given = [Options(details=value).yes_or_no("details") for value in (None, "no", "yes")]
    assert given == [False, False, True]
    with pytest.raises(InputError, match=r"^--details=true: .*yes"):
        Options(details="true").yes_or_no("details")


def test_a_pipe_whose_reader_has_ended_ends_a_command_without_a_traceback():
    """Output that is longer than a pipe holds, read by nobody."""
    program = "from launch import flags; flags.main(lambda argv: print('x' * 1_000_000))"
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(60) == 1


def test_the_keyboard_stops_a_command_that_is_still_importing(tmp_path):
    """With one line and no traceback; importing `launch` otherwise leaves the interpreter's hook alone."""
    (tmp_path / "jax.py").write_text("import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(9)\n")
    command = [sys.executable, "-m", "launch.finetune", "--help"]
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "error: stopped by the keyboard\n")
    program = "import sys, launch; assert sys.excepthook is sys.__excepthook__"
    subprocess.run([sys.executable, "-c", program], check=True)
