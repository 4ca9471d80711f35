"""Pages and pictures.

- `html`: the shell of a page; `svg`: drawings; `plots`: pictures by matplotlib
- `explanation`, `evaluation`, `pages`: the pages
"""
