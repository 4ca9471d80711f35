from .file import load_model_file as load_model_file, save_model as save_model
from .header import read_card as read_card
from .initial_weights import (
    InitialWeights as InitialWeights,
    apply_initial_weights as apply_initial_weights,
    check_initial_weights as check_initial_weights,
    is_pretrained as is_pretrained,
    load_initial_weights as load_initial_weights,
    save_pretrained as save_pretrained,
)
from .networks import (
    Network as Network,
    SequenceNetwork as SequenceNetwork,
    build_network as build_network,
)
from .output_path import SUFFIX as SUFFIX, check_model_path as check_model_path
from .self_test import (
    SELF_TEST_TOLERANCE as SELF_TEST_TOLERANCE,
    check_self_test as check_self_test,
    make_self_test as make_self_test,
)
from .stored import StoredModel as StoredModel, open_stored_model as open_stored_model
from .tokenization import build_tokenizer as build_tokenizer
from .trained import TrainedModel as TrainedModel
from .zoo import (
    available_models as available_models,
    load_model as load_model,
    locate_model as locate_model,
)
