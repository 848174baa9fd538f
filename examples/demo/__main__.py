"""`python -m examples.demo`, from the top of the repository; `--help` tells the rest."""

import sys

try:
    from .run import main
except ModuleNotFoundError as missing:
    sys.exit(f"The demo needs {missing.name}: `make demo` installs it, and so does pip install -e '.[demo]'")

sys.exit(main())
