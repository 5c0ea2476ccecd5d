from hypothesis import given
from hypothesis import strategies as st

from patchq.engine import lines

BYTES = st.lists(
    st.sampled_from([b"\n", b"\r", b"\x0c", b"\x85", b"a", b"\xe9", b"\xc3\xa9"])
).map(b"".join)


@given(BYTES | st.binary())
def test_lines_joined_are_the_text_and_each_has_one_newline_at_its_end(data):
    split = lines.split(data)

    assert b"".join(split) == data
    assert all(line.index(b"\n") == len(line) - 1 for line in split[:-1])
    assert all(line.find(b"\n") in (-1, len(line) - 1) for line in split)
    assert b"" not in split


@given(st.binary())
def test_any_bytes_survive_decoding(data):
    assert lines.encode(lines.decode(data)) == data


def test_a_shown_line_tells_a_missing_newline_and_invisible_bytes():
    assert lines.shown(b"a\t\r\n") == r"'a\t\r'"
    assert lines.shown(b"caf\xe9") == r"'caf\udce9' without a newline"
