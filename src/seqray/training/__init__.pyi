from .fit import train as train
from .genomes import (
    GenomeInput as GenomeInput,
    GenomeRow as GenomeRow,
    read_sheet as read_sheet,
    train_locator as train_locator,
)
from .member import TrainResult as TrainResult, check_model_path as check_model_path
from .partitions import data_sha256 as data_sha256, partition as partition, related_groups as related_groups
from .pretraining import pretrain as pretrain
from .recalibration import recalibrate as recalibrate, refuse_training_data as refuse_training_data
from .workdir import is_main_process as is_main_process
