"""What the store keeps of the wheel that a release was read from (``wheel.json``)."""

from __future__ import annotations

import json
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WheelNote:
    """What is known of the wheel that a release was read from.

    `verified` is "record" (each file equals the wheel's own RECORD), "wheel" (the
    whole wheel equals the index's digest, too), or "sdist" (there was only a source
    distribution). `builds` are all releases that the
    index had for this version, pip's choice first; None where no index was asked.
    `origin` names the environment whose own RECORD was believed ("host"), None for a wheel.
    """

    filename: str
    release: str
    tree: str
    verified: str
    size: int | None = None
    sha256: str | None = None
    builds: tuple[str, ...] | None = None
    origin: str | None = None

    @property
    def of_wheel(self) -> bool:
        """Whether a wheel was read, and not what is like it."""
        return self.origin is None and self.verified != "sdist"

    @property
    def stem(self) -> str:
        """The file's name without distribution and suffix: version, build and tags."""
        return self.stem_of(self.filename)

    @staticmethod
    def stem_of(filename: str) -> str:
        """Return a wheel's file name without distribution and suffix."""
        return filename.removesuffix(".whl").partition("-")[2]

    def to_json(self) -> bytes:
        """Return the note as ``wheel.json`` has it."""
        fields = {name: getattr(self, name) for name in WheelNote.__slots__}
        return json.dumps(fields, indent=1, sort_keys=True).encode() + b"\n"

    @classmethod
    def from_json(cls, data: bytes) -> WheelNote:
        """Return the note that `to_json` wrote."""
        fields = json.loads(data)
        known = {name: fields[name] for name in cls.__slots__ if name in fields}
        builds = known.pop("builds", None)
        return cls(**known, builds=None if builds is None else tuple(builds))
