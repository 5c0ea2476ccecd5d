"""Pristine releases: wheels read from an index, kept in bare git repositories."""
