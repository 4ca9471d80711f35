from .alignment_explanations import (
    COLUMN_COLUMNS as COLUMN_COLUMNS,
    PAIR_COLUMNS as PAIR_COLUMNS,
    ROW_COLUMNS as ROW_COLUMNS,
    column_lines as column_lines,
    pair_lines as pair_lines,
    row_lines as row_lines,
)
from .audit import write_audit as write_audit
from .delimited import parse_rows as parse_rows, read_rows as read_rows
from .evaluation import (
    check_multiqc_path as check_multiqc_path,
    evaluation_mapping as evaluation_mapping,
    multiqc_mapping as multiqc_mapping,
    write_figures as write_figures,
    write_json as write_json,
)
from .explanations import (
    EXPLANATION_COLUMNS as EXPLANATION_COLUMNS,
    explanation_rows as explanation_rows,
    ranks as ranks,
    write_checks as write_checks,
    write_heads as write_heads,
    write_shares as write_shares,
)
from .labeled import (
    OnUnread as OnUnread,
    check_label as check_label,
    read_column as read_column,
    read_labeled_fastas as read_labeled_fastas,
    read_labeled_table as read_labeled_table,
    report_unread as report_unread,
    write_labeled_table as write_labeled_table,
)
from .motifs import write_motifs as write_motifs
from .prediction_tables import (
    Table as Table,
    numeric_column as numeric_column,
    read_labels as read_labels,
    read_prediction_table as read_prediction_table,
    rows_by_id as rows_by_id,
)
from .predictions import (
    open_skipped as open_skipped,
    prediction_columns as prediction_columns,
    prediction_row as prediction_row,
    probability_column as probability_column,
    table_format as table_format,
    write_predictions as write_predictions,
)
from .summaries import summarize as summarize, write_summary as write_summary
from .writing import (
    comment_lines as comment_lines,
    describe_alphabet as describe_alphabet,
    one_line as one_line,
    open_table as open_table,
    provenance_lines as provenance_lines,
    write_table as write_table,
)
