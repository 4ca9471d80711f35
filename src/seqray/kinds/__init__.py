"""Kinds of models: what each reads, and how its input is opened, classified and explained."""
