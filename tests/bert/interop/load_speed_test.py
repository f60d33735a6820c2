"""Loading base-size weights costs little more than reading the file (run alone): time and memory, in each format."""

import pathlib
import statistics
import subprocess
import sys
import time

import numpy as np
import pytest

from bert.architectures.bert import BertConfig
from bert.interop import parameters, sources
from bert.interop.export import save_model_directory
from bert.interop.names.bert import GOOGLE, HUGGING_FACE
from tests.bert.interop.formats.bundle_writer import write_checkpoint

pytestmark = pytest.mark.alone
CHECKOUT = pathlib.Path(__file__).resolve().parents[3]
MOST_TIME, MOST_BYTES = 1.5, 2.5  # times those of reading the file
# Peak memory of a fresh process before and after, in bytes.
PEAK = """
import sys
from bert.interop import sources
def peak(): return 1024 * int(next(l for l in open("/proc/self/status") if l.startswith("VmHWM")).split()[1])
before = peak()
kept = sources.read(sys.argv[1]) if len(sys.argv) == 2 else open(sys.argv[2], "rb").read()
print(peak() - before)
"""


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """{format: (directory, its weights file)} of one random BERT of base size with the pretraining heads."""
    config, rng = BertConfig.of_size("base", vocab_size=30522), np.random.default_rng(0)
    params: dict = {}
    for part in ("encoder", "pooler", "mlm", "next_sentence"):
        for weight in HUGGING_FACE.parts[part]:
            shape = (config.num_layers,) * weight.by_layer + weight.shape(HUGGING_FACE.axis_sizes(config))
            parameters.put(params, weight.path, 0.02 * rng.standard_normal(shape, np.float32))
    folder = tmp_path_factory.mktemp("base")
    save_model_directory(folder / "huggingface", config, params, None)
    google = folder / "google"
    google.mkdir()
    (google / "bert_config.json").write_bytes((folder / "huggingface" / "config.json").read_bytes())
    write_checkpoint(google / "bert_model.ckpt", dict(parameters.from_params(params, config, GOOGLE)))
    return {
        "huggingface": (folder / "huggingface", folder / "huggingface" / "model.safetensors"),
        "google": (google, google / "bert_model.ckpt.data-00000-of-00001"),
    }


@pytest.mark.parametrize("format", ["huggingface", "google"])
def test_time(base, format):
    """Eleven interleaved readings and loadings from the page cache; the shortest of each, for others disturb them."""
    directory, file = base[format]
    reading, loading = [], []
    for _ in range(11):
        for seconds, act in ((reading, file.read_bytes), (loading, lambda: sources.read(directory))):
            started = time.perf_counter()
            act()
            seconds.append(time.perf_counter() - started)
    ratio, medians = min(loading) / min(reading), statistics.median(loading) / statistics.median(reading)
    told = f"{ratio:.2f} times (medians: {medians:.2f}) the time of reading {file.stat().st_size:,} bytes"
    print(f"{format}: loading takes {told}")
    assert ratio <= MOST_TIME


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("format", ["huggingface", "google"])
def test_memory(base, format):
    directory, file = base[format]

    def peak(*words) -> int:
        command = [sys.executable, "-c", PEAK, *map(str, words)]
        return int(subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True).stdout)

    assert peak("read", file) >= file.stat().st_size, "what is measured is there"
    ratio = peak(directory) / file.stat().st_size
    print(f"{format}: loading takes {ratio:.2f} times the file's bytes")
    assert ratio <= MOST_BYTES
