import os

from django.core.asgi import get_asgi_application

from symfonic_pg.contrib.django.asgi import MemoryLifespan

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "desk.settings")
application = MemoryLifespan(get_asgi_application())
