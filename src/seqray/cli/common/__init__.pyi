from .alignments import (
    AlignmentLabelOptions as AlignmentLabelOptions,
    RowOptions as RowOptions,
    open_alignments as open_alignments,
    queries as queries,
    read_labelled as read_labelled,
    refuse_row_options as refuse_row_options,
)
from .argument_types import (
    auto_or_positive_int as auto_or_positive_int,
    number as number,
    positive_int as positive_int,
    probability as probability,
    whole_number as whole_number,
)
from .arguments import (
    Outcome as Outcome,
    Request as Request,
    add_option as add_option,
    choice as choice,
    default_of as default_of,
    fill as fill,
    flag as flag,
    group as group,
    option as option,
    positional as positional,
    repeated as repeated,
)
from .inputs import (
    SEQUENCE_FILES as SEQUENCE_FILES,
    SEQUENCES_OR_ALIGNMENTS as SEQUENCES_OR_ALIGNMENTS,
    SKIPPED_HELP as SKIPPED_HELP,
    Counted as Counted,
    RecordOptions as RecordOptions,
    check_files as check_files,
    check_suffix as check_suffix,
    describe_input as describe_input,
    open_records as open_records,
)
from .labeled import (
    DataOptions as DataOptions,
    TableOptions as TableOptions,
    alphabet_option as alphabet_option,
    read_data as read_data,
    read_parts as read_parts,
    with_named_splits as with_named_splits,
)
from .messages import Resources as Resources, json_lines as json_lines, report_versions as report_versions
from .model import (
    MODEL_HELP as MODEL_HELP,
    BatchOptions as BatchOptions,
    DeviceOptions as DeviceOptions,
    EngineOptions as EngineOptions,
    ModelOptions as ModelOptions,
    PrecisionOptions as PrecisionOptions,
    backbone_option as backbone_option,
    device_option as device_option,
    open_model as open_model,
    provenance as provenance,
    threads_option as threads_option,
)
from .origin import Origin as Origin
from .progress import Progress as Progress
from .skipped import SkipLog as SkipLog
