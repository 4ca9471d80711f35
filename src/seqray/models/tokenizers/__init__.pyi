from .alignment import AlignmentTokenizer as AlignmentTokenizer
from .sequence import (
    CLS as CLS,
    FIRST_LETTER as FIRST_LETTER,
    MASK as MASK,
    PAD as PAD,
    UNK as UNK,
    CharacterTokenizer as CharacterTokenizer,
    KmerTokenizer as KmerTokenizer,
    OwnTokenizer as OwnTokenizer,
    Tokenizer as Tokenizer,
    context_index as context_index,
    make_tokenizer as make_tokenizer,
)
