from .alignments import (
    add_label_arguments as add_label_arguments,
    add_row_arguments as add_row_arguments,
    open_alignments as open_alignments,
    queries as queries,
    read_labelled as read_labelled,
    reads_alignments as reads_alignments,
    refuse_row_options as refuse_row_options,
    wanted_rows as wanted_rows,
)
from .labelled import (
    add_data_arguments as add_data_arguments,
    data_files as data_files,
    marked as marked,
    read_data as read_data,
    read_parts as read_parts,
)
from .messages import (
    EVERYWHERE as EVERYWHERE,
    Resources as Resources,
    add_telling_arguments as add_telling_arguments,
    check_telling as check_telling,
    json_lines as json_lines,
    tell_versions as tell_versions,
)
from .options import (
    Progress as Progress,
    SkipLog as SkipLog,
    add_backbone_argument as add_backbone_argument,
    add_common_arguments as add_common_arguments,
    add_input_arguments as add_input_arguments,
    add_scan_outputs as add_scan_outputs,
    auto_or_positive_int as auto_or_positive_int,
    check_end as check_end,
    check_files as check_files,
    describe_input as describe_input,
    open_model as open_model,
    open_records as open_records,
    positive_int as positive_int,
    probability as probability,
    provenance as provenance,
    whole_number as whole_number,
)
from .origin import Origin as Origin
