"""Formats that hold a model as a program, weights included, and their files.

Their writers are stablehlo.py and onnx.py.
"""

import pathlib
from collections.abc import Callable

from bert.architectures.bert import BertConfig
from bert.types import Params

PROGRAMS = {"stablehlo": "model.stablehlo", "onnx": "model.onnx"}  # format -> its file


def writer(format: str) -> Callable[[pathlib.Path, BertConfig, Params], None]:
    """What writes a file of a format of `PROGRAMS`."""
    if format == "onnx":
        from bert.interop import onnx  # these two build a model, which is slow to import and rarely needed

        return onnx.write
    from bert.interop import stablehlo

    return stablehlo.write
