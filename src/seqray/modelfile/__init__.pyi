from .file import load_model_file as load_model_file, save_model as save_model
from .header import read_card as read_card
from .networks import Network as Network, SequenceNetwork as SequenceNetwork, build_network as build_network
from .self_test import (
    SELF_TEST_TOLERANCE as SELF_TEST_TOLERANCE,
    check_self_test as check_self_test,
    make_self_test as make_self_test,
)
from .start import (
    StartingWeights as StartingWeights,
    begin_with as begin_with,
    check_start as check_start,
    load_start as load_start,
    save_pretrained as save_pretrained,
)
from .tokenization import tokenizer_for as tokenizer_for
from .trained import TrainedModel as TrainedModel
from .zoo import SUFFIX as SUFFIX, available as available, load_model as load_model, locate as locate
