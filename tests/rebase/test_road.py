"""`patchq rebase`: each way in which a patch comes to another release, and every stop."""

import json

import pytest

from patchq.errors import ConflictError, PatchqError, UsageError
from patchq.queue import store as queues
from patchq.rebase.step import Word
from tests.rebase.lab import Lab, patch

pytestmark = pytest.mark.slow  # git processes

A = "def one():\n    return 1\n\n\ndef two():\n    return 2\n\n\ndef three():\n    return 3\n"
TWO = A.replace("return 2", "return 22")
BIG = "".join(f"n{i} = {i}\n" for i in range(20))


@pytest.fixture
def lab(tmp_path):
    return Lab(tmp_path)


def simple(lab, new, *, old=A, patched=TWO, header="Description: a test\n\n", sketches=None):
    lab.release("1.0", {"demo/a.py": old})
    lab.release("2.0", {"demo/a.py": new, "demo/b.py": "x = 1\n"})
    lab.series(
        "1.0",
        {"10-two.patch": patch({"demo/a.py": old}, {"demo/a.py": patched}, header)},
        sketches,
    )


def only(steps):
    assert len(steps) == 1
    return steps[0]


def applied(lab, release):
    """Return the series' files on the release, judged by patchq push's own road."""
    queue = queues.open(lab.queue)
    series = queues.load(queue, release)
    assert series.lock is not None
    from patchq.queue import lock

    assert lock.stale(series.lock, series) is None
    from patchq.rebase.tree import Tree
    from patchq.releases.store import Store

    with Store("demo", lab.cache / "releases") as store:
        tree = Tree(store, release)
        for one in series.patches:
            tree.put(one)
        return tree


def test_where_the_file_is_the_same_the_patch_is_the_same_byte_for_byte(lab):
    simple(lab, A)

    steps, done = lab.rebase("2.0")

    assert only(steps).word is Word.EXACT
    assert done.place == lab.queue / "2.0"
    files = lab.files()
    assert files["2.0/10-two.patch"] == files["1.0/10-two.patch"]
    assert files["2.0/series"] == b"10-two.patch\n"
    assert applied(lab, "2.0").read("demo/a.py") == TWO.encode()


def test_where_lines_moved_only_the_numbers_of_the_hunks_differ(lab):
    simple(lab, "# new\n\n" + A)

    steps, _ = lab.rebase("2.0")

    step = only(steps)
    assert (step.word, step.detail, step.changed) == (Word.MOVED, "demo/a.py: +2 lines", "")
    files = lab.files()
    old, new = files["1.0/10-two.patch"], files["2.0/10-two.patch"]
    assert new == old.replace(b"@@ -3,7 +3,7 @@", b"@@ -5,7 +5,7 @@")
    assert new != old
    assert applied(lab, "2.0").read("demo/a.py") == ("# new\n\n" + TWO).encode()


def test_where_context_changed_the_sides_are_merged_and_the_difference_is_shown(lab):
    simple(
        lab, BIG.replace("n8 = 8", "n8 = 80"), old=BIG, patched=BIG.replace("n10 = 10", "n10 = 11")
    )

    steps, _ = lab.rebase("2.0")

    step = only(steps)
    assert step.word is Word.MERGED
    assert "- n8 = 8\n+ n8 = 80" in step.changed
    text = applied(lab, "2.0").read("demo/a.py")
    assert text == BIG.replace("n8 = 8", "n8 = 80").replace("n10 = 10", "n10 = 11").encode()


SKETCH = "# in demo/a.py\ndef two():\n    return 22\n"


def test_what_the_sketch_finds_upstream_is_left_out_with_its_proof(lab):
    new = A.replace("    return 2\n", "    # upstream's own words\n    return (22)\n")
    simple(lab, new, sketches={"10-two": SKETCH})

    steps, done = lab.rebase("2.0")

    step = only(steps)
    assert step.word is Word.UPSTREAM
    assert step.detail == "its sketch holds on 2.0 without it (1 of 1 claims)"
    assert step.proofs == ("demo/a.py: `def two():` in two",)
    assert done.place is None
    assert not (lab.queue / "2.0").exists()


def test_applied_upstream_is_filled_in_and_the_rest_of_the_header_stays(lab):
    header = "Description: a test\n of two lines\nBug: #1\n---\n"
    simple(lab, TWO, header=header, sketches={"10-two": SKETCH})
    before = lab.files()["1.0/10-two.patch"].decode()

    _, done = lab.rebase("2.0")

    after = lab.files()["1.0/10-two.patch"].decode()
    assert after == before.replace("Bug: #1\n", "Bug: #1\nApplied-Upstream: demo 2.0\n")
    assert done.marked == (f"{lab.queue}/1.0/10-two.patch: Applied-Upstream: demo 2.0",)


def test_a_field_that_is_there_is_left_alone(lab):
    header = "Description: a test\nApplied-Upstream: 1.9, says somebody\n\n"
    simple(lab, TWO, header=header)
    before = lab.files()

    lab.rebase("2.0")

    assert lab.files() == before


def test_without_a_sketch_the_merge_proves_it(lab):
    simple(lab, TWO.replace("return 3", "return 33"))

    steps, done = lab.rebase("2.0")

    step = only(steps)
    assert step.word is Word.UPSTREAM
    assert step.proofs == ("demo/a.py:6: its 1 line there already",)
    assert done.place is None


def test_what_upstream_has_in_part_is_left_out_of_the_new_patch(lab):
    old, patched = BIG, BIG.replace("n3 = 3", "n3 = 33").replace("n15 = 15", "n15 = 55")
    simple(lab, BIG.replace("n3 = 3", "n3 = 33"), old=old, patched=patched)

    steps, _ = lab.rebase("2.0")

    step = only(steps)
    assert step.word is Word.MERGED
    assert step.proofs == ("demo/a.py:4: its 1 line there already",)
    text = lab.files()["2.0/10-two.patch"].decode()
    assert "n15 = 55" in text
    assert "n3" not in text
    assert applied(lab, "2.0").read("demo/a.py") == patched.encode()


def test_a_patch_that_the_release_does_not_need_is_left_out(lab):
    simple(lab, A)
    lab.settings('distribution = "demo"\nsummary = "t"\n[patches.10-two]\nfor = "<2"\n')

    steps, done = lab.rebase("2.0")

    assert only(steps).word is Word.UNNEEDED
    assert done.place is None


CONFLICT = A.replace("return 2", "return 200")


def test_a_conflict_waits_with_markers_and_a_page_and_the_queue_is_as_it_was(lab):
    simple(lab, CONFLICT)
    before = lab.files()

    steps, done = lab.rebase("2.0")

    assert only(steps).word is Word.CONFLICT
    assert done.waiting == steps[0]
    assert lab.files() == before
    folder = lab.places.folder
    assert (folder.work / "demo/a.py").read_text() == A.replace(
        "    return 2\n",
        "<<<<<<< demo 2.0\n    return 200\n||||||| demo 1.0\n    return 2\n=======\n"
        "    return 22\n>>>>>>> 10-two.patch\n",
    )
    page = (folder.path / "CONFLICT.txt").read_text()
    assert "+    return 22" in page
    assert "+    return 200" in page
    assert "patchq rebase --continue" in page


def test_a_second_rebase_is_refused_while_one_waits(lab):
    simple(lab, CONFLICT)
    lab.rebase("2.0")

    with pytest.raises(UsageError, match="in progress"):
        lab.rebase("2.0")


def test_markers_that_are_left_are_refused(lab):
    simple(lab, CONFLICT)
    lab.rebase("2.0")

    with pytest.raises(ConflictError, match=r"demo/a\.py:6: a conflict is not resolved"):
        lab.go_on()


def resolve(lab, text, path="demo/a.py"):
    (lab.places.folder.work / path).write_text(text)


def test_what_was_resolved_is_the_new_patch(lab):
    simple(lab, CONFLICT)
    lab.rebase("2.0")
    resolve(lab, A.replace("return 2", "return 222"))

    steps, done = lab.go_on()

    assert only(steps).word is Word.RESOLVED
    assert done.place == lab.queue / "2.0"
    assert applied(lab, "2.0").read("demo/a.py") == A.replace("return 2", "return 222").encode()
    assert lab.places.folder.load() is None
    assert not lab.places.folder.path.exists()


def test_a_resolution_that_fails_its_sketch_is_refused_and_can_be_forced(lab):
    simple(lab, CONFLICT, sketches={"10-two": SKETCH})
    lab.rebase("2.0")
    resolve(lab, A.replace("return 2", "return 222"))

    with pytest.raises(ConflictError, match="as the work tree has it, is wrong") as caught:
        lab.go_on()
    assert "return 22" in caught.value.why

    steps, _ = lab.go_on(force=True)
    assert (
        only(steps)
        .flags[0]
        .startswith("taken in spite of: demo/a.py: the sketch's `def two():` in two")
    )


def test_a_resolution_that_changes_nothing_is_named_and_skipped(lab):
    simple(lab, CONFLICT)
    lab.rebase("2.0")
    resolve(lab, CONFLICT)

    with pytest.raises(ConflictError, match="would change nothing"):
        lab.go_on()
    steps, done = lab.go_on(skip=True)

    assert only(steps).word is Word.SKIPPED
    assert done.place is None


def test_a_resolution_is_remembered_and_replayed_in_other_surroundings(lab):
    simple(lab, CONFLICT)
    lab.release(
        "2.1", {"demo/a.py": "# above\n\n\n" + CONFLICT + "\n\ndef four():\n    return 4\n"}
    )
    lab.rebase("2.0")
    resolve(lab, A.replace("return 2", "return 222"))
    lab.go_on()

    steps, _ = lab.rebase("2.1", "1.0")

    step = only(steps)
    assert step.word is Word.REMEMBERED
    assert step.flags == ("demo/a.py: resolved as it was before, from memory",)
    text = applied(lab, "2.1").read("demo/a.py").decode()
    assert text.startswith("# above\n\n\n")
    assert "return 222" in text
    assert text.endswith("def four():\n    return 4\n")


def test_what_is_remembered_and_fails_the_judgement_is_a_conflict(lab):
    simple(lab, CONFLICT)
    lab.rebase("2.0")
    resolve(lab, A.replace("return 2", "return 222"))
    lab.go_on()
    (lab.queue / "post" / "10-two.pyi").write_text(SKETCH)

    steps, _ = lab.rebase("2.0", "1.0", again=True)

    assert only(steps).word is Word.CONFLICT
    assert b"<<<<<<< demo 2.0" in (lab.places.folder.work / "demo/a.py").read_bytes()


def test_a_merge_that_fails_the_judgement_is_a_conflict_that_says_why(lab):
    """The text merges, and the name that the patch uses is gone upstream."""
    old = "import os\n\n\ndef f():\n    return 1\n\n\ndef g():\n    return 2\n"
    lab.release("1.0", {"demo/a.py": old})
    lab.release("2.0", {"demo/a.py": old.replace("import os\n", "import sys\n")})
    patched = old.replace("return 2", "return os.sep")
    lab.series("1.0", {"10.patch": patch({"demo/a.py": old}, {"demo/a.py": patched})})

    steps, _ = lab.rebase("2.0")

    step = only(steps)
    assert step.word is Word.CONFLICT
    assert any("os" in reason for reason in step.reasons)
    assert (lab.places.folder.work / "demo/a.py").exists()


def test_abort_leaves_the_queue_and_nothing_else(lab):
    simple(lab, CONFLICT)
    before = lab.files()
    lab.rebase("2.0")

    lab.places.folder.remove()

    assert lab.files() == before
    assert lab.places.folder.load() is None


def test_a_file_that_moved_is_followed_and_flagged(lab):
    lab.release("1.0", {"demo/a.py": BIG})
    lab.release("2.0", {"demo/core/a.py": BIG.replace("n19 = 19", "n19 = 190")})
    patched = BIG.replace("n3 = 3", "n3 = 33")
    lab.series("1.0", {"10.patch": patch({"demo/a.py": BIG}, {"demo/a.py": patched})})

    steps, _ = lab.rebase("2.0")

    step = only(steps)
    assert step.word is Word.MERGED
    assert step.flags == ("demo/a.py is demo/core/a.py in demo 2.0",)
    text = applied(lab, "2.0").read("demo/core/a.py").decode()
    assert "n3 = 33\n" in text
    assert "n19 = 190\n" in text


def test_code_that_went_to_another_file_is_named(lab):
    lab.release("1.0", {"demo/a.py": A, "demo/b.py": "y = 2\n"})
    lab.release("2.0", {"demo/b.py": "y = 2\n\n\ndef two():\n    return 2\n"})
    lab.series("1.0", {"10.patch": patch({"demo/a.py": A}, {"demo/a.py": TWO})})

    steps, _ = lab.rebase("2.0")

    step = only(steps)
    assert step.word is Word.GONE
    assert step.reasons == (
        "demo/a.py: demo 2.0 has no such file",
        "`two` is in demo/b.py:4 now",
    )


def test_created_deleted_renamed_and_executable_files_are_carried(lab):
    old = {"demo/a.py": A, "demo/gone.py": "g = 1\n", "demo/old.py": BIG}
    lab.release("1.0", old)
    lab.release("2.0", {**old, "demo/a.py": "# 2\n" + A, "demo/old.py": BIG + "# 2\n"})
    text = patch(
        {**old, "demo/new.py": None},
        {**old, "demo/gone.py": None, "demo/new.py": "n = 1\n", "demo/a.py": TWO},
    )
    text += (
        "diff --git a/demo/old.py b/demo/named.py\nold mode 100644\nnew mode 100755\n"
        "rename from demo/old.py\nrename to demo/named.py\n"
        "--- a/demo/old.py\n+++ b/demo/named.py\n"
        "@@ -1,3 +1,3 @@\n-n0 = 0\n+n0 = 100\n n1 = 1\n n2 = 2\n"
    )
    lab.series("1.0", {"10.patch": text})

    steps, _ = lab.rebase("2.0")

    assert only(steps).word in (Word.MERGED, Word.MOVED)
    tree = applied(lab, "2.0")
    assert tree.read("demo/gone.py") is None
    assert tree.read("demo/new.py") == b"n = 1\n"
    assert tree.read("demo/old.py") is None
    assert tree.file("demo/named.py") == (
        (BIG.replace("n0 = 0", "n0 = 100") + "# 2\n").encode(),
        True,
    )


def test_later_patches_are_carried_on_top_of_the_earlier_ones(lab):
    third = TWO.replace("return 3", "return 33")
    lab.release("1.0", {"demo/a.py": A})
    lab.release("2.0", {"demo/a.py": "# 2\n" + A})
    patches = {
        "10.patch": patch({"demo/a.py": A}, {"demo/a.py": TWO}),
        "20.patch": patch({"demo/a.py": TWO}, {"demo/a.py": third}),
    }
    lab.series("1.0", patches, lines="# a list\n10.patch  # first\n20.patch\n")

    steps, _ = lab.rebase("2.0")

    assert [step.word for step in steps] == [Word.MOVED, Word.MOVED]
    assert applied(lab, "2.0").read("demo/a.py") == ("# 2\n" + third).encode()
    assert lab.files()["2.0/series"] == b"# a list\n10.patch  # first\n20.patch\n"


def test_a_dry_run_goes_on_behind_a_conflict_and_writes_nothing(lab):
    simple(lab, CONFLICT)
    both = patch({"demo/a.py": TWO}, {"demo/a.py": TWO.replace("return 3", "return 33")})
    (lab.queue / "1.0" / "20-three.patch").write_text(both)
    (lab.queue / "1.0" / "series").write_text("10-two.patch\n20-three.patch\n")
    before = lab.files()

    steps, done = lab.rebase("2.0", dry=True)

    assert [step.word for step in steps] == [Word.CONFLICT, Word.EXACT]
    assert done.place is None
    assert lab.files() == before
    assert lab.places.folder.load() is None


def test_a_series_that_is_there_is_not_replaced_unasked(lab):
    simple(lab, A)
    lab.rebase("2.0")

    with pytest.raises(UsageError, match=r"has a series for 2\.0 already"):
        lab.rebase("2.0")
    steps, _ = lab.rebase("2.0", again=True)

    assert only(steps).word is Word.EXACT


def test_a_series_that_changed_meanwhile_is_refused(lab):
    simple(lab, CONFLICT)
    lab.rebase("2.0")
    path = lab.queue / "1.0" / "10-two.patch"
    path.write_text(path.read_text().replace("return 22", "return 23"))

    with pytest.raises(PatchqError, match="is not what it was when the rebase began"):
        lab.go_on()


def test_a_release_that_was_not_fetched_is_named(lab):
    simple(lab, A)

    with pytest.raises(PatchqError, match=r"demo 3.0 is not here") as caught:
        lab.rebase("3.0")
    assert caught.value.mend == "patchq fetch demo==3.0"


def test_a_damaged_state_is_named(lab):
    simple(lab, CONFLICT)
    lab.rebase("2.0")
    state = lab.places.folder.path / "rebase.json"
    document = json.loads(state.read_text())
    for damaged in ("{", json.dumps({**document, "schema": 9}), "[]", json.dumps({"schema": 1})):
        state.write_text(damaged)
        with pytest.raises(PatchqError, match="cannot be read"):
            lab.places.folder.load()


def test_lines_that_a_sketch_does_not_ask_of_the_release_are_named(lab):
    sketch = SKETCH + "\n\ndef one():\n    return 1  # when <2\n"
    simple(lab, TWO, sketches={"10-two": sketch})

    steps, _ = lab.rebase("2.0")

    assert only(steps).unasked == ("`return 1` in one (line 7, when <2)",)


def test_a_series_that_lacks_what_the_release_needs_is_refused(lab):
    simple(lab, A)
    lab.series("0.9", {"05-old.patch": patch({"demo/a.py": A}, {"demo/a.py": TWO})})
    lab.settings('distribution = "demo"\nsummary = "t"\n[patches.05-old]\nfor = "!=1.0"\n')

    with pytest.raises(UsageError, match=r"the series for 1\.0 lacks 05-old") as caught:
        lab.rebase("2.0")

    assert caught.value.mend.startswith("patchq rebase --onto 2.0 --from 0.9; ")
    steps, _ = lab.rebase("2.0", again=True)
    assert only(steps).word is Word.EXACT


TWINS = (
    "class One:\n    def area(self):\n        side = 1\n        return side\n\n\n"
    "class Two:\n    def area(self):\n        side = 1\n        return side\n"
)


def test_of_two_classes_with_equal_bodies_the_right_one_is_changed(lab):
    """Upstream puts a third one above: by its line numbers and context the hunk fits there."""
    new = TWINS.replace("class One:", "class Zero:").split("class Two:")[0] + TWINS
    patched = TWINS[: TWINS.index("class Two")] + TWINS[TWINS.index("class Two") :].replace(
        "return side", "return side * 2"
    )
    simple(lab, new, old=TWINS, patched=patched)

    lab.rebase("2.0")

    text = applied(lab, "2.0").read("demo/a.py").decode()
    assert text == new[: new.index("class Two")] + new[new.index("class Two") :].replace(
        "return side", "return side * 2"
    )


def test_a_damaged_state_ends_in_an_error_and_not_in_a_loop(lab):
    simple(lab, CONFLICT)
    lab.rebase("2.0")
    state = lab.places.folder.path / "rebase.json"
    state.write_text(state.read_text().replace("10-two.patch", "99-none.patch"))

    with pytest.raises(PatchqError, match="does not fit"):
        lab.go_on()


def test_what_was_left_behind_is_out_of_the_next_rebases_way(lab):
    simple(lab, CONFLICT)
    lab.rebase("2.0")
    resolve(lab, "mine\n")

    left = lab.places.folder.set_aside()
    lab.rebase("2.0")

    assert (left / "demo/a.py").read_text() == "mine\n"


def test_only_one_process_is_at_a_rebase(lab):
    folder = lab.places.folder

    with folder.alone(), pytest.raises(UsageError, match="another patchq"), folder.alone():
        pass


def test_a_file_without_markers_that_nobody_touched_is_not_resolved(lab):
    old = {"demo/a.py": A, "demo/gone.txt": BIG}
    lab.release("1.0", old)
    lab.release("2.0", {"demo/a.py": CONFLICT})
    text = patch(old, {"demo/a.py": TWO, "demo/gone.txt": BIG + "more\n"})
    lab.series("1.0", {"10-two.patch": text})
    lab.rebase("2.0")
    resolve(lab, A.replace("return 2", "return 222"))

    with pytest.raises(ConflictError, match=r"demo/gone\.txt: nothing was done"):
        lab.go_on()
    (lab.places.folder.work / "demo/gone.txt").unlink()
    steps, _ = lab.go_on()

    assert only(steps).word is Word.RESOLVED


def test_a_damaged_patch_of_those_that_are_done_is_named(lab):
    lab.release("1.0", {"demo/a.py": A, "demo/b.txt": "1\n"})
    lab.release("2.0", {"demo/a.py": CONFLICT, "demo/b.txt": "1\n"})
    other = patch({"demo/b.txt": "1\n"}, {"demo/b.txt": "2\n"})
    lab.series("1.0", {"05.patch": other, "10.patch": patch({"demo/a.py": A}, {"demo/a.py": TWO})})
    lab.rebase("2.0")
    resolve(lab, A.replace("return 2", "return 222"))
    kept = lab.places.folder.path / "done" / "05.patch"

    kept.write_text("garbage\n")
    with pytest.raises(PatchqError, match="does not fit"):
        lab.go_on()
    kept.unlink()
    with pytest.raises(PatchqError, match="does not fit"):
        lab.go_on()


def test_files_that_the_work_tree_got_besides_are_taken(lab):
    simple(lab, CONFLICT)
    lab.rebase("2.0")
    resolve(lab, A.replace("return 2", "return 222"))
    resolve(lab, "x = 2\n", "demo/b.py")
    resolve(lab, "n = 1\n", "demo/more.py")
    resolve(lab, "junk", "demo/a.py~")

    steps, _ = lab.go_on()

    assert only(steps).flags == tuple(
        f"demo/{name}: the old patch did not touch it" for name in ("b.py", "more.py")
    )
    tree = applied(lab, "2.0")
    assert (tree.read("demo/b.py"), tree.read("demo/more.py")) == (b"x = 2\n", b"n = 1\n")


def test_a_link_in_the_work_tree_is_refused(lab):
    simple(lab, CONFLICT)
    lab.rebase("2.0")
    place = lab.places.folder.work / "demo/a.py"
    place.unlink()
    place.symlink_to("/etc/hostname")

    with pytest.raises(ConflictError, match="is no plain file in the work tree"):
        lab.go_on()


def test_a_resolution_that_was_forced_is_not_remembered(lab):
    simple(lab, CONFLICT)
    lab.rebase("2.0")
    resolve(lab, A.replace("return 2", "return 222"))
    lab.go_on(force=True)

    steps, _ = lab.rebase("2.0", "1.0", again=True)

    assert only(steps).word is Word.CONFLICT


def test_a_lost_file_without_any_def_is_gone_and_no_crash(lab):
    lab.release("1.0", {"demo/about.py": "v = 1\n", "demo/a.py": A})
    lab.release("2.0", {"demo/a.py": A})
    lab.series(
        "1.0", {"10.patch": patch({"demo/about.py": "v = 1\n"}, {"demo/about.py": "v = 2\n"})}
    )

    steps, _ = lab.rebase("2.0")

    assert only(steps).word is Word.GONE


def test_a_heading_that_quotes_a_line_which_changed_is_written_anew(lab):
    old = "def one(a):\n    return 1\n" + "".join(f"v{i} = {i}\n" for i in range(9))
    simple(
        lab, old.replace("one(a)", "one(a, b)"), old=old, patched=old.replace("v6 = 6", "v6 = 66")
    )

    steps, _ = lab.rebase("2.0")

    assert only(steps).word is Word.EXACT
    assert b"@@ def one(a, b):" in lab.files()["2.0/10-two.patch"]


@pytest.mark.parametrize("named", ["demo==2.0", "garbage", "../x"])
def test_what_is_no_version_names_no_release(lab, named):
    simple(lab, A)

    with pytest.raises(UsageError, match="names no release"):
        lab.rebase(named)
