"""Drawings as SVG: rows of a record, plots, logos, maps.

- `rows`: axes, letters and bars of a wrapped record; `levels`: scores as shades; `pictures`: maps of numbers
- `genome`, `call_map`: a scanned genome, and the surroundings of a call; `genes`: genes and scores in them
- `frame`: scales, ticks, lines and bars of a plot; `charts`: curves and histograms; `rankings`: ROC etc.
- `logo`: logos
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
