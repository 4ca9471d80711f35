from .layout import (
    document as document,
    resource as resource,
    table as table,
    templates as templates,
    wide_table as wide_table,
)
from .text import (
    MINUS as MINUS,
    MISSING as MISSING,
    clean as clean,
    compact as compact,
    decimals_for as decimals_for,
    escape as escape,
    fixed as fixed,
    interval as interval,
    name as name,
    number as number,
    offset as offset,
    offset_ticks as offset_ticks,
)
