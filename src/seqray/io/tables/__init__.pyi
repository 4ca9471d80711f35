from .alignment_explanations import (
    COLUMN_COLUMNS as COLUMN_COLUMNS,
    PAIR_COLUMNS as PAIR_COLUMNS,
    ROW_COLUMNS as ROW_COLUMNS,
    Writer as Writer,
    column_lines as column_lines,
    open_table as open_table,
    pair_lines as pair_lines,
    row_lines as row_lines,
)
from .audit import write_audit as write_audit
from .delimited import read_rows as read_rows
from .evaluation import (
    check_multiqc_path as check_multiqc_path,
    evaluation_mapping as evaluation_mapping,
    multiqc_mapping as multiqc_mapping,
    write_figures as write_figures,
    write_json as write_json,
)
from .examples import (
    SPLITS as SPLITS,
    comment_lines as comment_lines,
    describe_alphabet as describe_alphabet,
    flag_text as flag_text,
    format_number as format_number,
    open_skipped as open_skipped,
    prediction_columns as prediction_columns,
    provenance_lines as provenance_lines,
    read_labelled_fastas as read_labelled_fastas,
    read_labelled_table as read_labelled_table,
    set_text as set_text,
    table_format as table_format,
    write_predictions as write_predictions,
)
from .explanations import (
    EXPLANATION_COLUMNS as EXPLANATION_COLUMNS,
    ScoreTrack as ScoreTrack,
    ranks as ranks,
    write_checks as write_checks,
    write_explanations as write_explanations,
    write_heads as write_heads,
)
from .labels import read_column as read_column, write_labelled_table as write_labelled_table
from .motifs import write_motifs as write_motifs
from .predictions import (
    Table as Table,
    column_of as column_of,
    numbers as numbers,
    read_prediction_table as read_prediction_table,
    read_truth as read_truth,
    rows_by_id as rows_by_id,
)
from .summaries import summarize as summarize, write_summary as write_summary
