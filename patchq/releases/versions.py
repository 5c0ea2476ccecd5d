"""Which releases of a distribution an index offers."""

from __future__ import annotations

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from patchq.errors import UsageError
from patchq.releases import pages
from patchq.releases import settings as pip
from patchq.releases.index import Session


def offered(
    distribution: str, specifier: str, *, settings: pip.Settings | None = None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the versions that answer to a specifier, oldest first, and notes.

    Those that have a wheel; where none has, those that have a source distribution. Versions
    that were yanked, or are pre-releases and not asked for, are left out.

    Raises:
        UsageError: not a distribution's name, or not a specifier.
        ReadError: no index answers.
    """
    try:
        requirement = Requirement(f"{distribution} {specifier}")
    except InvalidRequirement as error:
        raise UsageError(
            f"{distribution} {specifier} is not a requirement",
            why=str(error).split("\n")[0],
            mend="patchq forecast vllm '>=0.15'",
        ) from error
    with Session(settings or pip.load()) as session:
        name = canonicalize_name(requirement.name)
        found, failed = pages.candidates(session, session.settings, name)
    usable = [each for each in found if each.yanked is None]
    built = {each.version for each in usable if each.tags}
    wheels = sorted(requirement.specifier.filter(built))
    sources = sorted(requirement.specifier.filter({each.version for each in usable} - built))
    return tuple(map(str, wheels or sources)), tuple(failed)
