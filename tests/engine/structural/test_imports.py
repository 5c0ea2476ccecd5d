"""Import lines and import lists."""

from tests.engine.structural.cases import flagged, forced, merged


def test_names_of_one_import_are_united_by_name():
    got = forced("from a import b, f\n", "from a import b, c, f\n", "from a import b, e, f\n")

    assert got == "from a import b, c, e, f\n"


def test_a_name_goes_where_the_order_of_the_list_has_it():
    got = forced("from a import b, f\n", "from a import b, e, f\n", "from a import b, c, f\n")

    assert got == "from a import b, c, e, f\n"


def test_a_name_that_upstream_took_out_does_not_come_back():
    got = forced("from a import b, c, d\n", "from a import b, d\n", "from a import b, c, d, e\n")

    assert got == "from a import b, d, e\n"


def test_a_list_that_became_multi_line_keeps_its_new_layout():
    ours = "from a import (\n    b,\n    c,\n    f,\n)\n"

    got = forced("from a import b, f\n", ours, "from a import b, e, f\n")

    assert got == "from a import (\n    b,\n    c,\n    e,\n    f,\n)\n"


def test_a_list_that_the_patch_broke_over_lines_takes_a_name_of_upstream():
    theirs = "from a import (\n    b,\n    e,\n    f,\n)\n"

    got = forced("from a import b, f\n", "from a import b, c, f\n", theirs)

    assert got == "from a import (\n    b,\n    c,\n    e,\n    f,\n)\n"


def test_comments_in_a_list_stay_with_their_names():
    base = "from a import (\n    b,  # one\n    f,\n)\n"
    ours = "from a import (\n    b,  # one\n    c,  # two\n    f,\n)\n"
    theirs = "from a import (\n    b,  # one\n    # three\n    e,\n    f,\n)\n"

    got = forced(base, ours, theirs)

    assert got == (
        "from a import (\n    b,  # one\n    c,  # two\n    # three\n    e,\n    f,\n)\n"
    )


def test_new_lines_go_where_sorted_imports_have_them():
    base = "import os\nimport sys\n\nfrom a import x\nfrom m import y\n\nuse(x, y)\n"
    ours = base.replace("from m", "from c import z\nfrom m")
    theirs = base.replace("from m", "from b import w\nfrom m")

    got = forced(base, ours, theirs)

    assert got == base.replace("from m", "from b import w\nfrom c import z\nfrom m")


def test_an_import_beside_one_that_upstream_took_out_is_put_in():
    base = "import os\nimport re\n\nuse(os, re)\n"
    ours = "import os\n\nuse(os)\n"
    theirs = "import os\nimport re\nimport sys\n\nuse(os, re)\n"

    assert forced(base, ours, theirs) == "import os\nimport sys\n\nuse(os)\n"


def test_what_both_put_in_is_there_once():
    base = "from a import b\n\nx = 1\n"
    ours = "from a import b\nfrom c import d\n\nx = 2\n"
    theirs = "from a import b\nfrom c import d\n\nx = 1\n"

    assert forced(base, ours, theirs) == ours


def test_the_same_module_imported_by_both_becomes_one_line():
    base = "import os\n\n\nx = 1\n"
    ours = "import os\nfrom a import b, c\n\n\nx = 1\n"
    theirs = "import os\nfrom a import b, d\n\n\nx = 1\n"

    assert merged(base, ours, theirs).text == "import os\nfrom a import b, c, d\n\n\nx = 1\n"


def test_only_the_new_names_of_an_import_that_upstream_dropped_are_put_back():
    base = "from a import b\nfrom c import d\n\nuse(b, d)\n"
    ours = "from c import d\n\nuse(d)\n"
    theirs = "from a import b, e\nfrom c import d\n\nuse(b, d)\n"

    assert merged(base, ours, theirs).text == "from a import e\nfrom c import d\n\nuse(d)\n"


def test_unsorted_imports_at_one_place_are_flagged():
    base = "import z\nimport b\n\nx = 1\n"
    ours = "import z\nimport b\nimport q\n\nx = 1\n"
    theirs = "import z\nimport b\nimport d\n\nx = 1\n"

    got = flagged(base, ours, theirs, "both sides put imports at one place")

    assert got == "import z\nimport b\nimport q\nimport d\n\nx = 1\n"


def test_an_order_that_the_patch_changed_is_flagged():
    base = "import z\nimport b\nx = 1\n"
    ours = "import z\nimport b\nx = 2\n"
    theirs = "import b\nimport z\nx = 1\n"

    assert flagged(base, ours, theirs, "moves `import") == ours


def test_the_license_of_both_is_there_once():
    base = "# License\nimport a\n"
    ours = "# License\nimport a\nimport c\n"
    theirs = "# License\n\nimport b\n"

    assert merged(base, ours, theirs).text.count("# License") == 1


def test_a_module_that_lost_its_names_to_another_is_flagged():
    base = "from .old import a\n\nuse(a)\n"
    ours = "from new import a\n\nuse(a)\n"
    theirs = "from .old import a\nfrom .old import b\n\nuse(a)\n"

    got = flagged(base, ours, theirs, "upstream has `a` from another module than `.old`")

    assert "from .old import b\n" in got
