"""``python -m selfpaced_experiments``: the command ``selfpaced reproduce``."""

import sys

from selfpaced_experiments.command import main

if __name__ == "__main__":
    sys.exit(main())
