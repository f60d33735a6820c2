"""Types of the trees of arrays that pass from room to room; an array itself is `jax.Array` or `numpy.ndarray`."""

from collections.abc import Mapping
from typing import Any

import numpy as np

Params = dict[str, Any]  # parameters: a nested dict whose leaves are float32 arrays
Batch = Mapping[str, Any]  # arrays by key, on the host or on devices; bert/data/batches.py lists the keys
HostBatch = dict[str, np.ndarray]  # a batch that is being built
