"""``python -m seqray``: the same as the command ``seqray``."""

import sys

from seqray.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
