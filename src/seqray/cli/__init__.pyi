from .dispatch import VERBS as VERBS, Parser as Parser, main as main
from .train import override as override
