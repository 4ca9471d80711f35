from .api.data import (
    audit as audit,
    evaluate as evaluate,
    negatives as negatives,
    split as split,
    train as train,
)
from .api.estimator import SequenceClassifier as SequenceClassifier
from .api.verbs import explain as explain, origin as origin, predict as predict, scan as scan
from .core.errors import (
    ConfigError as ConfigError,
    InputError as InputError,
    ModelFileError as ModelFileError,
    SeqrayError as SeqrayError,
)
from .core.explanation import Explanation as Explanation
from .core.records import LabeledSequence as LabeledSequence, SequenceRecord as SequenceRecord
from .core.results import Call as Call, Evaluation as Evaluation, Prediction as Prediction
from .core.version import __version__ as __version__
from .evaluation.run import evaluate_scores as evaluate_scores
from .explanations.checks import faithfulness as faithfulness
from .explanations.options import ExplainOptions as ExplainOptions
from .explanations.rollout import (
    grad_rollout as grad_rollout,
    rollout as rollout,
    value_rollout as value_rollout,
)
from .explanations.sequences import explain_records as explain_records
from .explanations.trace import trace as trace
from .homology.similarity import find_relatives as find_relatives
from .homology.split import split_data as split_data
from .inference.sequences import predict_records as predict_records
from .io.genbank import read_genbank as read_genbank
from .io.records import read_fasta as read_fasta
from .modelfile.file import load_model as load_model, register_network as register_network
from .report.plots import plot as plot
from .scanning.options import ScanOptions as ScanOptions
from .scanning.scan import scan_records as scan_records
