"""The words of an audit by hashes alone: rules, their order, and that there is always one."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchq.audit import held, judge
from patchq.audit.finding import Case, Past, Receipt, Word
from patchq.model import (
    ABSENT,
    AppliedPatch,
    Found,
    Installed,
    Lock,
    LockedPatch,
    PathChange,
    Survey,
    sha256,
)
from tests.locked import A0, A1, A2, B0, B1, LOCK, NEW, ONE, THREE, TWO, applied, state

ODD = state("odd")
BASE = {"p/a.py": A0, "p/b.py": B0, "p/n.py": ABSENT}
RECEIPT = Receipt(
    "r1",
    "2026-01-01T00:00:00Z",
    "push",
    "me",
    "laptop",
    "c0ffee" * 6,
    False,
    (("q", "one.patch", ONE.patch),),
)


def says(patch, a=None, after=None, queue="q"):
    """Return a stack of one patch that says so of p/a.py, and nothing where it is not told."""
    changes = (PathChange("p/a.py", a, after),) if a else ()
    return (AppliedPatch(queue, patch.name, "1.0", patch.patch, changes),)


def other(a, after):
    """Return another queue's patch of p/a.py."""
    return says(LockedPatch("o.patch", "", sha256(b"o"), None, ()), a, after, "other")


def case(a=A0, b=B0, n=ABSENT, *, stack=(), version="1.0", listed=None, locks=None, **more):
    """Return a case; `listed` is what RECORD has, the pristine digests where not told."""
    live = {"p/a.py": a, "p/b.py": b, "p/n.py": n}
    listed = {path: s.sha256 for path, s in BASE.items()} if listed is None else listed
    files = {
        path: Found(path, "absent" if s == ABSENT else "file", s, listed.get(path))
        for path, s in live.items()
    }
    have = version and Installed("demo", version, f"demo-{version}.dist-info", sha256(b""), "pip")
    survey = Survey(
        "3.11.7",
        "python",
        "/site",
        have or None,
        files,
        stack,
        orphaned=more.pop("orphaned", None),
    )
    return Case("q", survey, {"1.0": LOCK} if locks is None else locks, **more)


@pytest.mark.parametrize(
    ("one", "word"),
    [
        (case(), Word.MISSING),
        (case(A2, B1, NEW, stack=applied(ONE, TWO, THREE)), Word.CURRENT),
        (case(A1, stack=applied(ONE)), Word.PARTIAL),
        (case(A0, stack=applied(ONE)), Word.DRIFTED),
        (case(A1, ODD, stack=applied(ONE)), Word.DRIFTED),
        (case(A1), Word.UNRECORDED),
        (case(A2, B1, NEW), Word.UNRECORDED),
        (case(A1, listed={"p/a.py": A1.sha256, "p/b.py": B0.sha256}), Word.UNRECORDED),
        (case(A0, B1), Word.PARTIAL),
        (case(A0, B0, NEW), Word.PARTIAL),
        (case(ODD), Word.UNMANAGED),
        (case(ABSENT), Word.UNMANAGED),
        (case(ODD, B1, NEW), Word.UNMANAGED),
        (case(version=None), Word.ABSENT),
        (case(version="2.0", locks={}), Word.NO_SERIES),
        (case(ODD, listed={"p/a.py": ODD.sha256, "p/b.py": B0.sha256}), Word.NO_SERIES),
        (case(last=RECEIPT), Word.ORPHANED),
        (case(version=None, last=RECEIPT), Word.ORPHANED),
        (case(A1, last=RECEIPT), Word.UNRECORDED),
        (case(ODD, last=RECEIPT), Word.UNMANAGED),
        (case(orphaned="reinstalled", lost=("one.patch",)), Word.ORPHANED),
        (case(A1, stack=applied(ONE), in_sight=False, locks={}), Word.UNKNOWN),
        (case(A0, stack=applied(ONE), in_sight=False, locks={}), Word.DRIFTED),
        (case(busy={"who": "me"}), Word.INTERRUPTED),
        (case(A1, stack=says(ONE, a=A0, after=A1)), Word.PARTIAL),
        (case(ODD, stack=says(ONE, a=A0, after=ODD)), Word.DRIFTED),
        (case(A1, stack=says(ONE, a=ODD, after=A1)), Word.DRIFTED),
        (case(stack=says(ONE)), Word.DRIFTED),
        (case(ODD, stack=(*says(ONE, a=A0, after=ODD), *other(ODD, ODD))), Word.PARTIAL),
        (case(A1, stack=(*says(ONE, a=ODD, after=A1), *other(A1, A1))), Word.DRIFTED),
        (case(ODD, stack=(*says(ONE, a=A0, after=A1), *other(A2, ODD))), Word.DRIFTED),
    ],
)
def test_each_state_of_the_files_has_its_word(one, word):
    assert judge.judge(one).word is word


def test_files_that_another_version_installed_so_are_not_ours():
    listed = {"p/a.py": A2.sha256, "p/b.py": B1.sha256, "p/n.py": NEW.sha256}

    found = judge.judge(case(A2, B1, NEW, version="2.0", listed=listed))

    assert found.word is Word.NO_SERIES


def test_the_why_names_paths_and_digests():
    found = judge.judge(case(ODD))

    assert found.paths == ("p/a.py",)
    assert A0.sha256[:12] in found.why
    assert ODD.sha256[:12] in found.why
    assert found.mend == "patchq diff -z"


def test_what_was_orphaned_names_who_pushed_it_and_when():
    assert "push by me from laptop at 2026-01-01T00:00:00Z" in judge.judge(case(last=RECEIPT)).why


def old(*texts):
    """Return a lock of an older series: one.patch with another text and effect."""
    return Lock(
        "demo",
        "1.0",
        "tree",
        tuple(
            LockedPatch(
                f"{t}.patch", "", sha256(t.encode()), None, (PathChange("p/a.py", A0, ODD),)
            )
            for t in texts
        ),
    )


def test_a_stack_of_an_older_commit_is_behind_by_the_commits_since():
    lock = old("older")
    pasts = (Past("c2", 0, LOCK), Past("c1", 3, lock))

    found = judge.judge(case(ODD, stack=applied(*lock.patches), past=lambda release: pasts))

    assert (found.word, found.behind, found.commit) == (Word.BEHIND, 3, "c1")
    assert "3 commits of this queue ago" in found.why


def test_a_stack_that_no_commit_had_is_unknown_and_its_digest_is_named():
    lock = old("older")

    found = judge.judge(case(ODD, stack=applied(*lock.patches), past=lambda release: ()))

    assert found.word is Word.UNKNOWN
    assert sha256(b"older")[:12] in found.why


def test_files_as_an_older_commit_left_them_are_unrecorded_with_that_commit():
    pasts = (Past("c1", 2, old("older")),)

    found = judge.judge(case(ODD, past=lambda release: pasts))

    assert (found.word, found.commit, found.behind) == (Word.UNRECORDED, "c1", 2)


def test_the_past_is_not_asked_where_the_files_are_as_today_or_as_released():
    def never(release):
        raise AssertionError(release)

    for one in (
        case(past=never),
        case(A1, past=never),
        case(A2, B1, NEW, stack=applied(ONE, TWO, THREE), past=never),
        case(version="2.0", locks={}, past=never),
    ):
        judge.judge(one)


def test_other_texts_of_the_same_effect_are_current():
    lock = Lock(
        "demo",
        "1.0",
        "tree",
        (LockedPatch("all.patch", "", sha256(b"all"), None, ONE.changes + TWO.changes),),
    )

    found = judge.judge(case(A2, B1, stack=applied(ONE, TWO), locks={"1.0": lock}))

    assert found.word is Word.CURRENT
    assert "other texts" in found.why


def test_a_series_on_another_queues_patch_is_current_by_text():
    below = LockedPatch("x.patch", "", sha256(b"x"), None, (PathChange("p/a.py", A0, ODD),))
    high = state("odd and one")
    mine = AppliedPatch("q", "one.patch", "1.0", ONE.patch, (PathChange("p/a.py", ODD, high),))
    lock = Lock("demo", "1.0", "tree", (ONE,))
    stack = (*applied(below, queue="r"), mine)

    found = judge.judge(case(high, stack=stack, locks={"1.0": lock}))

    assert found.word is Word.CURRENT


def test_a_queue_beside_another_ones_stack_is_missing():
    below = LockedPatch("x.patch", "", sha256(b"x"), None, (PathChange("p/b.py", B0, ODD),))

    found = judge.judge(case(b=ODD, stack=applied(below, queue="r"), locks={"1.0": LOCK}))

    assert found.word is Word.MISSING


FILE = st.sampled_from([A0, A1, A2, B0, B1, NEW, ODD, ABSENT])
LISTED = st.sampled_from([None, *(s.sha256 for s in (A0, A1, A2, B0, NEW, ODD))])
STACKS = st.sampled_from(
    [
        (),
        applied(ONE),
        applied(ONE, TWO),
        applied(ONE, TWO, THREE),
        applied(THREE),
        applied(ONE, queue="r"),
        applied(ONE, queue="r") + applied(THREE),
    ]
)


@given(
    files=st.tuples(FILE, FILE, FILE),
    listed=st.fixed_dictionaries(dict.fromkeys(BASE, LISTED)),
    stack=STACKS,
    version=st.sampled_from([None, "1.0", "1.0+local", "2.0"]),
    last=st.sampled_from([None, RECEIPT]),
    in_sight=st.booleans(),
    past=st.sampled_from([(), (Past("c1", 1, old("older")),), (Past("c2", 0, LOCK),)]),
)
def test_there_is_exactly_one_word_for_any_mix_of_files(
    files, listed, stack, version, last, in_sight, past
):
    one = case(
        *files,
        stack=stack,
        version=version,
        listed=listed,
        last=last,
        in_sight=in_sight,
        locks={"1.0": LOCK} if in_sight else {},
        past=lambda release: past,
    )

    found = judge.judge(one)

    assert isinstance(found.word, Word)
    live = dict(zip(BASE, files, strict=True))
    held = one.held
    if found.word is Word.CURRENT:
        says = {c.path: c.after for a in stack for c in a.changes}
        assert held
        assert all(live[path] == want for path, want in says.items() if path in live)
    if found.word is Word.MISSING:
        assert not held
    if found.word is Word.UNMANAGED:
        assert not stack
        assert found.paths
    if found.word is Word.ABSENT:
        assert version is None


@pytest.mark.parametrize("word", list(Word))
def test_an_audit_ends_well_with_few_words(word):
    good = {Word.CURRENT, Word.UPSTREAM}

    assert word.good(True) is (word in good)
    assert word.good(False) is (word in good | {Word.MISSING, Word.ABSENT})


def test_files_of_a_stack_are_expected_to_be_as_the_lock_has_them():
    locks = {"q": {"1.0": LOCK}}
    forged = says(ONE, a=A0, after=ODD)
    also = (*forged[0].changes, PathChange("p/extra.py", A0, ODD))

    assert held.expected(forged, locks) == {"p/a.py": A1}
    assert held.expected(says(ONE), locks) == {"p/a.py": A1}
    assert held.expected((replace(forged[0], changes=also),), locks) == {"p/a.py": A1}
    assert held.expected(forged, {}) == {"p/a.py": ODD}
    assert held.expected((*applied(ONE), *other(A1, ODD)), locks) == {"p/a.py": ODD}
