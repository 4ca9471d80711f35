from .data_facts import (
    DataFacts as DataFacts,
    choose_positive as choose_positive,
    data_cautions as data_cautions,
    measure_data as measure_data,
)
from .data_hashes import data_sha256 as data_sha256
from .fit import train as train
from .genomes import (
    GenomeInput as GenomeInput,
    GenomeRow as GenomeRow,
    left_out_figures as left_out_figures,
    read_sheet as read_sheet,
    train_locator as train_locator,
)
from .hold_out import related_groups as related_groups
from .member import TrainResult as TrainResult
from .partitions import partition as partition
from .prefilter import measure_prefilter as measure_prefilter, teach_prefilter as teach_prefilter
from .pretraining import pretrain as pretrain
from .recalibration import (
    count_calibration_data as count_calibration_data,
    count_training_data as count_training_data,
    is_training_data as is_training_data,
    recalibrate as recalibrate,
    refuse_training_data as refuse_training_data,
)
from .run_options import RunOptions as RunOptions
from .search import (
    TRIAL_COLUMNS as TRIAL_COLUMNS,
    Budget as Budget,
    SearchResult as SearchResult,
    Trial as Trial,
    TriedResult as TriedResult,
    search_settings as search_settings,
    train_best as train_best,
    trial_row as trial_row,
)
from .settings_from_data import (
    alternatives_of as alternatives_of,
    choose_settings as choose_settings,
    describe_settings as describe_settings,
    fit_settings as fit_settings,
)
from .workdir import is_main_process as is_main_process
