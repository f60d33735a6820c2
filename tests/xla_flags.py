"""Flags of XLA with which tests compile in less time; for ``XLA_FLAGS``, before JAX is imported."""

import importlib.metadata

FAST = "--xla_backend_optimization_level=0"
if importlib.metadata.version("jaxlib").startswith("0.10."):  # XLA ends a process for a flag that it does not know
    # The first saves a sixth of the time. With it, eight devices may wait for each other without end, unless the
    # scheduler saves memory rather than time.
    FAST += " --xla_cpu_use_fusion_emitters=false --xla_cpu_enable_concurrency_optimized_scheduler=false"
