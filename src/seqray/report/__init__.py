"""Pages and pictures.

- `pages`: one page for each verb, filled from ``templates/``; `html`: the frame of a page, text and numbers
- `svg`: drawings on pages; `plots`: figures by matplotlib
- `palette`: the colors of all of them
"""
