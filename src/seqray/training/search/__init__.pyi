from .alternatives import TriedResult as TriedResult, train_best as train_best
from .budget import Budget as Budget
from .successive_halving import SearchResult as SearchResult, search_settings as search_settings
from .trials import TRIAL_COLUMNS as TRIAL_COLUMNS, Trial as Trial, trial_row as trial_row
