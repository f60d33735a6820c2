"""Uploads a model to the Hugging Face Hub: the files of its model directory and nothing else.

bert push runs/mine me/mine
bert push mine-hf my-group/mine --private=no --message="Trained on the new corpus"
bert push mine-onnx me/mine --revision=onnx

It needs a network, the package huggingface_hub, and a token: `hf auth login`, or HF_TOKEN in the environment.
"""

import os
import pathlib
from typing import Any

from bert import files
from bert.errors import InputError, RunError, listed, printable
from bert.extras import check_installed
from launch import flags

OPTIONS = {
    "private": "yes or no: whether a repository that is new is private (yes where not given)",
    "revision": "branch to upload to; made where it is missing (main where not given)",
    "message": "of the commit",
}
_LOGIN = "run `hf auth login`, or set HF_TOKEN, with a token that may write"


def run(argv: list[str]) -> None:
    _, options = flags.parse(
        argv, __doc__, OPTIONS, arguments="DIR NAME: a model or run directory; USER/NAME on the Hub"
    )
    private = options.private is None or options.yes_or_no("private")
    if len(options.arguments) != 2:
        raise InputError("give a directory and a name on the Hub, such as runs/mine me/mine")
    directory, name = options.arguments
    check_installed("huggingface_hub", "huggingface_hub", "hub", "bert push")
    check_name(name)
    folder, names, left = contents(pathlib.Path(directory))
    if left:
        print(printable(f"not uploaded, for they are no files of a model: {listed(left, 5)}"))
    print(upload(folder, names, name, private, options.revision or "main", options.message or "Upload a model"))


def check_name(name: str) -> None:
    """InputError for a name that the Hub would refuse."""
    from huggingface_hub.utils import HFValidationError, validate_repo_id

    try:
        validate_repo_id(name)
    except HFValidationError as error:
        raise InputError(
            f"{printable(name)}: is no name on the Hub ({str(error).split(chr(10))[0]}); write USER/NAME"
        ) from None


def contents(directory: pathlib.Path) -> tuple[pathlib.Path, list[str], list[str]]:
    """The model directory, its files, and what else is in it. InputError where it is not complete or does not load."""
    import bert  # JAX is slow to import, and --help needs none
    from bert.interop import export, hugging_face
    from bert.interop.formats import weight_files
    from bert.training import run_directory

    folder = directory
    if (directory / run_directory.CHECKPOINTS).is_dir() or (directory / run_directory.MODEL).is_dir():
        folder = directory / run_directory.MODEL
        if not folder.is_dir():
            raise InputError(f"{folder}: is not there, so the run has no finished model; train it to the end")
    entries = files.names_in(folder)
    names = export.model_files(entries)
    if not any(name in names for name in hugging_face.PROGRAMS.values()):
        bert.load(folder)
        if not {weight_files.SAFETENSORS, weight_files.INDEX} & {*names}:
            raise InputError(f"{folder}: its weights are not in safetensors; export it, and push the export")
    elif hugging_face.CONFIG_FILE not in names:
        raise InputError(f"{folder}: has no {hugging_face.CONFIG_FILE}; export the model again")
    return folder, names, sorted(entries - {*names})


def upload(folder: pathlib.Path, names: list[str], name: str, private: bool, revision: str, message: str) -> str:
    """Creates the repository where it is missing, and uploads all files in one commit; its address.

    Files of a model that was there before and has other files, such as shards, are deleted by the same commit.
    InputError where the Hub refuses the token or the name, RunError where it cannot be reached.
    """
    import huggingface_hub as hub
    from huggingface_hub import constants
    from huggingface_hub.errors import HfHubHTTPError

    from bert.interop import export

    if constants.HF_HUB_OFFLINE:
        raise InputError("HF_HUB_OFFLINE is set, so nothing can be uploaded; unset it")
    if hub.get_token() is None:
        raise InputError(f"there is no token of the Hugging Face Hub; {_LOGIN}")
    api: Any = hub.HfApi()
    try:
        name = api.create_repo(name, private=private, exist_ok=True).repo_id
        if revision != "main":
            api.create_branch(name, branch=revision, exist_ok=True)
        stale = {*export.model_files(api.list_repo_files(name, revision=revision))} - {*names}
        changes: list[Any] = [hub.CommitOperationAdd(path, os.fspath(folder / path)) for path in names]
        changes += [hub.CommitOperationDelete(path) for path in sorted(stale)]
        api.create_commit(name, changes, commit_message=message, revision=revision)
    except HfHubHTTPError as error:
        status = error.response.status_code if error.response is not None else 0
        why = printable(str(error).strip().split("\n")[0][:200])
        if status in (400, 401, 403, 404, 409, 422):
            raise InputError(f"{name}: the Hub refused it ({why}); {_LOGIN}, and check the name") from None
        raise RunError(f"{name}: the Hub answered {why}; no file was changed, try again") from None
    except Exception as error:  # of the network, in types of whichever library carries it
        why = printable(str(error).strip().split("\n")[0][:200] or type(error).__name__)
        raise RunError(f"{name}: {api.endpoint} cannot be reached ({why}); no file was changed, try again") from None
    return f"{api.endpoint}/{name}" + ("" if revision == "main" else f"/tree/{revision}")


if __name__ == "__main__":
    flags.main(run)
