"""What symfonic_pg costs and how well it finds, measured against bare statements: see docs/performance.md."""
