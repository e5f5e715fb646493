"""`python -m ordisco`."""

import sys

from ordisco.cli import main

sys.exit(main())
