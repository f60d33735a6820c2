"""Types of parameters and batches, which are trees of arrays; an array is a `jax.Array` or a `numpy.ndarray`."""

from collections.abc import Mapping
from typing import Any

import numpy as np

Params = dict[str, Any]  # parameters: a nested dict whose leaves are float32 arrays
Batch = Mapping[str, Any]  # arrays by key, on the host or on devices; bert/data/batches.py lists the keys
HostBatch = dict[str, np.ndarray]  # a batch that is being built
