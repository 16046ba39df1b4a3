"""What an ASGI server runs."""

from django.core.asgi import get_asgi_application

from symfonic_pg.contrib.django.asgi import MemoryLifespan

application = MemoryLifespan(get_asgi_application())
