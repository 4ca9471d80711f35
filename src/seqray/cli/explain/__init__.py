"""`seqray explain`: `arguments` -> `run` -> `files`, the names of the outputs.

- `explainer`: explains records, checks the rankings and writes the files; `sequences`, `locators`,
  `alignments`: that of each kind of model; `letters`: what the first two share; `table`: the table of them
- `genome`: what a locator reads beside the letters
"""
