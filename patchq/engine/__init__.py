"""The pure core: bytes and values in, values out; no I/O, clock or randomness."""
