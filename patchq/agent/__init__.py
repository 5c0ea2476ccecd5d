"""What runs in the environment: stdlib only, Python >= 3.8, imports nothing but itself.

`READING` and `WRITING` name the modules in the order in which a transport
sends and executes them. A reading verb may ship `READING` alone: the agent
then answers ``survey``, ``read``, ``records``, ``hash`` and ``discover``, and refuses the rest.
Error words that mean "a patch does not fit, nothing was changed" are `CONFLICTS`.
"""

READING = (
    "protocol",
    "record",
    "facts",
    "folders",
    "forms",
    "state",
    "holder",
    "guise",
    "installed",
    "environment",
    "obstacles",
    "bytecode",
    "remains",
    "scan",
    "unlisted",
    "hashes",
    "proc",
    "programs",
    "sought",
    "processes",
    "discover",
    "serve",
)
WRITING = (
    *READING[:-1],
    "lock",
    "stage",
    "journal",
    "grafts",
    "renames",
    "verify",
    "draft",
    "given",
    "entries",
    "changes",
    "receipt",
    "recover",
    "settle",
    "transact",
    "trial",
    "serve",
)
CONFLICTS = ("changed", "does-not-compile")
