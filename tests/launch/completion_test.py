"""`bert completion`: a real bash completes commands, options and settings with its script."""

import shutil
import subprocess

import pytest

from bert.errors import InputError
from launch import completion
from launch.commands import COMMANDS

TRY = """
source "$1"
function=$(complete -p bert | sed 's/.*-F \\([^ ]*\\).*/\\1/')
shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
$function bert "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


def test_bash_completes_commands_options_and_settings(tmp_path, capsys):
    if shutil.which("bash") is None:
        pytest.skip("needs bash")
    completion.run(["completion", "bash"])
    (tmp_path / "script").write_text(capsys.readouterr().out)

    def completed(*words):
        command = ["bash", "-c", TRY, "bash", tmp_path / "script", "bert", *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()

    assert set(COMMANDS) <= set(completed(""))
    assert completed("pre") == [name for name in COMMANDS if name.startswith("pre")]
    assert completed("predict", "--in") == ["--input", "--input_format"]
    assert "--config.optimizer.learning_rate" in completed("finetune", "--config.optimizer.l")


@pytest.mark.parametrize(
    ("words", "message"), [([], "name one shell"), (["bash", "zsh"], "name one"), (["bsh"], "'bsh'.*'bash'")]
)
def test_another_shell_is_refused(words, message):
    with pytest.raises(InputError, match=message):
        completion.run(["completion", *words])
