"""``read`` with ``info``: what a distribution's dist-info holds."""

from patchq.agent import protocol, scan, serve


def info(site, **more):
    request = {"op": "read", "distribution": "demo", "target": str(site), **more}
    answer, blobs = serve.respond(request, {})
    assert "ok" in answer, answer
    return answer["ok"]["info"], blobs


def folder(site):
    return next(site.glob("demo-*.dist-info"))


def test_every_file_comes_by_its_name_also_from_folders_below(site):
    (folder(site) / "licenses/deep").mkdir(parents=True)
    (folder(site) / "licenses/deep/LICENSE").write_text("free")

    found, blobs = info(site, info=True)

    assert blobs[found["licenses/deep/LICENSE"]] == b"free"
    assert blobs[found["RECORD"]] == (folder(site) / "RECORD").read_bytes()
    assert all(name == protocol.sha256(data) for name, data in blobs.items())


def test_nothing_comes_where_nobody_asks(site):
    assert info(site) == ({}, {})


def test_a_link_into_a_cache_is_followed_and_one_that_leads_nowhere_is_no_file(site, tmp_path):
    metadata = folder(site) / "METADATA"
    metadata.rename(tmp_path / "kept")
    metadata.symlink_to(tmp_path / "kept")
    (folder(site) / "GONE").symlink_to(tmp_path / "gone")

    found, blobs = info(site, info=True)

    assert blobs[found["METADATA"]] == (tmp_path / "kept").read_bytes()
    assert found["GONE"] is None


def test_what_an_answer_has_no_room_for_is_left_out(site):
    with (folder(site) / "big.json").open("wb") as file:
        file.truncate(scan.INFO_ROOM + 1)

    found, _ = info(site, info=True)

    assert found["big.json"] is None
    assert found["METADATA"] is not None


def test_an_info_that_is_no_flag_is_refused(site):
    answer, _ = serve.respond(
        {"op": "read", "distribution": "demo", "target": str(site), "info": "yes"}, {}
    )

    assert answer["error"]["word"] == "bad-request"
