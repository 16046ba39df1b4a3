"""What a project that is not set up right hears, before anything of it runs."""

from __future__ import annotations

from collections.abc import Callable

from tests.django.conftest import Project

WITHOUT_PSYCOPG = """
import sys
sys.modules["psycopg"] = None
from django.core.management import execute_from_command_line
execute_from_command_line(["manage.py", "check"])
"""


def test_nothing_that_django_loads_needs_psycopg_before_the_check_can_ask_for_it(
    project: Callable[..., Project],
) -> None:
    printed = project("sqlite").python("-c", WITHOUT_PSYCOPG, fails=True)
    assert "(symfonic_pg.E003) the database 'default' is sqlite: memories live in PostgreSQL" in printed


def test_a_project_without_the_admin_needs_none(project: Callable[..., Project], database: str) -> None:
    apps = ["symfonic_pg.contrib.django"]
    host = project(database, INSTALLED_APPS=apps, MIDDLEWARE=[], ROOT_URLCONF=None)
    assert "no issues" in host.manage("check")
    assert "No changes detected" in host.manage("makemigrations", "--check")
