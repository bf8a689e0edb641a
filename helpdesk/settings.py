"""Settings, grouped by concern. Each comes from the environment with a type; a default only where one is safe.

Comments say what breaks when a value is wrong. `manage.py check` refuses the combinations that
would make reminders late, lost or repeated (see `helpdesk/checks.py`).
"""

from datetime import timedelta
from pathlib import Path

import environ
import structlog
from django.utils.translation import gettext_lazy as _

BASE_DIR = Path(__file__).resolve().parent.parent
env = environ.Env()


def seconds(name: str, default: float) -> timedelta:
    """A duration from the environment, in seconds."""
    return timedelta(seconds=env.float(name, default=default))


# --- Safety -----------------------------------------------------------------------------------
DEBUG = env.bool("DEBUG", default=False)
SECRET_KEY = env.str(
    "SECRET_KEY"
)  # Sessions and password resets can be forged by whoever knows it.
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["localhost", "127.0.0.1"])
CSRF_TRUSTED_ORIGINS = env.list("CSRF_TRUSTED_ORIGINS", default=[])
# Plain HTTP is only for a developer's own machine; everywhere else cookies travel over TLS alone.
HTTPS = env.bool("HTTPS", default=not DEBUG)
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = HTTPS
SECURE_HSTS_SECONDS = env.int("HSTS_SECONDS", default=31_536_000 if HTTPS else 0)
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = SECURE_HSTS_SECONDS > 0
# Only behind a proxy that sets the header itself: a client could otherwise claim TLS.
if env.bool("TRUST_X_FORWARDED_PROTO", default=False):
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

# --- Applications -----------------------------------------------------------------------------
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django_include_bootstrap",
    "rest_framework",
    "knox",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "helpdesk.apps.HelpdeskConfig",
    "tickets.apps.TicketsConfig",
    "reminders.apps.RemindersConfig",
    "notifications.apps.NotificationsConfig",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "helpdesk.pages.PersonTimeZoneMiddleware",
    "helpdesk.pages.DomainErrorMiddleware",
]
ROOT_URLCONF = "helpdesk.urls"
WSGI_APPLICATION = "helpdesk.wsgi.application"
ASGI_APPLICATION = "helpdesk.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.i18n",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "notifications.context.bell",
                "tickets.context.teams",
                "reminders.context.findings",
            ],
        },
    }
]

# --- Database: the truth ----------------------------------------------------------------------
DATABASES = {"default": env.db_url("DATABASE_URL")}
DATABASES["default"]["ENGINE"] = "django.db.backends.postgresql"
DATABASES["default"]["ATOMIC_REQUESTS"] = False  # Services open their own, durable transactions.
DATABASES["default"]["OPTIONS"] = {
    # A statement that waits longer than this for a lock gives up instead of holding a web thread or
    # a worker for ever; the request answers with an error and a task is tried again.
    "options": f"-c lock_timeout={env.int('DATABASE_LOCK_TIMEOUT_MS', default=20_000)}",
}
# A connection serves many requests, or many tasks of a worker: setting one up costs more than most of
# them, and what it has planned is lost with it. Looked at before each use, so a restarted database is
# noticed there. 0: a new one each time.
DATABASES["default"]["CONN_MAX_AGE"] = env.int("DATABASE_CONN_MAX_AGE", default=600)
DATABASES["default"]["CONN_HEALTH_CHECKS"] = True
# A pool saves the connection set-up of every request. Web processes only: a prefork worker would
# inherit a pool whose threads did not survive the fork.
if env.bool("DATABASE_POOL", default=False):
    DATABASES["default"]["OPTIONS"]["pool"] = {
        "min_size": 1,
        "max_size": env.int("DATABASE_POOL_SIZE", default=10),
        "timeout": 10,
    }
    DATABASES["default"]["CONN_MAX_AGE"] = 0  # The pool keeps them.
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- People -----------------------------------------------------------------------------------
AUTH_USER_MODEL = "tickets.User"
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "login"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]

# --- Language and time ------------------------------------------------------------------------
LANGUAGE_CODE = "en"
LANGUAGES = [("en", _("English")), ("zh-hans", _("Simplified Chinese"))]
LOCALE_PATHS = [BASE_DIR / "helpdesk" / "locale"]
FORMAT_MODULE_PATH = "helpdesk.formats"
USE_I18N = True
USE_TZ = True  # Instants are stored in UTC; zones are for showing.
TIME_ZONE = "UTC"

# --- Static files -----------------------------------------------------------------------------
STATIC_URL = "static/"
STATIC_ROOT = env.path("STATIC_ROOT", default=str(BASE_DIR / "staticfiles"))
WHITENOISE_USE_FINDERS = WHITENOISE_AUTOREFRESH = DEBUG
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if DEBUG
        else "whitenoise.storage.CompressedManifestStaticFilesStorage"
    },
}

# --- The broker: hints, never the truth ---------------------------------------------------------
REDIS_URL = env.str("REDIS_URL")
# How long Redis waits for an acknowledgement before it gives a message to another worker. A message
# held for its eta is unacknowledged all that time, so this must be far above the dispatch horizon.
BROKER_VISIBILITY_TIMEOUT = seconds("BROKER_VISIBILITY_TIMEOUT", 3600)
# How long a request may wait for a broker that does not answer. It never fails because of it.
BROKER_SOCKET_TIMEOUT = seconds("BROKER_SOCKET_TIMEOUT", 2)

# --- The API ------------------------------------------------------------------------------------
API_TOKEN_DAYS = env.float("API_TOKEN_DAYS", default=30)
REST_KNOX = {
    "AUTH_HEADER_PREFIX": "Bearer",
    "TOKEN_TTL": timedelta(days=API_TOKEN_DAYS),
}
# How often, as "number/period" (s, m, h, d); empty: no limit. Too low: people are locked out while others
# guess their password. By address: a whole office may share one.
THROTTLES = {
    "sign_in_by_address": env.str("THROTTLE_SIGN_IN_BY_ADDRESS", default="60/m"),
    "sign_in_by_name": env.str("THROTTLE_SIGN_IN_BY_NAME", default="10/m"),
    "writes_by_person": env.str("THROTTLE_WRITES_BY_PERSON", default="300/m"),
    "writes_by_address": env.str("THROTTLE_WRITES_BY_ADDRESS", default="1200/m"),
}
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": REDIS_URL,
        "KEY_PREFIX": "helpdesk",
        "OPTIONS": {
            "socket_timeout": BROKER_SOCKET_TIMEOUT.total_seconds(),
            "socket_connect_timeout": BROKER_SOCKET_TIMEOUT.total_seconds(),
        },
    }
}
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["helpdesk.api.auth.BearerAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_PARSER_CLASSES": ["helpdesk.api.fields.StrictJSONParser"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_THROTTLE_CLASSES": [
        "helpdesk.api.throttles.WritesByPerson",
        "helpdesk.api.throttles.WritesByAddress",
    ],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_METADATA_CLASS": None,
    "EXCEPTION_HANDLER": "helpdesk.api.problems.handle",
    "URL_FORMAT_OVERRIDE": None,
    # How many proxies of your own stand in front: the client's address is that many from the end of
    # X-Forwarded-For. Too many, and a client can pretend to be anywhere.
    "NUM_PROXIES": env.int("PROXIES", default=0),
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Helpdesk",
    "OAS_VERSION": "3.1.0",
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_AUTHENTICATION": [],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "SWAGGER_UI_SETTINGS": {
        "deepLinking": True,
        "persistAuthorization": False,
        "tryItOutEnabled": True,
    },
    "COMPONENT_SPLIT_PATCH": False,
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    "ENUM_ADD_EXPLICIT_BLANK_NULL_CHOICE": False,
    "ENUM_NAME_OVERRIDES": {
        "TicketStatus": "tickets.states.Status",
        "TaskStatus": "reminders.states.TaskStatus",
    },
    "PATH_CONVERTER_OVERRIDES": {
        "row": {"type": "integer", "minimum": 0, "maximum": 10**18 - 1},
        "slug": {"type": "string", "pattern": "^[-a-zA-Z0-9_]+$"},
    },
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "helpdesk.api.schema.finish",
    ],
}

# --- Reminders ----------------------------------------------------------------------------------
# A reminder is published to Celery only when it is due within the horizon.
REMINDER_HORIZON = seconds("REMINDER_HORIZON", 60)
# How often beat publishes what has come within the horizon and what seems to have been lost.
REMINDER_DISPATCH_PERIOD = seconds("REMINDER_DISPATCH_PERIOD", 5)
# Overdue and still waiting this long after it was published: the message is taken for lost.
REMINDER_RESEND_AFTER = seconds("REMINDER_RESEND_AFTER", 10)
# A running task whose lease has expired goes back to the queue. Must outlast the hard time limit:
# otherwise a worker that is merely slow loses its work.
REMINDER_LEASE = seconds("REMINDER_LEASE", 120)
REMINDER_RECOVERY_PERIOD = seconds("REMINDER_RECOVERY_PERIOD", 15)
REMINDER_SOFT_TIME_LIMIT = seconds("REMINDER_SOFT_TIME_LIMIT", 60)
REMINDER_HARD_TIME_LIMIT = seconds("REMINDER_HARD_TIME_LIMIT", 90)
# After this many failed attempts a task is FAILED and waits for a person.
REMINDER_MAX_ATTEMPTS = env.int("REMINDER_MAX_ATTEMPTS", default=5)
REMINDER_BACKOFF = seconds("REMINDER_BACKOFF", 10)
REMINDER_BACKOFF_CAP = seconds("REMINDER_BACKOFF_CAP", 900)
# Reminders that one message, one claim and one transaction carry at the most.
REMINDER_SET_SIZE = env.int("REMINDER_SET_SIZE", default=500)

# --- The audit ----------------------------------------------------------------------------------
# How often everything active, recent, and the next slice of what is stored is looked at.
AUDIT_PERIOD = seconds("AUDIT_PERIOD", 60)
# How long after tasks completed their team is audited; completions in between are covered by it.
AUDIT_DEBOUNCE = seconds("AUDIT_DEBOUNCE", 2)
# Stored tasks, tickets and notices a periodic audit looks at beside the recent ones, in turn.
AUDIT_SLICE = env.int("AUDIT_SLICE", default=2_000)
# Task history, audit runs and closed findings are kept this long, and looked through this often.
AUDIT_KEEP = timedelta(days=env.float("AUDIT_KEEP_DAYS", default=90))
AUDIT_PRUNE_PERIOD = seconds("AUDIT_PRUNE_PERIOD", 3600)

# --- Logs: events with fields ---------------------------------------------------------------------
LOG_LEVEL = env.str("LOG_LEVEL", default="INFO")
_shared_processors: list[structlog.typing.Processor] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "events": {
            "()": structlog.stdlib.ProcessorFormatter,
            "foreign_pre_chain": _shared_processors,
            "processors": [
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                structlog.processors.KeyValueRenderer(
                    key_order=["timestamp", "level", "logger", "event"], repr_native_str=False
                )
                if env.str("LOG_FORMAT", default="text") == "text"
                else structlog.processors.JSONRenderer(),
            ],
        }
    },
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "events"}},
    "root": {"handlers": ["console"], "level": "WARNING"},
    "loggers": {
        **{
            name: {"level": LOG_LEVEL}
            for name in ("helpdesk", "tickets", "reminders", "notifications", "celery", "django")
        },
        # A line for every tick of beat and every message says nothing that the events do not.
        **{
            name: {"level": "WARNING"}
            for name in ("celery.beat", "celery.app.trace", "celery.worker.strategy")
        },
    },
}
structlog.configure(
    processors=[
        structlog.stdlib.filter_by_level,
        *_shared_processors,
        structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
    ],
    logger_factory=structlog.stdlib.LoggerFactory(),
    wrapper_class=structlog.stdlib.BoundLogger,
    cache_logger_on_first_use=True,
)
