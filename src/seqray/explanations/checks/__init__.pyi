from .faithfulness import SHARES as SHARES, Evidence as Evidence, curves as curves
from .significance import p_values as p_values, q_values as q_values
from .verdict import conclude as conclude
