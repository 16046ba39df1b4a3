"""A help desk in Django: an order and what is remembered about it are one transaction.

    pip install 'symfonic-pg[django,embedded]' uvicorn
    python manage.py migrate && uvicorn desk.asgi:application

Orders and memories share the embedded PostgreSQL under $HELP_DESK (./data).
"""

import os
import sys

from django.core.management import execute_from_command_line

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "desk.settings")
    execute_from_command_line(sys.argv)
