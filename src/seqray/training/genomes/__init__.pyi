from .fit import GenomeInput as GenomeInput, train_locator as train_locator
from .sheet import GenomeRow as GenomeRow, read_sheet as read_sheet
