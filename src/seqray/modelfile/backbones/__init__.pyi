from .directory import BACKBONE_VARIABLE as BACKBONE_VARIABLE
from .encoder import build_backbone as build_backbone
from .resolve import resolve_backbone as resolve_backbone
from .tokenizer import BackboneTokenizer as BackboneTokenizer, load_tokenizer as load_tokenizer
