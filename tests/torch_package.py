"""PyTorch, which is no dependency: some slow tests compare with it."""

from typing import Any

import pytest


def import_torch() -> Any:
    """The package; skips the test where it is not installed."""
    way_out = "needs torch, which is no dependency: .venv/bin/uv pip install torch --torch-backend=cpu"
    return pytest.importorskip("torch", reason=way_out)
