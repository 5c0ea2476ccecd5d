"""Queue files on disk, and the values they stand for."""
