"""Settings of `bert prepare`: which text, which vocabulary, how it is cut into sentences and documents."""

from ml_collections import ConfigDict

from bert import config_fields
from bert.store.prepare_settings import PrepareSettings


def get_config() -> ConfigDict:
    config = ConfigDict()
    config_fields.add(config, PrepareSettings)
    config.workers = 0  # processes; 0 = one for each core. The result is the same for any number
    config.engine = "local"  # who prepares: local (this machine), or a cluster of ray or dask; the result is the same
    config.engine_address = ""  # of a cluster of Ray or Dask that exists; '' = start one on this machine
    config.overwrite = False  # replace a folder that was prepared with other settings or texts
    return config
