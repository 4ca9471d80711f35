"""Genes on a genome, read or predicted."""
