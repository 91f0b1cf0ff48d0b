"""``python -m kgwb`` is ``kgwb``."""

import sys

from kgwb.cli import main

sys.exit(main())
