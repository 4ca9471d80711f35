"""Figures of explanations of records and alignments, as PNG, SVG or PDF.

Figures are made without pyplot, so nothing global is changed and no display is needed. The same input gives
the same bytes with the same version of matplotlib.
"""
