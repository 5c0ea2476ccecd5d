"""Tests of patchq.rebase."""
