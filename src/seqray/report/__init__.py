"""The page of ``seqray explain --html``: one file of HTML that needs nothing from anywhere."""
