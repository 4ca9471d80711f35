from .axis import axis_definitions as axis_definitions, axis_row as axis_row
from .bars import STYLE as STYLE, histogram_rows as histogram_rows
from .canvas import (
    SHADES as SHADES,
    Colour as Colour,
    colour_of_hex as colour_of_hex,
    mixed as mixed,
    picture as picture,
    shades_to as shades_to,
)
from .color_levels import levels as levels, reach as reach, scaled as scaled
from .curves import (
    COLOURS as COLOURS,
    Frame as Frame,
    curve_plot as curve_plot,
    position_histogram as position_histogram,
    round_ticks as round_ticks,
)
from .glyphs import colour_of as colour_of, glyph_definitions as glyph_definitions
from .heatmap import attention_map as attention_map
from .lines import (
    GUTTER as GUTTER,
    SLOT as SLOT,
    Line as Line,
    centre as centre,
    label as label,
    lines_of as lines_of,
    site_within as site_within,
    width_for as width_for,
)
from .logo import (
    HALF as HALF,
    effect_letters as effect_letters,
    letter_effects as letter_effects,
    logo_rules as logo_rules,
    motif_logo as motif_logo,
)
from .tracks import (
    BAR_DEFINITIONS as BAR_DEFINITIONS,
    bars_path as bars_path,
    score_row as score_row,
    sequence_row as sequence_row,
)
