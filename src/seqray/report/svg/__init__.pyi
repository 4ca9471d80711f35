from .call_map import (
    CALL_REACH as CALL_REACH,
    STRIP_END as STRIP_END,
    STRIP_START as STRIP_START,
    MarkedBox as MarkedBox,
    NearbyGene as NearbyGene,
    draw_surroundings as draw_surroundings,
    letter_strip as letter_strip,
)
from .charts import (
    class_histograms as class_histograms,
    curve_plot as curve_plot,
    position_histogram as position_histogram,
    score_histogram as score_histogram,
)
from .frame import (
    LINES as LINES,
    Frame as Frame,
    legend as legend,
    number_ticks as number_ticks,
    round_ticks as round_ticks,
)
from .genome import (
    DrawnContig as DrawnContig,
    DrawnGene as DrawnGene,
    density as density,
    genome_lines as genome_lines,
)
from .levels import reach as reach, scaled as scaled, write_levels as write_levels
from .logo import (
    MAX_LETTER_HEIGHT as MAX_LETTER_HEIGHT,
    effect_letters as effect_letters,
    glyph_definitions as glyph_definitions,
    letter_effects as letter_effects,
    logo_style as logo_style,
    motif_logo as motif_logo,
)
from .pictures import (
    attention_map as attention_map,
    heat_map as heat_map,
    picture as picture,
    shade_steps as shade_steps,
)
from .rankings import (
    Ranking as Ranking,
    precision_recall_plot as precision_recall_plot,
    reliability_plot as reliability_plot,
    roc_plot as roc_plot,
    similarity_plot as similarity_plot,
)
from .rows import (
    BAR_DEFINITIONS as BAR_DEFINITIONS,
    GUTTER as GUTTER,
    SLOT as SLOT,
    Line as Line,
    axis_definitions as axis_definitions,
    axis_row as axis_row,
    bar_extent as bar_extent,
    center as center,
    label as label,
    letters_at as letters_at,
    line_width as line_width,
    lines_of as lines_of,
    score_bars as score_bars,
    sequence_row as sequence_row,
    site_within as site_within,
    tick_label as tick_label,
    tick_step as tick_step,
)
