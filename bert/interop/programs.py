"""Formats that hold a model as a program, weights included: which there are, their files, and the limit they share.

Their writers are stablehlo.py and onnx.py.
"""

import pathlib
from collections.abc import Callable

from bert.config import BertConfig
from bert.errors import InputError
from bert.interop.parameters import Params, flatten

PROGRAMS = {"stablehlo": "model.stablehlo", "onnx": "model.onnx"}  # format -> its file
_LARGEST = 2**31 - 2**22  # bytes of weights in a flatbuffer or protobuf message of 2 GiB; 4 MiB are left for the graph


def writer(format: str) -> Callable[[pathlib.Path, BertConfig, Params], None]:
    """What writes a file of a format of `PROGRAMS`."""
    if format == "onnx":
        from bert.interop import onnx  # these two build a model, which is slow to import and rarely needed

        return onnx.write
    from bert.interop import stablehlo

    return stablehlo.write


def check_size(path: pathlib.Path, params: Params, kind: str) -> None:
    """Refuses weights that one file cannot hold.

    Args:
      kind: the file's, for the message: "an ONNX file".

    Raises:
      InputError: saying how large they are.
    """
    size = sum(leaf.nbytes for _, leaf in flatten(params))
    if size > _LARGEST:
        raise InputError(
            f"{path}: the weights take {size / 1e9:.1f} GB and {kind} holds at most 2; "
            "export safetensors, or a smaller model"
        )
