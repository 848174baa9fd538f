"""Settings of the example project; the mypy plugin of django-stubs reads them."""

SECRET_KEY = "not a secret"
INSTALLED_APPS = ["django.contrib.contenttypes", "django.contrib.auth", "resourcepool", "phones"]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
USE_TZ = True
