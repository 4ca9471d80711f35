from .annotation import GeneIntervals as GeneIntervals, near_starts as near_starts
from .genome import Genome as Genome
from .groups import Member as Member, assign_groups as assign_groups
from .make import NegativeSet as NegativeSet, make_negatives as make_negatives
from .occurrences import find_occurrences as find_occurrences
from .options import NegativeOptions as NegativeOptions
from .recipes import RECIPES as RECIPES, parse_mix as parse_mix
from .regions import GenomeContext as GenomeContext
