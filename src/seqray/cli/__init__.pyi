from .dispatch import main as main
from .train import override as override
from .verbs import VERBS as VERBS, parser_of as parser_of
