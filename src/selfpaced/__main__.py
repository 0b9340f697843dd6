"""``python -m selfpaced``: the command line."""

import sys

from selfpaced.cli import main

if __name__ == "__main__":
    sys.exit(main())
