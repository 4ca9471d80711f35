from .genbank import parse_genbank as parse_genbank
from .identifiers import Duplicates as Duplicates, UniqueIds as UniqueIds, describe_record as describe_record
from .read import (
    is_genbank as is_genbank,
    read_fasta as read_fasta,
    read_genbank as read_genbank,
    read_sequences as read_sequences,
)
from .records import (
    OnLetters as OnLetters,
    OnSkip as OnSkip,
    find_soft_masks as find_soft_masks,
    note_soft_masks as note_soft_masks,
)
from .sniff import (
    BYTE_ORDER_MARK as BYTE_ORDER_MARK,
    GENBANK as GENBANK,
    GFF as GFF,
    detect_format as detect_format,
)
