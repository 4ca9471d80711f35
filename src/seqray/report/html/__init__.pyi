from .shell import document as document
from .text import (
    MISSING as MISSING,
    compact as compact,
    count as count,
    decimals_for as decimals_for,
    escape as escape,
    fixed as fixed,
    name as name,
    number as number,
    offset as offset,
    table as table,
)
