from .aligned_text import AlignedText as AlignedText, to_alignment as to_alignment
from .labeled import (
    read_labelled_alignments as read_labelled_alignments,
    read_labelled_stockholm as read_labelled_stockholm,
)
from .read import read_alignments as read_alignments
