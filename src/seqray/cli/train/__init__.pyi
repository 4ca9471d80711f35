from .arguments import CONFIG as CONFIG, FitOptions as FitOptions
from .run import INTERRUPTED as INTERRUPTED, report_interruption as report_interruption
from .settings import configure as configure, override as override
