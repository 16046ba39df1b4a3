"""manage.py memory_doctor"""

from __future__ import annotations

import asyncio
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from symfonic_pg.contrib.django.configuration import configured
from symfonic_pg.contrib.django.databases import address_of, obstacle
from symfonic_pg.postgres.doctor import Finding, examine


class Command(BaseCommand):
    """What `symfonic-pg doctor` looks at, in the database that the settings name."""

    help = "Look at server, pgvector, schema, indexes, embedding models and rights; change nothing."

    def add_arguments(self, parser: CommandParser) -> None:
        """The alias and the role."""
        parser.add_argument("--database", metavar="ALIAS", help="The alias, else SYMFONIC_PG_DATABASE's.")
        parser.add_argument("--role", metavar="NAME", help="Ask whether this role could run the store.")

    def handle(self, *args: Any, database: str | None, role: str | None, **options: Any) -> None:
        """Print each finding; CommandError, and with it exit code 1, for a failure."""
        configuration = configured()
        alias = database or configuration.database
        reason = obstacle(alias)
        if reason is not None:
            raise CommandError(reason)
        findings = asyncio.run(
            examine(
                address_of(alias), schema=configuration.schema, role=role, timeout=configuration.store.timeout
            )
        )
        for finding in findings:
            self.stdout.write(self._line(finding, alias))
        failures = sum(finding.status == "failure" for finding in findings)
        if failures:
            raise CommandError(f"{failures} of {len(findings)} checks failed")

    def _line(self, finding: Finding, alias: str) -> str:
        style = {"ok": self.style.SUCCESS, "warning": self.style.WARNING, "failure": self.style.ERROR}
        line = f"{style[finding.status](finding.status):8} {finding.name}: {finding.detail}"
        fix = finding.fix
        if fix.startswith("symfonic-pg migrate"):
            fix = f"manage.py migrate symfonic_pg --database {alias}"
        return f"{line}\n         {fix}" if fix else line
