"""`python -m symfonic_pg.cli`, the same as `symfonic-pg`."""

from symfonic_pg.cli import main

main()
