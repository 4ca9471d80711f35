from .arguments import CallOutputs as CallOutputs
from .command import divide_words as divide_words
from .facts import result_facts as result_facts, summary as summary
from .outputs import CallFiles as CallFiles
from .shards import PYTORCH as PYTORCH
