from .files import (
    cannot_write as cannot_write,
    encode_text as encode_text,
    flush_standard_output as flush_standard_output,
    open_input as open_input,
    open_output as open_output,
    sha256 as sha256,
    write_file as write_file,
)
from .pipes import (
    display_name as display_name,
    keep_pipes as keep_pipes,
    short_name as short_name,
    single_reading_of_pipes as single_reading_of_pipes,
)
from .staging import Staging as Staging
