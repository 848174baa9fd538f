"""The documentation site: ``make docs`` builds it into build/docs."""

import sys
from pathlib import Path

import django
from django.conf import settings
from sphinx.application import Sphinx

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

settings.configure(
    SECRET_KEY="only for building these pages",  # noqa: S106
    INSTALLED_APPS=[
        "django.contrib.admin",
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "django.contrib.sessions",
        "django.contrib.messages",
        "resourcepool",
        "rest_framework",
    ],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    USE_TZ=True,
    LANGUAGE_CODE="en",
)
django.setup()

from generated import PAGES, fill  # noqa: E402

import resourcepool  # noqa: E402

project = "django-resourcepool"
author = "resourcepool contributors"
copyright = author  # noqa: A001 (Sphinx's name)
version = release = resourcepool.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["**/README.md"]
html_theme = "furo"
html_title = f"django-resourcepool {version}"
html_copy_source = False

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4

autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"
autodoc_preserve_defaults = False  # impossible for ``Pool.acquire``, whose parameters a decorator sets
add_module_names = False
python_use_unqualified_type_names = True
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
suppress_warnings = ["ref.python"]  # several classes have an attribute of this name
# The site is built without a network: names of other packages, and private ones of this, have no page here.
nitpick_ignore_regex = [
    ("py:.*", r"(?!resourcepool\.(exceptions|locks|queues|taskqueue|elections)\.[A-Z]\w*$).*"),
]


def setup(app: Sphinx) -> None:
    """Fill in what is read from the code when a page is read."""

    def generate(_app: Sphinx, page: str, source: list[str]) -> None:
        source[0] = fill(source[0])

    app.connect("source-read", generate)
    app.connect("env-get-outdated", lambda *_: list(PAGES))  # the code may have changed
