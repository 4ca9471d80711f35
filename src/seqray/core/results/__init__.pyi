from .alignment import (
    AlignmentExplanation as AlignmentExplanation,
    AlignmentScores as AlignmentScores,
    ColumnPair as ColumnPair,
)
from .audit import (
    ALARMING as ALARMING,
    SEVERITIES as SEVERITIES,
    Audit as Audit,
    AuditFigure as AuditFigure,
    Finding as Finding,
    Histogram as Histogram,
)
from .evaluation import Answers as Answers, Evaluation as Evaluation, Figure as Figure
from .explanation import (
    Check as Check,
    Curve as Curve,
    Explanation as Explanation,
    Faithfulness as Faithfulness,
    HeadFigures as HeadFigures,
    InputShares as InputShares,
    Motif as Motif,
    Place as Place,
)
from .prediction import (
    Box as Box,
    Call as Call,
    CallContext as CallContext,
    Prediction as Prediction,
    SkippedRecord as SkippedRecord,
)
