"""The pages: what each shows is computed here; its words are in ``templates/``."""
