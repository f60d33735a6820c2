"""The program `bert`, also ``python -m bert``; the only file of the library that knows of the folders beside it.

The commands are in launch/ and use tasks/. A checkout has these folders beside bert/; the wheel has them in
bert/_program/, so that its only top-level package is bert.
"""

import pathlib
import sys


def main() -> None:
    within = pathlib.Path(__file__).resolve().parent / "_program"
    # First in the path, for the current folder may have a tasks/ of its own. Spawned processes inherit the path.
    sys.path.insert(0, str(within if within.is_dir() else within.parents[1]))
    from launch import program

    program.main()


if __name__ == "__main__":
    main()
