"""Attacks on the command: bad values for every option, kills, forged files, streams, limits, circumstances.

`arguments` reads the options from the parsers of all verbs, `cases` makes a case of each with each kind of
bad value, `processes` runs a verb in a process of its own, `victims` runs each again and again, and `damage`
is done to files. `make attack` runs more of each attack than `make test`.
"""
