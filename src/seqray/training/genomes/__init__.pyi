from .fit import (
    GenomeInput as GenomeInput,
    left_out_figures as left_out_figures,
    train_locator as train_locator,
)
from .sheet import GenomeRow as GenomeRow, read_sheet as read_sheet
