from .alignments import plot_alignments as plot_alignments
from .sequences import plot_explanations as plot_explanations
