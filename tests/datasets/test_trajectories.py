"""Readers of recordings, on small files of each format, and what is made of them."""

import hashlib

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import arborax as abx
from arborax.datasets import (
    integrate_gyroscope,
    make_recording,
    read_aeon,
    read_broad,
    read_euroc,
    read_recordings,
    read_ts,
    read_tum,
    read_vicon,
    recorded_windows,
    resample,
)


SPEED = np.array([0.5, -0.3, 0.8])


def _quaternions(ts):
    """A steady turn, `x, y, z, w`, with signs as a recorder may give them."""
    q = Rotation.from_rotvec(ts[:, None] * SPEED).as_quat()
    q[1::3] *= -1
    return q


def _assert_steady(recording, ts):
    np.testing.assert_allclose(recording.ts, ts - ts[0], atol=1e-6)
    start = Rotation.from_rotvec(ts[0] * SPEED)
    expected = start * Rotation.from_rotvec((ts - ts[0])[:, None] * SPEED)
    np.testing.assert_allclose(recording.rotations, expected.as_matrix(), atol=1e-5)
    assert (np.sum(recording.quaternions[1:] * recording.quaternions[:-1], 1) > 0).all()


def test_tum(tmp_path):
    ts = np.array([0.0, 0.1, 0.25, 0.3])
    positions = np.arange(12.0).reshape(4, 3)
    rows = np.column_stack([1.3e9 + ts, positions, _quaternions(ts)])
    # A repeated stamp with another pose, and rows out of order.
    rows = np.concatenate([rows, rows[1:2] + [[0, 0, 0, 0, 0.01, 0, 0, 0]]])[
        [0, 2, 1, 4, 3]
    ]
    file = tmp_path / "walk.txt"
    np.savetxt(file, rows, header="ground truth trajectory\nfile: 'x'", fmt="%.6f")
    recording = read_tum(file)
    assert recording.name == "walk"
    _assert_steady(recording, ts)
    poses = recording.poses
    np.testing.assert_array_equal(poses[:, :3, 3], positions)
    np.testing.assert_array_equal(poses[:, :3, :3], recording.rotations)
    abx.SE().check_point(jnp.asarray(poses[1]))


def test_positions():
    ts = np.array([0.0, 0.1, 0.2])
    bare = make_recording("a", ts, _quaternions(ts))
    with pytest.raises(ValueError, match="no positions; use `rotations`"):
        bare.poses
    with pytest.raises(ValueError, match=r"positions need shape \(3, 3\)"):
        make_recording("a", ts, _quaternions(ts), np.ones((2, 3)))
    gap = np.array([[0.0, 0, 0], [np.nan, 0, 0], [1.0, 0, 0]])
    assert make_recording("a", ts, _quaternions(ts), gap).ts.size == 2


def test_euroc(tmp_path):
    ts = 0.005 * np.arange(6)
    stamps = 1403636580838555648 + np.round(ts * 1e9).astype(np.int64)
    lines = ["#timestamp, p_RS_R_x [m], q_RS_w [], v []"]
    for stamp, q in zip(stamps, _quaternions(ts)):
        x, y, z, w = (f"{v:.8f}" for v in q)
        lines.append(f"{stamp},1.0,2.0,3.0,{w},{x},{y},{z},0.1,0.2,0.3,0,0,0,0,0,0")
    folder = tmp_path / "MH_01" / "mav0" / "state_groundtruth_estimate0"
    folder.mkdir(parents=True)
    file = folder / "data.csv"
    file.write_text("\n".join(lines) + "\n")
    recording = read_euroc(file)
    assert recording.name == "MH_01-data"
    _assert_steady(recording, ts)


def _vicon(file, ts):
    names = ["time_sec", "time_nsec", "object", "translation_x", "translation_y"]
    names += ["translation_z"] + [f"rotation_quaternion_{a}" for a in "xyzw"]
    names += [f"transform_{k}" for k in range(16)]
    lines = [",".join(names)]
    for t, q in zip(ts, _quaternions(ts)):
        for name in ("box1", "box2", "sensor_payload"):
            cells = [f"{1519 + int(t)}", f"{round((t % 1) * 1e9)}", name, "0", "0", "0"]
            # The second box is lost in the third frame.
            lost = name == "box2" and t == ts[2]
            cells += ["" if lost else f"{v:.9f}" for v in q] + ["0"] * 16
            lines.append(",".join(cells))
    file.write_text("\n".join(lines) + "\n")


def test_vicon(tmp_path):
    file = tmp_path / "swinging_4_static_vicon.csv"
    ts = np.array([0.2, 0.4, 0.9, 1.1, 1.3])
    _vicon(file, ts)
    first, second = read_vicon(file)
    assert first.name == "swinging_4_static_vicon-box1"
    _assert_steady(first, ts)
    _assert_steady(second, np.delete(ts, 2))
    (payload,) = read_vicon(file, ["sensor_payload"])
    _assert_steady(payload, ts)
    with pytest.raises(ValueError, match="no object"):
        read_vicon(file, ["box9"])
    (tmp_path / "empty_vicon.csv").write_text("a,b\n")
    with pytest.raises(ValueError, match="no rows"):
        read_vicon(tmp_path / "empty_vicon.csv")


def test_broad_and_gaps(tmp_path):
    ts = np.arange(200) / 50
    q = _quaternions(ts)[:, [3, 0, 1, 2]].astype(np.float32)
    q[100:120] = np.nan
    movement = np.ones(200, bool)
    movement[:10] = False
    file = tmp_path / "trial.npz"
    np.savez(file, opt_quat=q, sampling_rate=50.0, movement=movement)
    recording = read_broad(file)
    assert recording.ts.size == 170
    assert read_broad(file, moving=False).ts.size == 180
    pieces = resample(recording, 10.0)
    assert [len(p) for p in pieces] == [18, 16]
    step = Rotation.from_matrix(pieces[0][0].T @ pieces[0][1]).as_rotvec()
    np.testing.assert_allclose(step, 0.1 * SPEED, atol=1e-5)
    # Bridged if asked for.
    assert len(resample(recording, 10.0, gap=1.0)) == 1
    windows = recorded_windows(pieces, 12, 2)
    assert windows.shape == (4 + 3, 12, 3, 3)
    np.testing.assert_array_equal(windows[4], pieces[1][:12])
    np.savez(tmp_path / "other.npz", a=1)
    with pytest.raises(ValueError, match="opt_quat"):
        read_broad(tmp_path / "other.npz")


def test_irregular_stamps_become_equal_steps(rng):
    ts = np.cumsum(rng.uniform(0.005, 0.03, 300))
    recording = make_recording("x", ts, _quaternions(ts))
    (piece,) = resample(recording, 40.0)
    expected = Rotation.from_rotvec(ts[0] * SPEED) * Rotation.from_rotvec(
        np.arange(len(piece))[:, None] / 40 * SPEED
    )
    np.testing.assert_allclose(piece, expected.as_matrix(), atol=1e-9)


def test_folder(tmp_path):
    ts = 0.1 * np.arange(5)
    _vicon(tmp_path / "a_vicon.csv", ts)
    rows = np.column_stack([ts, np.ones((5, 3)), _quaternions(ts)])
    np.savetxt(tmp_path / "b.txt", rows)
    names = [recording.name for recording in read_recordings(tmp_path)]
    assert names == ["a_vicon-box1", "a_vicon-box2", "b"]
    with pytest.raises(FileNotFoundError, match="folder of your recordings"):
        read_recordings(tmp_path / "none")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="no recording"):
        read_recordings(tmp_path / "empty")
    with pytest.raises(FileNotFoundError, match="no file"):
        read_tum(tmp_path / "none.txt")


def test_bad_recordings():
    with pytest.raises(ValueError, match="shapes"):
        make_recording("x", np.zeros(3), np.zeros((3, 3)))
    with pytest.raises(ValueError, match="two valid"):
        make_recording("x", np.arange(3.0), np.zeros((3, 4)))
    good = make_recording("x", np.arange(3.0), _quaternions(np.arange(3.0)))
    with pytest.raises(ValueError, match="positive"):
        resample(good, 0.0)


def test_gyroscope():
    velocities = np.broadcast_to(SPEED, (2, 30, 3))
    rotations = integrate_gyroscope(velocities, 0.1)
    expected = Rotation.from_rotvec(0.1 * np.arange(30)[:, None] * SPEED).as_matrix()
    np.testing.assert_allclose(rotations[1], expected, atol=1e-12)


def write_series(folder, name, series, classes, labels, parts=("TRAIN", "TEST")):
    """Files of the `.ts` format."""
    head = [
        "# made by a test",
        f"@problemName {name}",
        "@timeStamps false",
        f"@classLabel true {' '.join(classes)}",
        "@data",
    ]
    for part in parts:
        lines = [
            ":".join(
                [*(",".join(f"{v:.6f}" for v in channel) for channel in s.T), label]
            )
            for s, label in zip(series, labels)
        ]
        (folder / f"{name}_{part}.ts").write_text("\n".join(head + lines) + "\n")


def test_ts_files(tmp_path, rng):
    series = [rng.standard_normal((n, 2)) for n in (5, 7, 6)]
    write_series(tmp_path, "Small", series, ("a", "b"), ("b", "a", "b"))
    train, test = read_aeon("Small", tmp_path)
    assert train.values.shape == (3, 7, 2) and train.classes == ("a", "b")
    np.testing.assert_array_equal(train.labels, [1, 0, 1])
    np.testing.assert_array_equal(test.lengths, [5, 7, 6])
    np.testing.assert_allclose(train.values[0, :5], series[0], atol=1e-6)
    np.testing.assert_array_equal(train.values[0, 6], train.values[0, 4])
    bad = tmp_path / "bad.ts"
    bad.write_text("@classLabel false\n@data\n1,2:3,4\n")
    with pytest.raises(ValueError, match="no classes"):
        read_ts(bad)
    head = "@classLabel true a b\n@data\n1,2:3,4:a\n"
    for line in ("1,2:3:a", "1,?:3,4:a", "1,2:a"):
        bad.write_text(head + line + "\n")
        with pytest.raises(ValueError, match=r"bad\.ts, line 4: .*channels"):
            read_ts(bad)


def test_both_parts_have_the_same_times(tmp_path, rng):
    short, long = ([rng.standard_normal((n, 2)) for n in ns] for ns in [(3, 5), (7, 4)])
    write_series(tmp_path, "Small", short, ("a", "b"), ("a", "b"), ["TRAIN"])
    write_series(tmp_path, "Small", long, ("a", "b"), ("a", "b"), ["TEST"])
    train, test = read_aeon("Small", tmp_path)
    assert train.values.shape == test.values.shape == (2, 7, 2)
    np.testing.assert_array_equal(train.lengths, [3, 5])
    np.testing.assert_array_equal(test.lengths, [7, 4])
    np.testing.assert_array_equal(
        train.values[1, 4:], train.values[1, 4:5].repeat(3, 0)
    )
    np.testing.assert_allclose(train.values[1, :5], short[1], atol=1e-6)
    for classes, width in ((("b", "a"), 2), (("a", "b"), 3)):
        other = [rng.standard_normal((4, width)) for _ in range(2)]
        write_series(tmp_path, "Small", other, classes, ("a", "b"), ["TEST"])
        with pytest.raises(ValueError, match="of the two files differ"):
            read_aeon("Small", tmp_path)


def test_sets_of_the_archive_with_checksums(tmp_path, rng):
    """One set as two text files and as arrays; a file that changed is refused."""
    series = [rng.standard_normal((5, 2)).round(6) for _ in range(3)]
    place = tmp_path / "Small"
    place.mkdir()
    write_series(place, "Small", series, ("0", "1"), ("1", "0", "1"))
    train, test = read_aeon("Small", tmp_path)
    files = {
        f"Small_{part}.ts": place / f"Small_{part}.ts" for part in ("TRAIN", "TEST")
    }
    digests = {
        name: hashlib.sha256(file.read_bytes()).hexdigest()
        for name, file in files.items()
    }
    assert train.sha256 == test.sha256 == digests
    x, y = np.concatenate([series, series]), np.array([1, 0, 1, 1, 0, 1])
    np.savez(tmp_path / "Other.npz", x=x, y=y, train=3)
    other = read_aeon("Other", tmp_path)
    for a, b in zip((train, test), other):
        np.testing.assert_allclose(a.values, b.values, atol=1e-12)
        np.testing.assert_array_equal(a.labels, b.labels)
        assert a.classes == b.classes
    sums = place / "SHA256SUMS"
    sums.write_text("".join(f"{d} *{name}\n" for name, d in digests.items()))
    read_aeon("Small", tmp_path)
    files["Small_TEST.ts"].write_text(files["Small_TEST.ts"].read_text() + "\n")
    with pytest.raises(ValueError, match=r"Small_TEST\.ts is not the file .* expected"):
        read_aeon("Small", tmp_path)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (dict(train=0), "between 1"),
        (dict(train=6), "between 1"),
        (dict(y=np.zeros(5)), "expected `x`"),
        (dict(x=np.full((6, 5, 2), np.nan)), "missing values"),
    ],
    ids=str,
)
def test_bad_arrays_of_a_set(tmp_path, change, match):
    good = dict(x=np.zeros((6, 5, 2)), y=np.arange(6) % 2, train=3)
    np.savez(tmp_path / "Bad.npz", **good | change)
    with pytest.raises(ValueError, match=match):
        read_aeon("Bad", tmp_path)
    np.savez(tmp_path / "Bad.npz", x=good["x"])
    with pytest.raises(ValueError, match="must hold arrays"):
        read_aeon("Bad", tmp_path)
