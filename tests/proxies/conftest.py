"""Reading a file needs no database."""

from tests.committed import *  # noqa: F403 (fixtures)
from tests.proxies.import_helpers import import_text  # noqa: F401 (fixture)
