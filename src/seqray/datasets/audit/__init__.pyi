from .relatives import chance_length as chance_length, word_length as word_length
from .run import audit as audit
