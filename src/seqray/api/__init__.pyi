from .estimator import SequenceClassifier as SequenceClassifier
from .verbs import explain as explain, origin as origin, predict as predict, scan as scan
