from .files import (
    decompress_head as decompress_head,
    display_name as display_name,
    open_input as open_input,
    open_output as open_output,
    sha256 as sha256,
)
from .staging import Staging as Staging
