from .aligned_text import AlignedText as AlignedText, to_alignment as to_alignment
from .labeled import (
    read_labeled_alignments as read_labeled_alignments,
    read_labeled_stockholm as read_labeled_stockholm,
)
from .read import read_alignments as read_alignments
