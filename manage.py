#!/usr/bin/env python3
"""Django's command line for the project in ``project/``."""

import os
import sys

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
    try:
        from django.core.management import execute_from_command_line
    except ImportError as missing:
        raise SystemExit(
            "Django is not installed here. Try: make run, or .venv/bin/python manage.py ..."
        ) from missing
    execute_from_command_line(sys.argv)
