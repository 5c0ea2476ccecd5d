"""`python -m patchq` is `patchq`."""

import sys

from patchq.cli import main

sys.exit(main.main())
