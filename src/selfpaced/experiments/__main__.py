"""``python -m selfpaced.experiments``: the command ``selfpaced reproduce``."""

import sys

from selfpaced.experiments.command import main

if __name__ == "__main__":
    sys.exit(main())
