from .api import (
    SequenceClassifier as SequenceClassifier,
    explain as explain,
    origin as origin,
    predict as predict,
    scan as scan,
)
from .core import (
    ConfigError as ConfigError,
    InputError as InputError,
    ModelFileError as ModelFileError,
    SeqrayError as SeqrayError,
    SequenceRecord as SequenceRecord,
    __version__ as __version__,
)
from .core.results import (
    Call as Call,
    Evaluation as Evaluation,
    Explanation as Explanation,
    Prediction as Prediction,
)
from .evaluation import evaluate_scores as evaluate_scores
from .explanations import ExplainOptions as ExplainOptions, explain_records as explain_records
from .inference import predict_records as predict_records
from .io.sequences import read_fasta as read_fasta, read_genbank as read_genbank
from .modelfile import load_model as load_model
from .scanning import ScanOptions as ScanOptions, scan_records as scan_records
