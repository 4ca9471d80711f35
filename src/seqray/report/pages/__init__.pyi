from .alignments import AlignmentReport as AlignmentReport, render_alignments as render_alignments
from .audit import render_audit as render_audit
from .evaluation import render_evaluation as render_evaluation
from .explained import ModelText as ModelText
from .scan import (
    Expected as Expected,
    ScannedContig as ScannedContig,
    ScanReport as ScanReport,
    render_scan as render_scan,
    shown_calls as shown_calls,
)
from .sequences import SequenceReport as SequenceReport, render_sequences as render_sequences
from .summary import render_summary as render_summary
