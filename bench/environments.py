"""Virtual environments of the peers, created on first use from the pinned lists beside this file.

python -m bench.environments        creates all of them, and installs PyTorch into .venv for the slow tests
"""

import pathlib
import shutil
import subprocess
import sys

from bert.errors import RunError
from launch import flags

FOLDER = pathlib.Path(".bench")


def python_of(name: str, folder: pathlib.Path = FOLDER) -> str:
    """The interpreter of the environment ``folder``/``name``, which is created again if its list ``name``.txt changed.

    Raises:
      RunError: its packages cannot be installed (with the installer's last line), or the folder is something else.
    """
    packages = pathlib.Path(__file__).with_name(f"{name}.txt")
    ready, python = folder / name / "ready", folder / name / "bin" / "python"
    if not ready.exists() or ready.read_text() != packages.read_text():
        print(f"setting up {folder / name} (minutes, once)", file=sys.stderr, flush=True)
        if (folder / name).exists() and not (folder / name / "pyvenv.cfg").exists():
            raise RunError(f"{folder / name}: is not a virtual environment; move it away")
        shutil.rmtree(folder / name, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", folder / name], check=True)
        install(python, packages)
        ready.write_text(packages.read_text())  # written last: an interrupted set-up starts again
    return str(python)


def install(python: pathlib.Path, packages: pathlib.Path) -> None:
    """Installs a complete list, with uv if possible, which can choose the CPU build of PyTorch."""
    uv = pathlib.Path(sys.executable).with_name("uv")
    commands: list[list[str | pathlib.Path]] = [[python, "-m", "pip", "install"]]
    if uv.exists():
        commands.insert(0, [uv, "pip", "install", "--python", python, "--compile-bytecode", "--torch-backend=cpu"])
    for command in commands:
        arguments = [*command, "--quiet", "--no-deps", "--requirement", packages]
        done = subprocess.run(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode == 0:
            return
    output = done.stderr.strip().splitlines() or ["no output"]
    raise RunError(f"{packages.name} cannot be installed into {python.parent.parent}: {output[-1].strip()}")


def run(argv: list[str]) -> None:
    """Creates all environments."""
    flags.parse(argv, doc=__doc__ or "", config_file="", options={})
    install(pathlib.Path(sys.executable), pathlib.Path(__file__).with_name("torch.txt"))
    for packages in sorted(pathlib.Path(__file__).parent.glob("*.txt")):
        python_of(packages.stem)


if __name__ == "__main__":
    flags.main(run)
