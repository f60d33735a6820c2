import importlib
import re

import pytest

from bert.architectures.bert import BertConfig
from bert.errors import InputError
from bert.training.optim import OptimizerSettings
from launch import flags, foreign_flags
from launch.commands import COMMANDS as PROGRAM
from launch.commands import module_of
from launch.foreign_names import TABLE
from launch.foreign_tools import TOOLS
from launch.foreign_values import OneOf, Ours

# Config files of a command ("" for none) -> its options.
COMMANDS = {
    (name, file): importlib.import_module(module_of(name)).OPTIONS
    for name, command in PROGRAM.items()
    for file in (
        [f"configs/{task}.py" for task in ("table", "bio_mrc", "squad", "tagging")]
        if name == "finetune"
        else [command.config]
    )
}
NAMES = [name for names in TABLE.values() for key in names for name in key.split()]


@pytest.fixture(scope="module")
def commands():
    """(command, config file) -> (settings, options)."""
    return {key: (flags.defaults(key[1]) if key[1] else {}, list(options)) for key, options in COMMANDS.items()}


def _named(text):
    """(setting or option, the command behind it or "") of all that a message names."""
    return re.findall(
        r"--((?:config\.)?[a-z_]\w*(?:\.\w+)*)(?:=\S+)?(?: of ((?:bert [\w-]+|and|with| |configs/\w+\.py)+))?", text
    )


def _having(commands, name):
    """The commands, or config files, that have a setting ("config.seed") or an option ("seed")."""
    if not name.startswith("config."):
        return {key for key, (_, options) in commands.items() if name in options}
    return {key for key, (settings, _) in commands.items() if name.removeprefix("config.") in settings}


def test_each_answer_names_settings_that_the_command_has(commands):
    """Of the whole table, in each command; what another command has is said to be of that one, and is there."""
    seen = set()
    for here in commands:
        for name in NAMES:
            with pytest.raises(InputError) as caught:
                foreign_flags.refuse(["x", f"--config.section.{name}"], *commands[here])
            message = str(caught.value)
            assert "\n" not in message
            for spelling, others in _named(message.split("; ", 1)[1]):
                having = _having(commands, spelling)
                files = re.findall(r"configs/\w+\.py", others)
                for other in re.findall(r"bert ([\w-]+)", others):
                    assert [key for key in having if key[0] == other and (not files or key[1] in files)], message
                assert others or here in having or spelling == "config", f"{here} {message}"
                seen.add((spelling, bool(others)))
    assert len(seen) > 80


def test_each_setting_of_the_table_is_of_a_command(commands):
    names = {
        foreign_flags.spelled(one.name)[2:] for of in TABLE.values() for ours in of.values() for one in ours if one.name
    }
    assert [name for name in names if not _having(commands, name)] == []


def test_names_are_told_once_and_each_tool_has_names_of_the_table():
    assert len(NAMES) == len(set(NAMES))
    assert [name for names in TOOLS.values() for name in names if name not in NAMES] == []
    assert all(len(names) == len(set(names)) for names in TOOLS.values())


def test_translated_values_are_accepted(commands):
    """Each value that the table writes for one of theirs can be given to the setting."""
    written = 0
    for names in TABLE.values():
        for ours in (one for candidates in names.values() for one in candidates if isinstance(one.value, OneOf)):
            for value in set(ours.value.values()):
                if not ours.name.startswith("--"):
                    file = next(file for (_, file), (settings, _) in commands.items() if ours.name in settings)
                    config, _ = flags.parse(
                        ["x", f"--config={file}", f"--config.{ours.name}={value}"], "", {}, config_file=None
                    )
                    section, _, field = ours.name.rpartition(".")
                    assert str((config[section] if section else config)[field]) == value
                if ours.name.startswith("optimizer."):
                    OptimizerSettings(1000, 1e-4, **{ours.name.split(".")[1]: value})
                if ours.name == "model.dtype":
                    BertConfig(vocab_size=8, dtype=value)
                written += 1
    assert written > 20


@pytest.mark.parametrize(
    ("command", "words", "answer"),
    [
        (("finetune", "configs/table.py"), ["--learning_rate=3e-5"], "write --config.optimizer.learning_rate=3e-5"),
        (("finetune", "configs/table.py"), ["--lr", "3e-5"], "write --config.optimizer.learning_rate=3e-5"),
        (("finetune", "configs/table.py"), ["-lr", "3e-5"], "write --config.optimizer.learning_rate=3e-5"),
        (("pretrain", "configs/pretrain.py"), ["--learning-rate=1"], "write --config.optimizer.learning_rate=1"),
        (("pretrain", "configs/pretrain.py"), ["--config.lr=1"], "write --config.optimizer.learning_rate=1"),
        (("pretrain", "configs/pretrain.py"), ["--config.optimizer.lr"], "--config.optimizer.learning_rate=VALUE"),
        (("pretrain", "configs/pretrain.py"), ["--num_train_epochs=3"], "--config.total_steps=VALUE; .*steps"),
        (("finetune", "configs/squad.py"), ["--num_train_epochs=3"], "write --config.epochs=3$"),
        (("finetune", "configs/squad.py"), ["--doc_stride=128"], "--config.window_step=VALUE; .*overlap"),
        (("finetune", "configs/squad.py"), ["--version_2_with_negative"], "--config.no_answer=yes$"),
        (("finetune", "configs/tagging.py"), ["--text_column_name=tokens"], "write --config.words=tokens$"),
        (("finetune", "configs/table.py"), ["--text_column_name=a b"], "write --config.text='a b'$"),
        (("finetune", "configs/table.py"), ["--fp16"], "write --config.model.dtype=bfloat16; "),
        (("finetune", "configs/table.py"), ["--fp16=False"], "write --config.model.dtype=float32; "),
        (("finetune", "configs/table.py"), ["--lr_scheduler_type=cosine"], "write --config.optimizer.schedule=cosine$"),
        (("finetune", "configs/table.py"), ["--optim=sgd"], r"--config.optimizer.name=adamw\|lamb\|google_adamw$"),
        (("finetune", "configs/table.py"), ["--config.optimizer=lamb"], "write --config.optimizer.name=lamb$"),
        (("finetune", "configs/table.py"), ["--max_answer_length=3"], "--config.max_answer of .*configs/squad.py$"),
        (("finetune", "configs/table.py"), ["--batch_size", "8"], "write --config.batch_size=8$"),
        (("pretrain", "configs/pretrain.py"), ["--whole-words=True"], "write --config.examples.whole_words=True$"),
        (("pretrain", "configs/pretrain.py"), ["--mlm_probability=.2"], "write --config.examples.mask_rate=.2$"),
        (("prepare", "configs/prepare.py"), ["--masked_lm_prob=.2"], "bert pretrain$"),
        (("prepare", "configs/prepare.py"), ["--do_lower_case"], "write --config.lower_case=True$"),
        (("finetune", "configs/table.py"), ["--resume_from_checkpoint"], "resumes"),
        (("finetune", "configs/table.py"), ["--validation_split_percentage=5"], "validation_share=0.05; "),
        (("predict", ""), ["--per_device_eval_batch_size=8"], "write --batch_size=8$"),
        (("predict", ""), ["--output_dir=x"], "write --output=x$"),
        (("finetune", "configs/table.py"), ["--report_to=wandb"], "write --config.tracker=wandb; "),
        (("finetune", "configs/table.py"), ["--report_to=all"], r"write --config.tracker=wandb\|mlflow; "),
        (("pretrain", "configs/pretrain.py"), ["--wandb_project=p"], "write --config.tracker=wandb; WANDB_PROJECT"),
        (("pretrain", "configs/pretrain.py"), ["--push_to_hub"], "bert push DIR USER/NAME$"),
        (("push", ""), ["--repo_id=me/mine"], "bert push DIR USER/NAME$"),
        (("push", ""), ["--hub_private_repo"], "write --private=yes$"),
        (("push", ""), ["--token=hf_x"], "HF_TOKEN"),
        (("pretrain", "configs/pretrain.py"), ["--max-sentences=16"], "write --config.batch_size=VALUE; .*per device"),
        (("pretrain", "configs/pretrain.py"), ["--model_type=roberta"], "write --config.model.model_type=VALUE; "),
        (("pretrain", "configs/pretrain.py"), ["--eval_strategy=steps"], "write --config.evaluate_every=VALUE$"),
        (("pretrain", "configs/pretrain.py"), ["--save_steps=0.1"], "write --config.save_every=VALUE$"),
        (("finetune", "configs/table.py"), ["--max_steps=-1"], "write --config.steps=VALUE$"),
        (("finetune", "configs/table.py"), ["--num_train_epochs=3"], "write --config.epochs=3$"),
        (("finetune", "configs/table.py"), ["--training.optimizer.weight-decay=.1"], "optimizer.weight_decay=.1$"),
        (("finetune", "configs/table.py"), ["--dataloader_pin_memory"], "leave it out$"),
        (("predict", ""), ["--top_k=3"], "each class"),
        (("export", ""), ["--top_k=3"], "it is --top of bert fill-mask"),
        (("predict", ""), ["--learning_rate=1"], "it is --config.optimizer.learning_rate of bert pretrain and"),
        (("export", ""), ["--model_name_or_path=x"], "write --source=x$"),
        (("fill-mask", ""), ["--top_k", "3", "a text"], "write --top=3$"),
        (("fill-mask", ""), ["a text", "--top_k=3"], "write --top=3$"),
    ],
)
def test_flags_of_other_tools_are_answered_with_ours(commands, command, words, answer):
    """By a command line as `parse` reads it: with one line, and the value where it means the same."""
    file = [f"--config={command[1]}"] if command[1] else []
    options = dict.fromkeys(commands[command][1], "text")
    with pytest.raises(InputError, match=rf"^unknown option --.*{answer}") as caught:
        flags.parse(["x", *file, *words], "", options, config_file=command[1] and None, arguments="texts")
    assert "\n" not in str(caught.value)


def test_several_are_answered_at_once(commands):
    """What can be pasted stands together; each note says what it is about."""
    words = ["x", "--lr=1e-5", "--fp16", "--epochs", "2", "--push_to_hub"]
    with pytest.raises(InputError) as caught:
        foreign_flags.refuse(words, *commands["finetune", "configs/table.py"])
    message = str(caught.value)
    assert message.startswith("unknown options --lr=1e-5, --fp16, --epochs=2, --push_to_hub; write ")
    assert "--config.optimizer.learning_rate=1e-5 --config.model.dtype=bfloat16 --config.epochs=2; --fp16: " in message
    assert "; --push_to_hub: " in message


def test_others_are_named_beside_them(commands):
    """What is nothing of ours and nothing of the table: a paste of a long command is answered once."""
    words = ["x", "--lr=1e-5", "--phase2", "--config.epoch=3", "--modle=x"]
    with pytest.raises(InputError) as caught:
        foreign_flags.refuse(words, *commands["finetune", "configs/table.py"])
    message = str(caught.value)
    assert message.startswith("unknown options --lr=1e-5, --phase2, --config.epoch, --modle; write --config.optim")
    assert "--phase2: unknown; leave it out" in message
    assert "--config.epoch: unknown; did you mean --config.epochs?" in message


def test_a_name_in_another_section_is_no_setting_of_ours(commands):
    """components.transformer.model.name of spaCy is not config.optimizer.name."""
    settings, options = commands["finetune", "configs/table.py"]
    foreign_flags.refuse(["x", "--components.transformer.model.name=roberta-base"], settings, options)
    with pytest.raises(InputError, match=r"write --config\.optimizer\.name=lamb"):
        foreign_flags.refuse(["x", "--optimizer.name=lamb"], settings, options)


def test_what_a_command_has_is_never_foreign(commands):
    for settings, options in commands.values():
        words = [*(f"--config.{name}=1" for name in settings), *(f"--{name}=1" for name in options), "text", "--help"]
        foreign_flags.refuse(["x", *words, "--", "--lr=3"], settings, options)


def test_the_note_of_a_command_without_the_setting_is_that_of_the_table():
    assert foreign_flags.ours("nothing_like_it", [], []) is None
    assert foreign_flags.ours("--config.Optimizer.LR", ["optimizer.learning_rate"], []) == Ours(
        "optimizer.learning_rate"
    )
