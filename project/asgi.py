"""The project as an ASGI application: ``project.asgi:application``."""

import os

from django.core.asgi import get_asgi_application
from django.db import connections

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")

application = get_asgi_application()
for database in connections.settings.values():
    database["CONN_MAX_AGE"] = 0  # each request has its own thread, so connections cannot be reused
