"""Genomes with mapped sites give a locator."""
