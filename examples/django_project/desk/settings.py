import os
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from symfonic_pg.postgres.embedded import EmbeddedServer

# A server of your own takes the place of these two lines and of HOST below.
server = EmbeddedServer(os.environ.get("HELP_DESK", Path(__file__).parents[1] / "data")).start()
socket = parse_qs(urlsplit(server.dsn).query)["host"][0]

DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": "postgres",
        "USER": "postgres",
        "HOST": socket,
    }
}
INSTALLED_APPS = ["desk", "symfonic_pg.contrib.django"]
ROOT_URLCONF = "desk.urls"
ALLOWED_HOSTS = ["*"]
SECRET_KEY = "change me"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

SYMFONIC_PG_EMBEDDER = "symfonic_pg.embedders.HashingEmbedder"
SYMFONIC_PG_TIMEOUT = 5.0
