"""Settings from the environment; by default only this machine has access.

DATABASE_URL             sqlite:///file, mysql://user:password@host:port/name, postgres://...; default: var/db.sqlite3
SECRET_KEY               default: made once and kept in var/
RESOURCEPOOL_SECRET_KEYS Fernet keys for stored passwords, comma-separated, newest first; default: like SECRET_KEY
DEBUG                    1 for error pages with details; default: 0
ALLOWED_HOSTS            comma-separated; default: this machine only
CSRF_TRUSTED_ORIGINS     comma-separated, e.g. https://pool.example.com
HTTPS                    1 if served over https only: secure cookies, redirects from http, HSTS for a day
FORWARDED_PROTO          1 if a proxy in front ends TLS and always sets X-Forwarded-Proto itself
CELERY_BROKER_URL        used if Celery is installed
RESOURCEPOOL_HINTS       service that wakes waiting processes, e.g. redis://localhost:6379/0; default: none (polling)
LANGUAGE_CODE            zh-hans: Chinese in commands, and for browsers that accept neither language; default: en
VAR_DIR                  folder of the files above, readable by its owner only; default: var/
STATIC_ROOT              target of collectstatic, for a web server of another user; default: static in VAR_DIR
"""

import os
from importlib.util import find_spec
from pathlib import Path

import django
from cryptography.fernet import Fernet
from django.core.management.utils import get_random_secret_key

from project.databases import database
from project.environment import env_flag, env_list, make_private, stored_secret

BASE_DIR = Path(__file__).resolve().parent.parent
VAR_DIR = Path(os.environ.get("VAR_DIR") or make_private(BASE_DIR / "var")).absolute()

SECRET_KEY = os.environ.get("SECRET_KEY") or stored_secret(VAR_DIR / "secret_key", get_random_secret_key)
DEBUG = env_flag("DEBUG")
ALLOWED_HOSTS = env_list("ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]")
CSRF_TRUSTED_ORIGINS = env_list("CSRF_TRUSTED_ORIGINS")
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = env_flag("HTTPS")
SECURE_HSTS_SECONDS = 86_400 if SECURE_SSL_REDIRECT else 0
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if env_flag("FORWARDED_PROTO") else None
# Only the owner of the domain can decide whether its subdomains use https, and for how long.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]

DATABASE_URL = os.environ.get("DATABASE_URL") or f"sqlite:///{VAR_DIR}/db.sqlite3"
DATABASES = {"default": database(DATABASE_URL)}

RESOURCEPOOL = {
    "HINTS": os.environ.get("RESOURCEPOOL_HINTS") or None,
    "SECRET_KEYS": env_list("RESOURCEPOOL_SECRET_KEYS")
    or [stored_secret(VAR_DIR / "resourcepool_key", lambda: Fernet.generate_key().decode())],
}

OPTIONAL_APPS = [
    name for name in ("django_celery_beat", "rest_framework", "drf_spectacular") if find_spec(name)
]
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "resourcepool",
    *(["resourcepool.contrib.celery_timers"] if find_spec("celery") else []),
    *OPTIONAL_APPS,
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
if django.VERSION >= (6, 0):
    # All pages must work under a strict policy, so the project uses one where Django supports it.
    MIDDLEWARE.append("django.middleware.csp.ContentSecurityPolicyMiddleware")
    SECURE_CSP = {"default-src": ["'self'"], "frame-ancestors": ["'none'"], "form-action": ["'self'"]}

ROOT_URLCONF = "project.urls"
WSGI_APPLICATION = "project.wsgi.application"
ASGI_APPLICATION = "project.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

LANGUAGE_CODE = os.environ.get("LANGUAGE_CODE") or "en"
LANGUAGES = [("en", "English"), ("zh-hans", "简体中文")]
TIME_ZONE = "UTC"
USE_TZ = True
STATIC_URL = "static/"
STATIC_ROOT = os.environ.get("STATIC_ROOT") or VAR_DIR / "static"
LOGIN_URL = "admin:login"

CELERY_BROKER_URL = os.environ.get("CELERY_BROKER_URL")
CELERY_TIMEZONE = TIME_ZONE
if "django_celery_beat" in OPTIONAL_APPS:
    CELERY_BEAT_SCHEDULER = "django_celery_beat.schedulers:DatabaseScheduler"

SPECTACULAR_SETTINGS = {
    "TITLE": "resourcepool",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
}  # manage.py spectacular

DEFAULT_EXCEPTION_REPORTER_FILTER = "project.error_reports.AddressHidingFilter"

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "{asctime} {levelname} {name} [{process}] {message}", "style": "{"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": "WARNING"},
    "loggers": {"resourcepool": {"level": "INFO"}},
}
