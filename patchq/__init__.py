"""Keep a queue of patches on installed Python packages."""

__version__ = "0.1.0"
