"""Metrics of classifiers, each defined once: scores, intervals, tests of differences, baselines."""
