from .arguments import CONFIG as CONFIG, FitOptions as FitOptions
from .run import report_interruption as report_interruption
from .settings import configure as configure, override as override
