from .curves import (
    precision_recall_points as precision_recall_points,
    reliability as reliability,
    roc_points as roc_points,
    threshold_rows as threshold_rows,
)
from .floor import (
    answers_from_probabilities as answers_from_probabilities,
    floor_answers as floor_answers,
    fold_count as fold_count,
)
from .measure import Records as Records
from .run import (
    check_probabilities as check_probabilities,
    evaluate_answers as evaluate_answers,
    evaluate_scores as evaluate_scores,
    label_indices as label_indices,
)
from .subsets import (
    by_context as by_context,
    by_similarity as by_similarity,
    by_subclass as by_subclass,
)
from .summary_text import judged_label as judged_label, summary as summary
