"""Members of modules and classes, statements beside moved ones, clauses."""

from tests.engine.structural.cases import flagged, forced, merged, refused

CLASS = """
class A:
    def f(self):
        return 1

    def g(self):
        return 2
"""


def test_members_are_known_by_name_wherever_they_went():
    ours = """
    class A:
        def g(self):
            return 2

        def f(self):
            return 1
    """
    theirs = CLASS.replace("return 1", "return 3")

    assert merged(CLASS, ours, theirs).text == (
        "class A:\n    def g(self):\n        return 2\n\n    def f(self):\n        return 3\n"
    )


def test_two_definitions_at_one_place_are_flagged_and_both_there():
    ours = CLASS + "\n    def h(self):\n        return 3\n"
    theirs = CLASS + "\n    def i(self):\n        return 4\n"

    got = flagged(CLASS, ours, theirs, "both sides put definitions at one place")

    assert got.index("def h") < got.index("def i")


def test_two_definitions_of_one_name_are_refused():
    ours = CLASS + "\n    def h(self):\n        return 3\n"
    theirs = CLASS + "\n    def h(self):\n        return 4\n"

    assert "`h`" in refused(CLASS, ours, theirs)


def test_a_new_statement_goes_behind_the_one_that_upstream_wrapped():
    base = "def f(a):\n    one = a\n    two = a\n"
    ours = "def f(a):\n    if a:\n        one = a\n    two = a\n"
    theirs = "def f(a):\n    one = a\n    log(one)\n    two = a\n"

    got = forced(base, ours, theirs)

    assert got == "def f(a):\n    if a:\n        one = a\n    log(one)\n    two = a\n"


def test_lines_side_by_side_are_no_conflict():
    base = "def f():\n    a = 1\n    b = 2\n    c = 3\n"
    ours = base.replace("b = 2", "b = 20")
    theirs = base.replace("c = 3", "c = 30")

    assert forced(base, ours, theirs) == "def f():\n    a = 1\n    b = 20\n    c = 30\n"


def test_a_change_in_code_that_upstream_wrapped_follows_it_and_is_flagged():
    base = "def f(a):\n    first(a)\n    second(a, 1)\n    third(a)\n"
    ours = "def f(a):\n    if a:\n        first(a)\n        second(a, 1)\n    third(a)\n"
    theirs = "def f(a):\n    first(a)\n    second(a, 2)\n    third(a)\n"

    got = flagged(base, ours, theirs, "merged by lines")

    assert got == "def f(a):\n    if a:\n        first(a)\n        second(a, 2)\n    third(a)\n"


def test_code_that_only_a_formatter_moved_takes_the_patch():
    base = "x = call(first, second, third)\ny = 1\n"
    ours = "x = call(\n    first,\n    second,\n    third,\n)\ny = 1\n"
    theirs = "x = call(first, second, 'third')\ny = 1\n"

    assert "'third'" in forced(base, ours, theirs)


def test_a_formatter_between_both_is_no_conflict():
    base = "class A(Exception): pass\n\nx = 1\n"
    ours = "class A(Exception): pass\n\nx = 2\n"
    theirs = "class A(Exception):\n    pass\n\n\nx = 1\n"

    assert "x = 2" in forced(base, ours, theirs)


def test_statements_of_both_at_one_place_are_flagged():
    base = "def f():\n    a()\n    z()\n"
    ours = "def f():\n    a()\n    b()\n    z()\n"
    theirs = "def f():\n    a()\n    c()\n    z()\n"

    got = flagged(base, ours, theirs, "both sides put statements at one place")

    assert got == "def f():\n    a()\n    b()\n    c()\n    z()\n"


def test_what_upstream_took_out_and_the_patch_changed_is_refused():
    base = "def f():\n    a()\n    bbb(1, 2)\n    z()\n"
    ours = "def f():\n    a()\n    z()\n"
    theirs = "def f():\n    a()\n    bbb(1, 3)\n    z()\n"

    assert "took out or moved `bbb(1, 2)`" in refused(base, ours, theirs)


def test_decorators_and_clauses_are_merged_one_by_one():
    base = "@a\ndef f(x):\n    if x:\n        one()\n    else:\n        two()\n"
    ours = base.replace("@a", "@a\n@b").replace("two()", "two(2)")
    theirs = base.replace("one()", "one(1)").replace("def f(x)", "def f(x, y=0)")

    got = forced(base, ours, theirs)

    assert got == (
        "@a\n@b\ndef f(x, y=0):\n    if x:\n        one(1)\n    else:\n        two(2)\n"
    )


def test_what_upstream_puts_amid_what_the_patch_takes_out_is_flagged():
    one, two, three = (
        f"    def {x}(self):\n        return {x!r}\n" for x in ("one", "two", "three")
    )
    new = "    def new(self):\n        return one(two(3))\n"
    base = "class A:\n" + one + two + three

    got = flagged(base, "class A:\n" + one + new + two + three, "class A:\n" + three, "amid")

    assert got == "class A:\n" + new + three


def test_a_def_with_another_name_takes_the_patch_and_is_flagged():
    base = "def f(x):\n    a = x + 1\n    b = a * 2\n    return g(a, b)\n"
    ours = base.replace("def f", "def better")
    theirs = base.replace("a * 2", "a * 3")

    got = flagged(base, ours, theirs, "upstream calls `f` `better`")

    assert got == ours.replace("a * 2", "a * 3")


def test_a_part_that_upstream_has_is_there_once_and_flagged():
    base = "def f():\n    a()\n    z()\n"
    ours = "def f():\n    a()\n    b(1)\n    z()\n"
    theirs = "def f():\n    a()\n    b(1)\n    c(2, 3)\n    z()\n"

    assert flagged(base, ours, theirs, "upstream has a part of") == theirs


def test_an_order_that_the_patch_alone_changed_in_a_block_is_taken():
    base = "def f():\n    a()\n    b()\n\n\nx = [1, 2]\n"
    ours = base.replace("[1, 2]", "[0, 1, 2]")
    theirs = "def f():\n    b()\n    a()\n\n\nx = [1, 2, 3]\n"

    assert forced(base, ours, theirs) == theirs.replace("[1", "[0, 1")


def test_comments_of_both_sides_stay():
    base = "def f():\n    # one\n    a = 1\n    b = 2\n"
    ours = "def f():\n    # one\n    a = 2  # ours\n    b = 2\n"
    theirs = "def f():\n    # one, and more\n    a = 1\n    b = 2  # theirs\n"

    got = forced(base, ours, theirs)

    assert got == "def f():\n    # one, and more\n    a = 2  # ours\n    b = 2  # theirs\n"


def test_comments_that_both_changed_are_both_kept_and_flagged():
    base, ours, theirs = "# a\nx = 1\n", "# b\nx = 1\n", "# c\nx = 1\n"

    got = flagged("y = 0\n" + base, "y = 0\n" + ours, "y = 0\n" + theirs, "comments")

    assert got == "y = 0\n# b\n# c\nx = 1\n"


def test_a_docstring_is_merged_by_line():
    base = 'def f():\n    """One.\n\n    Two.\n\n    Three.\n    """\n    a = 1\n'
    ours = base.replace("One.", "First.").replace("a = 1", "a = 2")
    theirs = base.replace("Three.", "Third.").replace("a = 1", "a = 1\n    b = 1")

    got = forced(base, ours, theirs)

    assert "First.\n\n    Two.\n\n    Third." in got


def test_two_new_docstrings_are_refused():
    base = "def f():\n    a = 1\n"
    ours, theirs = (base.replace("a = 1", f'"""{x}."""\n    a = 1') for x in ("One", "Two"))

    assert "docstring" in refused(base, ours, theirs)


def test_nothing_is_read_that_is_not_python():
    assert "not read" in refused("x = (\n", "x = (1\n", "x = (2\n")


def test_what_both_sides_took_out_is_flagged_where_the_patch_puts_something():
    base = "def f():\n    a()\n    old(1)\n    z()\n"
    ours = "def f():\n    a()\n    z(1)\n"
    theirs = "def f():\n    a()\n    new(1, 2, 3, 4, 5)\n    z()\n"

    flagged(base, ours, theirs, "both sides took out `old(1)`")


BRANCHES = "if p:\n    x = g(1)\n    y = 2\nelse:\n    x = 3\n"


def test_a_branch_is_known_by_its_condition_when_another_is_put_before_it():
    ours = BRANCHES.replace("if p:", "if n:\n    x = g(0)\n    y = 0\nelif p:")

    got = forced(BRANCHES, ours, BRANCHES.replace("g(1)", "g(1, 1)"))

    assert got == ours.replace("g(1)", "g(1, 1)")


def test_branches_that_were_swapped_are_refused():
    base = "if p:\n    r = a(1)\nelse:\n    r = b(1)\n"
    ours = "if not p:\n    r = b(1)\nelse:\n    r = a(1)\n"

    assert "`if p:`" in refused(base, ours, base.replace("a(1)", "a(1, 2)"))
