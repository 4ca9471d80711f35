from .alignments import (
    AlignmentLabelOptions as AlignmentLabelOptions,
    RowOptions as RowOptions,
)
from .argument_types import (
    CallPrecision as CallPrecision,
    ClassName as ClassName,
    Draws as Draws,
    Number as Number,
    PositiveInt as PositiveInt,
    Printable as Printable,
    Probability as Probability,
    Steps as Steps,
    Threads as Threads,
    WholeNumber as WholeNumber,
)
from .arguments import (
    Options as Options,
    Outcome as Outcome,
    Request as Request,
    add_options as add_options,
    fill as fill,
    given as given,
    name_options as name_options,
    option as option,
)
from .context import (
    context_fact as context_fact,
    origin_of as origin_of,
    recognize as recognize,
    recognized as recognized,
)
from .genes import GeneOptions as GeneOptions, find_genes as find_genes
from .inputs import (
    SEQUENCE_FILES as SEQUENCE_FILES,
    SEQUENCES_OR_ALIGNMENTS as SEQUENCES_OR_ALIGNMENTS,
    SKIPPED_HELP as SKIPPED_HELP,
    RecordOptions as RecordOptions,
    check_files as check_files,
    check_suffix as check_suffix,
    describe_input as describe_input,
    open_records as open_records,
)
from .labeled import (
    ALPHABET as ALPHABET,
    INFERRED_ALPHABET as INFERRED_ALPHABET,
    UNKNOWN_LABELS as UNKNOWN_LABELS,
    DataOptions as DataOptions,
    TableOptions as TableOptions,
    UnknownLabels as UnknownLabels,
    describe_labels as describe_labels,
    describe_learned as describe_learned,
    describe_letters as describe_letters,
    drop_unknown_labels as drop_unknown_labels,
    naming_alphabet as naming_alphabet,
    noting_unread as noting_unread,
    read_examples as read_examples,
)
from .messages import (
    Resources as Resources,
    calibration_cautions as calibration_cautions,
    json_lines as json_lines,
    report_versions as report_versions,
)
from .model import (
    AUTO as AUTO,
    BACKBONE as BACKBONE,
    CONTEXT as CONTEXT,
    MODEL_HELP as MODEL_HELP,
    NO_CONTEXT as NO_CONTEXT,
    THREADS as THREADS,
    TRUNCATE as TRUNCATE,
    BatchOptions as BatchOptions,
    DeviceOptions as DeviceOptions,
    DtypeOptions as DtypeOptions,
    EngineOptions as EngineOptions,
    ModelOptions as ModelOptions,
    check_new_model as check_new_model,
    naming_other_models as naming_other_models,
    open_model as open_model,
    provenance as provenance,
    truncation_fact as truncation_fact,
)
from .processors import (
    check_address_space as check_address_space,
    keep_kernels as keep_kernels,
    let_waiting_threads_sleep as let_waiting_threads_sleep,
    use_threads as use_threads,
)
from .progress import Progress as Progress
from .skipped import SkipLog as SkipLog, refuse_skipped as refuse_skipped
from .streams import guard_streams as guard_streams
from .totals import letters_in as letters_in, records_in as records_in
