"""Integrations, each with one optional dependency of its own."""
