"""Starts the command line; refuses a Python that cannot even parse the rest."""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - the machine's python3 may be any
    sys.exit("local: needs Python 3.11 or newer, this is %d.%d" % sys.version_info[:2])  # noqa: UP031

from local.cli import main

sys.exit(main(sys.argv[1:]))
