from .files import (
    display_name as display_name,
    open_input as open_input,
    open_output as open_output,
    sha256 as sha256,
    unpacked_head as unpacked_head,
)
from .staging import Staging as Staging
