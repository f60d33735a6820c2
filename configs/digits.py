"""Classes of pictures, by a Transformer that reads their patches; as they are here, of scikit-learn's digits.

    --config=configs/digits.py                                             1,797 digits of 8 x 8 pixels
    --config=configs/digits.py --config.data=my.npz --config.model.patch_size=4

Values only. This config includes the settings in configs/recipe.py (training). Without config.init_from, training
starts from random weights.
"""

from ml_collections import ConfigDict, config_dict

from bert import config_fields
from bert.architectures.patches import PicturesConfig
from bert.architectures.transformer import SIZED
from configs import recipe


def get_config() -> ConfigDict:
    config = ConfigDict()
    config.task = "pictures"  # the folder in tasks/

    config.data = "digits"  # those of scikit-learn, or an .npz file
    config.validation = ""  # another .npz file; empty: split off from the data
    config.validation_share = 0.2  # of the pictures, by seed and class, if no validation is given; 0: none
    config.folds = 5  # parts of the data, of which one is held out where fold says which
    config.fold = config_dict.placeholder(int)  # 0 to folds - 1, for cross-validation; not set: validation_share
    config.images = "images"  # the array with the pictures, [N, rows, columns] or [N, rows, columns, channels]
    config.classes = "labels"  # the array with their classes, [N]

    config.max_length = 1024  # patches of a picture at most, and [CLS]
    config.classifier_dropout = config_dict.placeholder(float)  # before the scores; not set: as hidden_dropout
    config.metrics = ""  # comma-separated names; empty: the usual ones
    config.metric = ""  # chooses the best evaluation; empty: the first of the metrics
    config.baseline = False  # also fit logistic regression of the pixels, to see what the patches add
    recipe.add_to(config)

    config.model.model_type = "patches"  # the architecture
    config.model.size = "tiny"  # as of BERT; each of the next four overrides its value, if set
    fields = ("patch_size", "positions", "initializer_range", *SIZED)
    config_fields.add(config, PicturesConfig, *fields, section="model", unset=SIZED)

    # Sizes and rates for a few thousand small pictures, from random weights.
    config.model.update(hidden_size=64, num_heads=4, intermediate_size=128, initializer_range=0.1)
    config.epochs = 25.0
    config.batch_size = 64
    config.packed = False  # all pictures are as long as a row
    config.optimizer.learning_rate = 3e-3
    return config
