import subprocess

from hypothesis import given, settings
from hypothesis import strategies as st

from patchq.engine import diffstat
from patchq.engine.diffstat import Count


def test_lines_are_counted():
    assert diffstat.count("x", None, b"1\n2\n") == Count("x", 2, 0)
    assert diffstat.count("x", b"1\n2\n", None) == Count("x", 0, 2)
    assert diffstat.count("x", b"1\n2", b"1\n2\n") == Count("x", 1, 1)
    assert diffstat.drawn([]) == []


LONG = "patchq/a_rather_long_folder/another_one/and_one_more/a_module_with_a_long_name.py"
counts = st.lists(
    st.builds(
        Count,
        st.sampled_from(["x", "y/z.py", "setup.cfg", LONG, LONG.replace("/", "_"), "ä/日本.py"]),
        st.integers(0, 300),
        st.integers(0, 300),
    ).filter(lambda one: one.total > 0),
    min_size=1,
    max_size=4,
    unique_by=lambda one: one.path,
)


@settings(max_examples=40, deadline=None)
@given(counts=counts, width=st.sampled_from([80, 80, 50, 20, 120]))
def test_it_is_drawn_as_git_draws_it(tmp_path_factory, counts, width):
    folder = tmp_path_factory.mktemp("stat")
    repository = folder / "r"
    repository.mkdir()
    counts = sorted(counts, key=lambda one: one.path.encode())

    def git(*args):
        return subprocess.run(
            ["git", "-c", "core.quotePath=false", *args],
            cwd=repository,
            check=True,
            capture_output=True,
        ).stdout.decode()

    git("init", "-q")
    for side in ("removed", "added"):
        for one in counts:
            path = repository / one.path
            path.parent.mkdir(parents=True, exist_ok=True)
            body = [b"%s %d\n" % (side.encode(), n) for n in range(getattr(one, side))]
            path.write_bytes(b"".join(body) + b"same\n")
        if side == "removed":
            git("add", "-A")

    assert diffstat.drawn(counts, width) == git("diff", f"--stat={width}").splitlines()
