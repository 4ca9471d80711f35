from .alphabet import (
    ALPHABETS as ALPHABETS,
    ANY_LETTERS as ANY_LETTERS,
    DNA as DNA,
    PROTEIN as PROTEIN,
    RNA as RNA,
    Alphabet as Alphabet,
    canonical_strand as canonical_strand,
    infer_alphabet as infer_alphabet,
    reverse_complement as reverse_complement,
    reverse_complement_codes as reverse_complement_codes,
)
from .arrays import (
    Bools as Bools,
    Codes as Codes,
    Floats as Floats,
    Ints as Ints,
    cut_stretch as cut_stretch,
    log_probabilities as log_probabilities,
    logistic as logistic,
    mark_intervals as mark_intervals,
    number_by_appearance as number_by_appearance,
    pick_evenly as pick_evenly,
)
from .call_rules import (
    MIN_CALL_SCORE as MIN_CALL_SCORE,
    MIN_DISTANCE_OF_LOCATORS as MIN_DISTANCE_OF_LOCATORS,
    MIN_DISTANCE_OF_WINDOWS as MIN_DISTANCE_OF_WINDOWS,
)
from .card import (
    Card as Card,
    card_from_mapping as card_from_mapping,
    card_to_json as card_to_json,
    card_to_mapping as card_to_mapping,
    describe_card as describe_card,
    headline_metric as headline_metric,
    reading_card as reading_card,
)
from .class_names import class_name_fault as class_name_fault, fits_label_sets as fits_label_sets
from .column_codes import (
    GAPS as GAPS,
    MISSING as MISSING,
    decode_columns as decode_columns,
    encode_columns as encode_columns,
    gap_code as gap_code,
    missing_code as missing_code,
)
from .composition import (
    COMPOSITION_ENDS as COMPOSITION_ENDS,
    COMPOSITION_GAPS as COMPOSITION_GAPS,
    END_FACTORS as END_FACTORS,
    PAIR_FACTOR as PAIR_FACTOR,
    WHOLE_FACTOR as WHOLE_FACTOR,
    composition_size as composition_size,
)
from .config_files import (
    change_settings as change_settings,
    load_named_config as load_named_config,
    load_run_config as load_run_config,
    read_small_text as read_small_text,
)
from .errors import (
    ConfigError as ConfigError,
    InputError as InputError,
    ModelFileError as ModelFileError,
    NoRecordsError as NoRecordsError,
    OtherLettersError as OtherLettersError,
    SeqrayError as SeqrayError,
    missing_package as missing_package,
    require as require,
    require_number as require_number,
    require_type as require_type,
)
from .interrupt import (
    Terminated as Terminated,
    raise_if_terminated as raise_if_terminated,
    reset_termination as reset_termination,
    signals_held as signals_held,
    terminable as terminable,
)
from .intervals import (
    Intervals as Intervals,
    MissingContigs as MissingContigs,
    Region as Region,
    RegionSet as RegionSet,
    parse_region as parse_region,
)
from .kmers import (
    CodeStack as CodeStack,
    kmer_counts as kmer_counts,
    kmer_indices as kmer_indices,
    kmer_starts as kmer_starts,
    stack_codes as stack_codes,
    stack_sequences as stack_sequences,
)
from .model_config import ModelConfig as ModelConfig
from .model_parts import (
    BackboneConfig as BackboneConfig,
    LocatorConfig as LocatorConfig,
    StemConfig as StemConfig,
)
from .numbers import (
    align_columns as align_columns,
    counted as counted,
    format_interval as format_interval,
    format_number as format_number,
    parse_float as parse_float,
    round_number as round_number,
)
from .peaks import local_maxima as local_maxima, suppress_neighbors as suppress_neighbors
from .progress import OnProgress as OnProgress, track as track
from .records import (
    MISSING_TEXTS as MISSING_TEXTS,
    Alignment as Alignment,
    Example as Example,
    LabeledSequence as LabeledSequence,
    SequenceRecord as SequenceRecord,
    files_of as files_of,
    require_record as require_record,
)
from .reservoir import Reservoir as Reservoir
from .run_config import (
    AugmentConfig as AugmentConfig,
    CalibrationConfig as CalibrationConfig,
    CalibrationMethod as CalibrationMethod,
    DataConfig as DataConfig,
    GenomesConfig as GenomesConfig,
    OptimizerConfig as OptimizerConfig,
    RunConfig as RunConfig,
    StoppingConfig as StoppingConfig,
)
from .serialization import (
    check_plain as check_plain,
    from_mapping as from_mapping,
    parse_yaml as parse_yaml,
    to_mapping as to_mapping,
)
from .shuffle import dinucleotide_shuffle as dinucleotide_shuffle
from .truncation import (
    Truncation as Truncation,
    describe_cropping as describe_cropping,
    describe_truncation as describe_truncation,
    kept_parts as kept_parts,
    truncate as truncate,
)
from .usage import RSS_UNIT as RSS_UNIT, SERVED as SERVED, Usage as Usage
from .version import __version__ as __version__
