"""Fuzzing of all that seqray reads: targets, and campaigns of atheris (``make fuzz``).

- `target`: what a target is, and when an input of one is a finding
- `sequences`, `alignments`, `tables`, `tracks`, `models`, `shards`, `settings`: the targets and their seeds
- `mutation`: changes of JSON that keep it JSON, for inputs that carry a checksum
- `campaign`: all targets in turn, each in a process of its own, and the table of figures
- `cases`: what was found and mended

Every seed is made here, so nothing that is read is anybody's data.
"""
