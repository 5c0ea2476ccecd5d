"""Carrying a series to another release: docs/rebase.md says how, and what is promised."""
