from .alignments import plot_alignments as plot_alignments
from .records import plot_explanations as plot_explanations
