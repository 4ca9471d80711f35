"""Drawings as SVG: rows of a record, plots, logos, maps."""
