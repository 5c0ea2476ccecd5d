"""Which hosts there are, what is said of each, and which of them a command line means.

`files` is the only module here that reads anything: it finds hosts.toml and has
``ansible-inventory`` list what Ansible knows. All else is pure: `table` and `ansible`
turn documents into values (`values`), `gathered` joins those of several files, `hostset`
and `ranges` are the arithmetic of sets of hosts.
"""
