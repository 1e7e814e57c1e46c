"""``python -m mnpca`` is the command ``mnpca``."""

import sys

from mnpca.cli import main

if __name__ == "__main__":
    sys.exit(main())
