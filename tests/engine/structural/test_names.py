"""Renames, and names that changed under the patch."""

from patchq.engine.structural import renames
from tests.engine.structural.cases import flagged, forced, merged

BASE = """
def f(values):
    count = len(values)
    use(count)
    return count
"""


def test_a_variable_that_upstream_renamed_is_renamed_in_the_patch():
    ours = BASE.replace("count", "total")
    theirs = BASE.replace("    use(count)\n", "    use(count)\n    log(count)\n")

    got = flagged(BASE, ours, theirs, "upstream calls `count` `total`")

    assert "    use(total)\n    log(total)\n" in got
    assert "count" not in got


def test_a_variable_that_the_patch_renamed_is_renamed_in_what_upstream_added():
    ours = BASE.replace("    use(count)\n", "    use(count)\n    log(count)\n")
    theirs = BASE.replace("count", "total")

    got = flagged(BASE, ours, theirs, "the patch calls `count` `total`")

    assert "    use(total)\n    log(total)\n" in got


def test_a_rename_does_not_hinder_a_change_of_the_same_line():
    ours = BASE.replace("count", "total")
    theirs = BASE.replace("len(values)", "len(values) + 1")

    assert "total = len(values) + 1\n" in forced(BASE, ours, theirs)


def test_another_import_is_no_rename():
    assert renames.found("import os\nos.a\n", "import sys\nsys.a\n") == {}
    assert renames.found("a = (\n    one,\n)\n", "a = (\n    two,\n)\n") == {}


def test_a_name_with_two_new_names_is_no_rename():
    assert renames.found("one = 1\nuse(one)\n", "two = 1\nuse(three)\n") == {}
    assert renames.found("one = 1\nfew = 2\n", "two = 1\ntwo = 2\n") == {}


def test_a_call_of_what_has_other_parameters_now_is_flagged():
    base = "def info(path):\n    return path\n\n\ndef g():\n    a()\n"
    ours = base.replace("info(path)", "info(path, root)").replace("a()", "a(1)")
    theirs = base.replace("    a()\n", "    a()\n    b = info(1)\n")

    flagged(base, ours, theirs, "upstream changed the parameters of `info`")


def test_a_name_that_upstream_took_out_and_the_patch_adds_is_flagged():
    base = "def g(self):\n    a(self.state)\n    c()\n"
    ours = "def g(self):\n    a(1)\n    c(1)\n"
    theirs = base + "    use(self.state)\n"

    flagged(base, ours, theirs, "upstream has taken out every `state`")


def test_a_name_that_the_patch_defines_itself_is_not_flagged():
    base = "def g():\n    first = 1\n    a(first)\n    c()\n"
    ours = "def g():\n    a(1)\n    c(1)\n"
    theirs = base.replace("c()", "first = 2\n    c()")

    found = merged(base, ours, theirs)

    assert not any("every `first`" in flag for flag in found.flags)


def test_a_class_with_other_bases_now_is_flagged_where_the_patch_adds_to_it():
    base = "class A(B):\n    def f(self):\n        pass\n"
    ours = base.replace("A(B)", "A(C)")
    theirs = base + "\n    def g(self):\n        pass\n"

    flagged(base, ours, theirs, "upstream changed `class A(C):`")
