from .alignment import AxialTransformer as AxialTransformer
from .attention import (
    MultiHeadAttention as MultiHeadAttention,
    attention_weights as attention_weights,
    scaled_dot_product as scaled_dot_product,
)
from .axial import ColumnAttention as ColumnAttention, RowAttention as RowAttention
from .backbone import BackboneClassifier as BackboneClassifier
from .batches import TokenBatch as TokenBatch, collate as collate
from .build import (
    Network as Network,
    build_model as build_model,
    build_network as build_network,
    count_parameters as count_parameters,
)
from .devices import torch_device as torch_device, trainer_device as trainer_device
from .helices import helix_profile as helix_profile, pair_probabilities as pair_probabilities
from .kernels import (
    SAFE_SUMS as SAFE_SUMS,
    fused_attention as fused_attention,
    keep_freed_memory as keep_freed_memory,
)
from .kmers import KmerEmbedding as KmerEmbedding
from .layers import (
    Block as Block,
    ConvolutionalStem as ConvolutionalStem,
    FeedForward as FeedForward,
)
from .locator import (
    LETTERS as LETTERS,
    LocatorStem as LocatorStem,
    LocatorTransformer as LocatorTransformer,
    locator_radius as locator_radius,
)
from .padding import PAD as PAD, pad_arrays as pad_arrays, size_buckets as size_buckets
from .pooling import Pooling as Pooling
from .positions import (
    EndMatrix as EndMatrix,
    PositionGain as PositionGain,
    PositionMatrix as PositionMatrix,
    PositionTerms as PositionTerms,
    rotary_angles as rotary_angles,
    rotate as rotate,
    sinusoidal as sinusoidal,
)
from .prefilter import (
    KERNEL as KERNEL,
    NARROW as NARROW,
    STRIDE as STRIDE,
    WIDE as WIDE,
    Prefilter as Prefilter,
    PrefilterSize as PrefilterSize,
    prefilter_shapes as prefilter_shapes,
)
from .sequence import SequenceTransformer as SequenceTransformer
from .smoothing import Smoothing as Smoothing
from .windowed_attention import WindowedAttention as WindowedAttention
