"""A series as others have it: commits of a git repository, mails, one diff."""
