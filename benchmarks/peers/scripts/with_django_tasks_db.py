"""django-tasks-db on PostgreSQL."""

import os
from urllib.parse import unquote, urlsplit

import django
from django.conf import settings
from django.core.management import call_command
from django.db import transaction
from noting import note
from queue_peer import Queue

place = urlsplit(os.environ["URL"])
settings.configure(
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": place.path.lstrip("/"),
            "USER": place.username,
            "PASSWORD": unquote(place.password or ""),
            "HOST": place.hostname,
            "PORT": place.port,
        }
    },
    INSTALLED_APPS=["django_tasks", "django_tasks_db"],
    TASKS={"default": {"BACKEND": "django_tasks_db.DatabaseBackend"}},
    USE_TZ=True,
)
django.setup()
from django_tasks import task  # noqa: E402 (needs the settings)


@task()
def noting(key: str) -> None:
    note(key)


def prepare() -> None:
    call_command("migrate", verbosity=0)


def submit_many(keys: list[str]) -> None:
    """There is no call for many."""
    with transaction.atomic():
        for key in keys:
            noting.enqueue(key)


def work(_: int) -> None:
    call_command("db_worker", verbosity=0)


if __name__ == "__main__":
    Queue(
        prepare=prepare, submit=noting.enqueue, submit_many=submit_many, work=work, is_process_each=True
    ).main()
