"""Fuzz of simulators, readers and windows of data; see `tests/test_fuzz.py`.

Each input is a good call, of which up to two arguments are replaced. Readers get files
with damaged lines. A file that does not exist is a `FileNotFoundError`.
"""

import dataclasses
import pathlib
import tempfile

import hypothesis.strategies as st
import jax
import numpy as np
import pytest
from test_fuzz import (
    as_users_have_it as as_users_have_it,
    fuzz,
    keys,
    replaced,
    SPOIL,
    spoilt,
)

from arborax import datasets as ds


SHORT, LONG = 20, 400
KEY = jax.random.key(0)
RNG = np.random.default_rng(0)

numbers = st.sampled_from(
    [0.5, 1, 0.0, -1.0, 2.0, 1e-30, 1e30, np.nan, np.inf, "1", None, [1.0], 1j, True]
)
wholes = st.sampled_from([1, 2, 3, 0, -1, 2.0, "2", None, True, np.int64(2), [1]])
dtypes = st.sampled_from([np.float32, np.float64, np.float16, int, complex, "typo", 3])
fractions = st.sampled_from([0.5, 0.0, 1.0, -0.1, np.nan, "0.5", None, 2])


def of_law(kind):
    """A law with some of its parameters replaced, and a sample of it."""
    odd = {"reading": st.sampled_from(["ambient", "typo", None])}
    odd["centre"] = st.sampled_from([(1.0,) * 6, (1.0,), None, 3, ("a",) * 6])
    names = [field.name for field in dataclasses.fields(kind) if field.name != "steps"]
    wild = {name: odd.get(name, numbers) for name in names} | {"steps": wholes}
    wild |= {"key": keys, "paths": wholes, "dtype": dtypes}
    good = dict(steps=3, key=KEY, paths=2, dtype=np.float64)

    def case(key, paths, dtype, **options):
        data = kind(**options).sample(paths, key=key, dtype=dtype)
        return data.ts, data.values, data.brackets

    return kind.__name__, case, replaced(good, wild)


def rotations(kind, **more):
    def case(trajectories, seed, **options):
        out = kind(**options).sample(trajectories, seed=seed)
        return out.ts, out.rotations, out.velocities

    wild = dict(step=numbers, times=wholes, substeps=wholes, trajectories=wholes)
    wild |= dict(seed=st.sampled_from([0, -1, 1.5, "1", None, KEY])) | more
    good = dict(times=3, trajectories=2, seed=0)
    return kind.__name__, case, replaced(good, wild)


def cut(data, train, validation):
    parts = data.split(train, validation)
    return [part.values for part in parts]


DATA = ds.RoughBergomi(steps=3, eta=0.0).sample(12, key=KEY)
Q = RNG.normal(size=(6, 4))
Q /= np.linalg.norm(Q, axis=1, keepdims=True)
STAMPS = np.arange(6) / 20
RECORDING = ds.make_recording("one", STAMPS, Q)
SERIES = [ds.CovarianceSeries(ds.rolling_covariances(RNG.normal(size=(60, 2)), 4), 4)]
OBSERVED = RNG.normal(size=(12, 2))

# Files: good lines, of which some are replaced.
LINES = {
    ".tum": ["# t x y z qx qy qz qw", "0 0 0 0 0 0 0 1", "1 0 0 0 0 0 0 1"],
    ".euroc": ["#t,x,y,z,w", "1,0,0,0,1,0,0,0,9", "2,0,0,0,1,0,0,0,9"],
    ".vicon": ["s,n,o", "0,1,box1,0,0,0,0,0,0,1", "1,1,box1,0,0,0,0,0,0,1"],
    ".ts": ["@classLabel true a b", "@data", "1,2,3:4,5,6:a", "1,2:3,4:b"],
    ".stocks": ["d,AAPL,JPM"] + [f"{k},{1 + k % 3},{2 + k % 5}" for k in range(9)],
    ".emg": ["t" + ",c" * 8 + ",l,e"]
    + [
        f"{k}," + ",".join(str((k * j) % 7) for j in range(1, 9)) + ",1,x"
        for k in range(9)
    ],
}
READERS = {
    ".tum": lambda file: ds.read_tum(file),
    ".euroc": lambda file: ds.read_euroc(file),
    ".vicon": lambda file: ds.read_vicon(file),
    ".ts": lambda file: ds.read_ts(file),
    ".stocks": lambda file: ds.stock_covariances(("AAPL", "JPM"), 4, file),
    ".emg": lambda file: ds.emg_covariances((0, 1), 4, file),
}
JUNK = st.sampled_from(
    [
        "",
        ",",
        ":",
        "nan,nan,nan",
        "1 2 3",
        "1,2",
        "@",
        "@classLabel",
        "@classLabel false",
    ]
    + ["@timestamps true", "@timestamps", "\x00", "#", "1e999 " * 8, "é", "0 " * 8]
    + [
        "1,2:3:c",
        "nan,1:1,2:a",
        ":a",
        "inf,0,0,0,1,0,0,0",
        "1,-1,0",
        "0,0,0",
        "x" * 999,
    ]
    + ["1.5,0,0,0,1,0,0,0,9", "1e30,0,0,0,1,0,0,0,9", "inf,1,box1,0,0,0,0,0,0,1"]
)


@st.composite
def files(draw, suffix):
    lines = list(LINES[suffix])
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, len(lines)))
        how = draw(st.sampled_from(["insert", "replace", "drop", "cut"]))
        if how == "insert" or place == len(lines):
            lines.insert(place, draw(JUNK))
        elif how == "replace":
            lines[place] = draw(JUNK)
        elif how == "drop":
            del lines[place]
        else:
            lines[place] = lines[place][: draw(st.integers(0, len(lines[place])))]
    raw = "\n".join(lines).encode()
    if draw(st.integers(0, 9)) == 0:
        raw = draw(st.sampled_from([b"", b"\xff\xfe\x00", raw[: len(raw) // 2]]))
    return raw


def reader(suffix):
    def case(raw):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / f"file{suffix}"
            file.write_bytes(raw)
            out = READERS[suffix](file)
        out = out if isinstance(out, list) else [out]
        return [value for part in out for value in vars(part).values()]

    return f"read {suffix}", case, st.fixed_dictionaries(dict(raw=files(suffix)))


def broad(**fields):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "trial.npz"
        np.savez(file, **{k: v for k, v in fields.items() if v is not None})
        out = ds.read_broad(file)
    return out.ts, out.quaternions


FLAT = {
    k: f for k, f in SPOIL.items() if k not in ("ragged", "object", "frame", "dict")
}

CASES = [
    of_law(kind)
    for kind in (
        ds.RoughBergomi,
        ds.OrnsteinUhlenbeck,
        ds.SPDDiffusion,
    )
]
CASES += [
    rotations(
        ds.FreeRotation,
        velocity=numbers,
        slowest=st.sampled_from([0.1, 0.0, -1.0, np.nan, np.inf, 1e30, "a", None]),
        kinematics=st.sampled_from(["mixed", "typo", None]),
        inertia=st.sampled_from([(1.0, 1.0, 1.0), (1.0,), None, (0.0, 1.0, 1.0), "abc"])
        | st.just((1.0, np.nan, np.inf)),
    ),
    (
        "split",
        cut,
        replaced(
            dict(data=DATA, train=0.5, validation=0.25),
            dict(train=fractions, validation=fractions),
        ),
    ),
    (
        "dataset",
        lambda **options: ds.dataset(**options).values,
        replaced(
            dict(law=ds.RoughBergomi(steps=2), paths=2, folder=tempfile.mkdtemp()),
            dict(
                law=st.sampled_from([ds.RoughBergomi, None, ds.RoughBergomi(xi=-1.0)]),
                paths=wholes,
                seed=wholes,
                dtype=dtypes,
            ),
        ),
    ),
    (
        "make_recording",
        lambda **options: vars(ds.make_recording(**options)),
        replaced(
            dict(name="one", ts=STAMPS, q=Q),
            dict(ts=spoilt(st.just(STAMPS)), q=spoilt(st.just(Q))),
        ),
    ),
    (
        "resample",
        ds.resample,
        replaced(
            dict(recording=RECORDING, rate=10.0),
            dict(rate=numbers, gap=numbers)
            | dict(recording=st.sampled_from([None, STAMPS, "one"])),
        ),
    ),
    (
        "recorded_windows",
        ds.recorded_windows,
        replaced(
            dict(pieces=[np.tile(np.eye(3), (9, 1, 1))], points=3),
            dict(points=wholes, stride=wholes)
            | dict(pieces=st.sampled_from([[], None, 3, [np.ones(3)], [None], ["a"]])),
        ),
    ),
    (
        "integrate_gyroscope",
        ds.integrate_gyroscope,
        replaced(
            dict(velocities=OBSERVED @ np.ones((2, 3)), step=0.1),
            dict(velocities=spoilt(st.just(np.ones((4, 3)))), step=numbers),
        ),
    ),
    (
        "ledoit_wolf",
        ds.ledoit_wolf,
        replaced(dict(x=OBSERVED), dict(x=spoilt(st.just(OBSERVED)))),
    ),
    (
        "rolling_covariances",
        ds.rolling_covariances,
        replaced(
            dict(x=OBSERVED, window=4),
            dict(x=spoilt(st.just(OBSERVED)), window=wholes, hop=wholes),
        ),
    ),
    (
        "covariance_windows",
        ds.covariance_windows,
        replaced(
            dict(series=SERIES, steps=2),
            dict(train=fractions, validation=fractions, hop=wholes, steps=wholes)
            | dict(series=st.sampled_from([[], None, [None], SERIES[0], [OBSERVED]])),
        ),
    ),
    (
        "SPDDiffusion.brackets",
        ds.SPDDiffusion(steps=2).brackets,
        replaced(
            dict(values=ds.SPDDiffusion(steps=2).sample(2, key=KEY).values),
            dict(
                values=spoilt(st.just(np.ones((2, 3, 6)))),
                coordinates=st.sampled_from(["log", "typo", None]),
                stride=wholes,
            ),
        ),
    ),
    (
        "read_broad",
        broad,
        replaced(
            dict(opt_quat=Q, sampling_rate=np.array(9.0), movement=np.ones(6)),
            dict(
                opt_quat=spoilt(st.just(Q), FLAT),
                sampling_rate=st.sampled_from(
                    [0.0, np.nan, -1.0, "a", [1.0, 2.0], None]
                ),
                movement=st.sampled_from([np.ones(3), np.zeros(6), None, "a"]),
            ),
        ),
    ),
    *(reader(suffix) for suffix in READERS),
    (
        "paths of files",
        lambda read, file: READERS[read](file),
        st.fixed_dictionaries(
            dict(
                read=st.sampled_from(sorted(READERS)),
                file=st.sampled_from([3, 1.5, "no-such-file", "", ".", b"x"]),
            )
        ),
    ),
]
names = pytest.mark.parametrize(
    "name, function, strategies", CASES, ids=[c[0] for c in CASES]
)


@pytest.mark.filterwarnings("ignore")
@names
def test_a_right_answer_or_a_clear_refusal(name, function, strategies):
    fuzz(name, function, strategies, SHORT)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@names
def test_many_inputs(name, function, strategies):
    fuzz(name, function, strategies, LONG)
