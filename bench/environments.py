"""Environments of the peers, each in a folder of its own, made on first use from a pinned list beside this file.

python -m bench.environments        makes all of them, and installs PyTorch into this one, for the slow tests
"""

import pathlib
import shutil
import subprocess
import sys

from bert.errors import RunError
from launch import flags

FOLDER = pathlib.Path(".bench")


def python_of(name: str, folder: pathlib.Path = FOLDER) -> str:
    """The interpreter of the environment ``folder``/``name``; made anew where its list ``name``.txt has changed.

    Raises:
      RunError: its packages cannot be installed, with the installer's last words; or its folder is something else.
    """
    packages = pathlib.Path(__file__).with_name(f"{name}.txt")
    made, python = folder / name / "ready", folder / name / "bin" / "python"
    if not made.exists() or made.read_text() != packages.read_text():
        print(f"setting up {folder / name} (minutes, once)", file=sys.stderr, flush=True)
        if (folder / name).exists() and not (folder / name / "pyvenv.cfg").exists():
            raise RunError(f"{folder / name}: is no environment of Python; move it away")
        shutil.rmtree(folder / name, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", folder / name], check=True)
        install(python, packages)
        made.write_text(packages.read_text())  # written last, so a set-up that was interrupted is done again
    return str(python)


def install(python: pathlib.Path, packages: pathlib.Path) -> None:
    """Installs a complete list: by uv where it is there, for it can choose PyTorch without the parts for GPUs."""
    uv = pathlib.Path(sys.executable).with_name("uv")
    commands: list[list[str | pathlib.Path]] = [[python, "-m", "pip", "install"]]
    if uv.exists():
        commands.insert(0, [uv, "pip", "install", "--python", python, "--compile-bytecode", "--torch-backend=cpu"])
    for command in commands:
        told = [*command, "--quiet", "--no-deps", "--requirement", packages]
        done = subprocess.run(told, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode == 0:
            return
    said = done.stderr.strip().splitlines() or ["it said nothing"]
    raise RunError(f"{packages.name} cannot be installed into {python.parent.parent}: {said[-1].strip()}")


def run(argv: list[str]) -> None:
    """Makes all."""
    flags.parse(argv, doc=__doc__ or "", config_file="", options={})
    install(pathlib.Path(sys.executable), pathlib.Path(__file__).with_name("torch.txt"))
    for packages in sorted(pathlib.Path(__file__).parent.glob("*.txt")):
        python_of(packages.stem)


if __name__ == "__main__":
    flags.main(run)
