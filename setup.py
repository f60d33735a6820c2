"""The packages of the wheel: the library, and the commands with what they need of tasks/ in bert/_program/.

Recipes, benchmarks and tests stay in the checkout. All else is in pyproject.toml.
"""

from setuptools import find_packages, setup

COMMANDS = find_packages(include=["launch", "launch.*", "tasks", "tasks.*"])

setup(
    packages=[*find_packages(include=["bert", "bert.*"]), *(f"bert._program.{name}" for name in COMMANDS)],
    package_dir={f"bert._program.{name}": name for name in ("launch", "tasks")},
)
