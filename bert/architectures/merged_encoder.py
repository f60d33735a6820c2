"""BERT's encoder with merged queries and keys."""

from typing import ClassVar

import flax.linen as nn

from bert.architectures.bert_encoder import BertEncoder
from bert.architectures.merged import MergedBertConfig
from bert.model.merged_attention import MergedBlock


class MergedBertEncoder(BertEncoder):
    """As `BertEncoder`."""

    config: MergedBertConfig
    block_class: ClassVar[type[nn.Module]] = MergedBlock
