"""``python -m leakgauge``."""

import sys

from leakgauge.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
