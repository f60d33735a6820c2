"""What users install: locked packages, and the image of the Dockerfile."""

import fnmatch
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig

import pytest

CHECKOUT = pathlib.Path(__file__).resolve().parents[1]
LOCKS = ("requirements.lock", "requirements-cuda12.lock")
INSTRUCTIONS = re.findall(r"^([A-Z]+) (.*)$", (CHECKOUT / "Dockerfile").read_text().replace("\\\n", ""), re.MULTILINE)


def pins(name: str) -> dict[str, str]:
    """Package with version and marker -> its hashes."""
    text = re.sub(r"^ *#.*\n", "", (CHECKOUT / name).read_text(), flags=re.MULTILINE)
    entries = text.replace("\\\n", "").splitlines()
    return {entry.split(" --hash")[0].strip(): " ".join(sorted(entry.split()[1:])) for entry in entries}


def test_locks_agree_and_name_no_address():
    """Each package has a version and hashes. With CUDA there is JAX's plugin more, and NVIDIA's libraries."""
    for name in (*LOCKS, "docs/site/requirements.lock"):
        text = (CHECKOUT / name).read_text()
        assert not re.search(r"://|--\w*(index|find-links)|@ ", text), name
        assert all("==" in package and "--hash=sha256:" in hashes for package, hashes in pins(name).items()), name
    cpu, cuda = map(pins, LOCKS)
    assert cpu.items() <= cuda.items()
    more = {package.split("=")[0] for package in cuda.keys() - cpu.keys()}
    assert {"jax-cuda12-pjrt", "jax-cuda12-plugin"} < more
    assert all(name.startswith(("jax-cuda12-", "nvidia-")) for name in more)


def copied() -> list[str]:
    return [source for kind, words in INSTRUCTIONS if kind == "COPY" for source in words.split()[:-1]]


def test_the_image_copies_what_is_there_and_its_context_holds_nothing_else():
    lines = (CHECKOUT / ".dockerignore").read_text().splitlines()
    kept = [line[1:] for line in lines if line.startswith("!")]
    assert sorted(copied()) == sorted(kept)
    listed = subprocess.run(["git", "ls-files"], cwd=CHECKOUT, capture_output=True, text=True, check=True, timeout=300)
    tracked = listed.stdout.split()
    for source in copied():
        assert source in tracked or any(name.startswith(f"{source}/") for name in tracked), source
    ignored = [line for line in lines if not line.startswith(("!", "#"))]
    assert ignored[0] == "*"  # before what is kept
    assert not [name for name in kept for line in ignored[1:] if fnmatch.fnmatch(name, line)]


def test_the_image_checks_hashes_and_does_not_run_as_root():
    kinds = dict(INSTRUCTIONS)
    installs = [words for kind, words in INSTRUCTIONS if kind == "RUN" and "pip install" in words]
    assert "--require-hashes --requirement requirements-cuda12.lock" in installs[0]
    assert all("--no-deps --no-build-isolation" in words for words in installs[1:])
    assert int(kinds["USER"]) > 0


@pytest.mark.slow
def test_what_the_image_installs_runs(tmp_path):
    """The last RUN, on what is copied, in an environment with the locked packages; then the ENTRYPOINT."""
    source, environment = tmp_path / "bert", tmp_path / "environment"
    source.mkdir()
    for name in copied():
        copy = shutil.copytree if (CHECKOUT / name).is_dir() else shutil.copy
        copy(CHECKOUT / name, source / name)
    subprocess.run([sys.executable, "-m", "venv", environment], check=True, timeout=600)
    (site,) = environment.glob("lib/*/site-packages")
    shutil.rmtree(site / "setuptools", ignore_errors=True)  # older than the lock's
    (site / "locked.pth").write_text(sysconfig.get_path("purelib"))
    (environment / "bin" / "useradd").write_text("#!/bin/sh\n")
    (environment / "bin" / "useradd").chmod(0o755)
    variables = {"PATH": f"{environment / 'bin'}:{os.environ['PATH']}", "HOME": str(tmp_path), "JAX_PLATFORMS": "cpu"}
    run = [words for kind, words in INSTRUCTIONS if kind == "RUN"][-1]
    done = subprocess.run(run, shell=True, cwd=source, env=variables, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    (program,) = shlex.split(dict(INSTRUCTIONS)["ENTRYPOINT"].strip("[]"))
    for words in (["--version"], ["pretrain", "--config=quickstart", "--help"]):
        command = [program, *words]
        done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr
