"""The commands for own data, on small files; and one sentence for each mistake."""

import datetime
import decimal
import pathlib
import signal
import struct
import subprocess
import sys
import warnings

import jax
import numpy as np
import pytest


pa = pytest.importorskip("pyarrow")
pytest.importorskip("sklearn")
pytest.importorskip("tyro")
pytest.importorskip("matplotlib").use("agg")

import pyarrow.csv  # noqa: E402
import pyarrow.parquet  # noqa: E402

import arborax as abx  # noqa: E402
import arborax.cli._own_data  # noqa: E402
from arborax.cli import main  # noqa: E402
from arborax.cli._understood import as_stamp  # noqa: E402
from arborax.estimators import load_estimator, SignatureFeatures  # noqa: E402


# Two steps teach nothing, and the estimators say so.
pytestmark = pytest.mark.filterwarnings("ignore:nothing was learned")
COLUMNS = "--time t --group id --channels price volume"
TRAIN = "--model gru --steps 2 --batch-size 8 --no-progress"


@pytest.fixture
def frame(rng):
    """Twelve groups of 5 to 7 rows, with targets and a missing value."""
    rows = []
    for k in range(12):
        x = np.cumsum(rng.normal(size=(5 + k % 3, 2)), axis=0)
        kind = "up" if k % 2 else "down"
        rows += [(f"g{k}", 0.5 * i, *x[i], kind, 0.1 * k) for i in range(len(x))]
    names = ["id", "t", "price", "volume", "kind", "size"]
    data = dict(zip(names, map(list, zip(*rows))))
    data["volume"][3] = None
    return data


@pytest.fixture
def here(frame, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("a.csv", frame)
    return tmp_path


def write(file, frame):
    table = pa.table(frame)
    if file.endswith(".csv"):
        pyarrow.csv.write_csv(table, file)
    else:
        pyarrow.parquet.write_table(table, file)


def run(text):
    main(text.split())


def refusal(text):
    """The sentence with which a command ends."""
    with pytest.raises(SystemExit) as caught:
        run(text)
    message = str(caught.value)
    assert "\n" not in message and len(message) < 320, message
    return message


def test_dry_run_shows_what_was_understood(here, capsys):
    run(f"fit a.csv --task classify {COLUMNS} --target kind --dry-run")
    shown = capsys.readouterr().out
    for text in ("rows  72", "12 groups of 5 to 7 rows", "column 't', 0 to 3"):
        assert text in shown
    assert "1 missing" in shown and "down (36 rows), up (36 rows)" in shown
    assert "(12, 7, 2)" in shown
    assert [file.name for file in here.iterdir()] == ["a.csv"]


def test_fit_and_predict_a_class(here, frame, capsys):
    run(f"fit a.csv --task classify {COLUMNS} --target kind {TRAIN}")
    assert "accuracy, 2 groups held out: " in capsys.readouterr().out
    page = pathlib.Path("model.html").read_text()
    assert "<td>held out</td><td>2</td>" in page
    assert page.count("data:image/png;base64") >= 1 and "src='http" not in page
    assert not pathlib.Path("model.checkpoints").exists()
    write("b.parquet", {name: frame[name] for name in frame if name != "kind"})
    run("predict model.abx b.parquet")
    found = pyarrow.csv.read_csv("predictions.csv")
    model = load_estimator("model.abx")
    data = {name: frame[name] for name in ("id", "t", "price", "volume")}
    paths = abx.SampledPath.from_dataframe(pa.table(data), time="t", group="id")
    assert found["prediction"].to_pylist() == model.predict(paths).tolist()
    assert found["id"].to_pylist() == list(dict.fromkeys(frame["id"]))

    lacking = {name: frame[name] for name in ("id", "t", "price")}
    write("c.csv", lacking)
    message = refusal("predict model.abx c.csv")
    assert "no column 'volume'" in message and "price, volume" in message
    assert "SequenceClassifier" in refusal("sample model.abx")


KILLED = """
import os, signal, sys
from arborax.cli import main
from arborax.training import FileCheckpoints

write = FileCheckpoints.save

def save(self, step, *state):
    write(self, step, *state)
    if step == 10:
        os.kill(os.getpid(), signal.SIGKILL)

FileCheckpoints.save = save
main(sys.argv[1:])
"""


def test_killed_and_resumed(here, frame, monkeypatch):
    """A process that is killed in mid-training loses nothing: all bits are those of a
    run that was left alone."""
    command = f"fit a.csv --task forecast {COLUMNS} --model gru --batch-size 4"
    command += " --steps 16 --no-progress --out"
    run(f"{command} quiet.abx")
    monkeypatch.setenv("JAX_ENABLE_X64", "1")
    arguments = [sys.executable, "-c", KILLED, *command.split(), "killed.abx"]
    child = subprocess.run(arguments, capture_output=True, text=True)
    assert child.returncode == -signal.SIGKILL, child.stderr
    assert not pathlib.Path("killed.abx").exists()
    assert "other learning_rate" in refusal(
        f"{command} killed.abx --resume --learning-rate 0.1"
    )
    write("a.csv", changed(frame, "price", 5, 3.0))
    assert "other data" in refusal(f"{command} killed.abx --resume")
    write("a.csv", frame)
    run(f"{command} killed.abx --resume")
    quiet, resumed = (pathlib.Path(f"{name}.abx") for name in ("quiet", "killed"))
    assert quiet.read_bytes() == resumed.read_bytes()


def test_a_model_of_a_newer_version(here):
    run(f"fit a.csv --task regress {COLUMNS} --target size {TRAIN}")
    raw = bytearray(pathlib.Path("model.abx").read_bytes())
    (version,) = struct.unpack_from("<I", raw, 8)
    struct.pack_into("<I", raw, 8, version + 1)
    pathlib.Path("new.abx").write_bytes(raw)
    assert "newer arborax" in refusal("predict new.abx a.csv")


def test_forecast_refuses_the_past(here, frame):
    run(f"fit a.csv --task forecast {COLUMNS} {TRAIN} --horizon 2")
    run("predict model.abx a.csv --out next.parquet")
    assert pyarrow.parquet.read_table("next.parquet").shape == (24, 4)
    write("b.csv", frame | dict(t=[t - 9 for t in frame["t"]]))
    message = refusal("predict model.abx b.csv")
    assert "start at -9" in message and "before the training data" in message


@pytest.mark.slow
def test_generate_and_sample(here, rng, capsys):
    x, t = np.cumsum(rng.normal(size=(16, 9, 1)), axis=1), np.linspace(0, 1, 9)
    np.savez("x.npz", x=x, t=t)
    run(f"fit x.npz --task generate --prefix 4 {TRAIN}")
    run("sample model.abx --count 5 --out made.npz")
    with np.load("made.npz") as made:
        assert made["x"].shape == (5, 9, 1)
    assert "before the training times" in refusal("sample model.abx --times -1 0 1")

    np.savez("given.npz", x=x[:2, :3], t=t[:3])
    run("sample model.abx --count 5 --given given.npz")
    made = pyarrow.csv.read_csv("samples.csv")
    assert made["given"].to_pylist() == [0] * 45 + [1] * 45
    values = made["x0"].to_numpy().reshape(2, 5, 9)
    begun = np.broadcast_to(x[:2, None, :3, 0], (2, 5, 3))
    np.testing.assert_allclose(values[..., :3], begun, rtol=1e-12)
    np.savez("late.npz", x=x[:2, :3], t=2 * t[:3])
    refused = refusal("sample model.abx --given late.npz")
    assert "first times of the paths, 0, 0.125, 0.25" in refused
    np.savez("long.npz", x=x[:2, :6], t=t[:6])
    refused = refusal("sample model.abx --given long.npz")
    assert "long.npz: beginnings have 6 rows" in refused and "`--prefix`" in refused
    np.savez("uneven.npz", x=x[:2, :3], t=t[:3], lengths=np.array([3, 2]))
    assert "same number" in refusal("sample model.abx --given uneven.npz")


@pytest.mark.filterwarnings("always:the data")
def test_a_warning_is_one_line(here, capsys, monkeypatch):
    def fit(command):
        warnings.warn("the data are few")

    monkeypatch.setattr(arborax.cli._own_data, "fit", fit)
    run("fit a.csv --task classify")
    assert capsys.readouterr().err == "warning: the data are few\n"


def test_features_in_chunks_equal_those_in_memory(here, frame, capsys):
    run(f"features a.csv {COLUMNS} --rows 9 --save f.abx --no-progress")
    found = pyarrow.parquet.read_table("features.parquet")
    data = {name: frame[name] for name in ("id", "t", "price", "volume")}
    paths = abx.SampledPath.from_dataframe(pa.table(data), time="t", group="id")
    features = SignatureFeatures().fit(paths)
    assert (
        found.column_names[1:]
        == features.get_feature_names_out(["price", "volume"]).tolist()
    )
    values = np.stack([found[name].to_numpy() for name in found.column_names[1:]], 1)
    np.testing.assert_allclose(values, features.transform(paths), atol=1e-12)

    run("features a.csv --model f.abx --rows 30 --out again.csv --no-progress")
    again = pyarrow.csv.read_csv("again.csv")
    assert again["id"].to_pylist() == found["id"].to_pylist()
    np.testing.assert_allclose(again["price"].to_numpy(), found["price"].to_numpy())


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_features_of_one_path_are_not_cut(here, frame, suffix):
    """Without a column of groups the file is one path, however few rows are read at a
    time."""
    data = dict(price=frame["price"][:30], size=np.linspace(0, 1, 30))
    write(f"one.{suffix}", data)
    run(f"features one.{suffix} --rows 9 --no-progress --out made.parquet")
    found = pyarrow.parquet.read_table("made.parquet")
    assert found["path"].to_pylist() == [0]
    x = np.stack([data["price"], data["size"]], axis=1)[None]
    expected = SignatureFeatures().fit_transform(x)[0]
    values = [found[name][0].as_py() for name in found.column_names[1:]]
    np.testing.assert_allclose(values, expected, atol=1e-12)


def test_features_refuse_a_group_that_is_spread(here, frame):
    write("b.csv", frame | dict(id=["g0" if k == "g11" else k for k in frame["id"]]))
    message = refusal(f"features b.csv {COLUMNS} --rows 9 --no-progress")
    assert "'g0' continues in row 65" in message
    assert not pathlib.Path("features.parquet").exists()


def test_classes_that_were_never_seen(here, frame, capsys):
    run(f"fit a.csv --task classify {COLUMNS} --target kind {TRAIN}")
    kinds = {"up": "up", "down": "flat"}
    write("b.csv", frame | dict(kind=[kinds[k] for k in frame["kind"]]))
    run("predict model.abx b.csv")
    shown = capsys.readouterr().out
    assert "training had not: flat; the model was fitted for down, up" in shown
    assert "score 0." in shown or "score 0\n" in shown
    write("b.csv", frame | dict(kind=["flat"] * len(frame["kind"])))
    run("predict model.abx b.csv")
    shown = capsys.readouterr().out
    assert "training had not: flat" in shown and "score" not in shown


@pytest.mark.parametrize("task", ["classify", "regress"])
def test_an_npz_file_without_targets(here, task):
    np.savez("noy.npz", x=np.arange(24.0).reshape(6, 4, 1))
    message = refusal(f"fit noy.npz --task {task}")
    assert (
        f"noy.npz has no array `y`, one target for each path, which --task {task}"
        in (message)
    )


def test_compare(here, rng, capsys):
    x = np.cumsum(rng.normal(size=(2, 16, 6, 1)), axis=2)
    np.savez("x.npz", x=x[0])
    np.savez("y.npz", x=5 * x[1])
    run("compare x.npz y.npz --permutations 99")
    p_value = float(capsys.readouterr().out.split("p = ")[1].split()[0])
    assert p_value <= 0.05
    assert pathlib.Path("comparison.html").read_text().count("data:image/png") == 2
    np.savez("z.npz", x=np.concatenate([x[1], x[1]], axis=-1))
    assert "z.npz has x0, x1" in refusal("compare x.npz z.npz")


def changed(frame, column, row, value):
    values = [str(v) if isinstance(value, str) else v for v in frame[column]]
    values[row] = value
    return frame | {column: values}


MISTAKES = {
    "no column 'cost'": ("--channels cost", lambda f: f),
    "column 'price' holds 'cheap' in row 7": (
        "--channels price",
        lambda f: changed(f, "price", 7, "cheap"),
    ),
    "column 'price' is constant, 1": (
        "--channels price",
        lambda f: f | dict(price=[1.0] * len(f["id"])),
    ),
    "group 'alone' has one row only, row 71": (
        "--channels price",
        lambda f: changed(f, "id", 71, "alone"),
    ),
    "column 'kind' has only one class, up": (
        "--channels price",
        lambda f: f | dict(kind=["up"] * len(f["id"])),
    ),
    "column 'kind' has 'down' in row 0 and 'odd' in row 1": (
        "--channels price",
        lambda f: changed(f, "kind", 1, "odd"),
    ),
    "the time in row 2 is earlier than that in row 1": (
        "--channels price",
        lambda f: changed(f, "t", 2, 0.25),
    ),
    "column 'id' has no value in row 5": (
        "--channels price",
        lambda f: changed(f, "id", 5, None),
    ),
    "column 'kind' has no value in row 6": (
        "--channels price",
        lambda f: changed(f, "kind", 6, None),
    ),
    "column 'price' holds infinity in row 4": (
        "--channels price",
        lambda f: changed(f, "price", 4, float("inf")),
    ),
}


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("sentence", MISTAKES)
def test_one_sentence_for_each_mistake(here, frame, sentence, suffix):
    options, change = MISTAKES[sentence]
    write(f"b.{suffix}", change(frame))
    data = f"b.{suffix} --time t --group id --target kind {options}"
    message = refusal(f"fit {data} --task classify --dry-run")
    assert message.startswith(f"b.{suffix}") and sentence in message, message


FILES = {
    "void.csv": (b"", "void.csv cannot be read: Empty CSV file."),
    "head.csv": (b"id,t,x\n", "head.csv has no rows."),
    "short.csv": (b"id,t,x\na,0,1\na,1\na,2,3\n", "row 1 has 2 values"),
    "two.csv": (b"id,t,x,x\na,0,1,2\n", "two.csv has 2 columns 'x'"),
    "late.csv": (b"id,t,x\na,0,1\na,soon,2\n", "column 't' holds 'soon' in row 1"),
    "latin.csv": (b"id,t,x\n\xe9,0,1\n", "column 'id' is not text in UTF-8"),
    "torn.parquet": (b"PAR1", "torn.parquet cannot be read"),
    "torn.npz": (b"PK", "torn.npz is not an npz file"),
}


@pytest.mark.parametrize("name", FILES)
def test_one_sentence_for_each_broken_file(here, name):
    content, sentence = FILES[name]
    pathlib.Path(name).write_bytes(content)
    columns = "" if name.endswith("npz") else COLUMNS.replace("price volume", "x")
    message = refusal(f"fit {name} --task forecast {columns} --dry-run")
    assert sentence in message and name in message, message


def test_lengths_of_an_npz_file(here):
    for lengths in ([3, 0], [3, 5], [3.0, 2.0]):
        np.savez("x.npz", x=np.ones((2, 4, 1)), lengths=np.array(lengths))
        message = refusal("fit x.npz --task forecast --dry-run")
        assert "x.npz: `lengths` must be whole numbers from 1 to 4" in message


def test_dates_of_any_kind_have_one_order():
    """A day is its midnight, and a zone is taken into account."""
    day = datetime.date(2024, 1, 2)
    noon = datetime.datetime(2024, 1, 2, 12)
    east = datetime.timezone(datetime.timedelta(hours=9))
    assert as_stamp(day) == as_stamp(datetime.datetime(2024, 1, 2))
    assert as_stamp(day) < as_stamp(noon) == as_stamp(noon.replace(tzinfo=datetime.UTC))
    assert as_stamp(noon.replace(tzinfo=east)) == "2024-01-02 03:00:00"


def test_stamps_in_seconds_of_the_epoch(here, frame):
    """Single precision could not tell them apart."""
    write("b.parquet", frame | dict(t=[1.7e9 + t for t in frame["t"]]))
    run(f"features a.csv {COLUMNS} --no-progress --out a.parquet")
    with jax.enable_x64(False):
        run(f"features b.parquet {COLUMNS} --no-progress --out late.parquet")
    found, late = map(pyarrow.parquet.read_table, ("a.parquet", "late.parquet"))
    for name in found.column_names[1:]:
        np.testing.assert_allclose(late[name], found[name], rtol=1e-4, atol=1e-5)


def test_values_far_from_zero(here, frame, capsys):
    """Prices of a billion: features, forecasts and reports are those near zero."""
    far = [p + 1e9 for p in frame["price"]]
    write("b.csv", frame | dict(price=far))
    with jax.enable_x64(False):
        for name in "ab":
            options = f"{COLUMNS} --no-progress --out {name}.parquet --save {name}.abx"
            run(f"features {name}.csv {options} --rows 9")
            run(f"fit {name}.csv --task forecast {COLUMNS} {TRAIN} --out m{name}.abx")
            run(f"predict m{name}.abx {name}.csv --out p{name}.parquet")
        run("features b.csv --model b.abx --out c.parquet --no-progress")
        run(f"compare b.csv b.csv {COLUMNS} --permutations 9")
    read = pyarrow.parquet.read_table
    a, b, c = map(read, ("a.parquet", "b.parquet", "c.parquet"))
    for name in a.column_names[1:]:
        np.testing.assert_allclose(b[name], a[name], rtol=1e-3, atol=1e-4)
        np.testing.assert_array_equal(c[name], b[name])
    near, there = read("pa.parquet")["price"], read("pb.parquet")["price"]
    np.testing.assert_allclose(np.array(there) - 1e9, near, rtol=1e-3, atol=1e-3)
    assert "rounds to multiples" not in capsys.readouterr().err


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()], ids=str)
def test_times_in_texts(here, frame, capsys, kind):
    """Parquet files may hold dates or numbers as texts."""
    days = [f"2024-01-{1 + int(2 * t):02}" for t in frame["t"]]
    write("b.parquet", frame | dict(t=pa.array(days, kind)))
    run(f"fit b.parquet --task forecast {COLUMNS} --dry-run")
    assert "2024-01-01 00:00:00 to 2024-01-07" in capsys.readouterr().out
    texts = pa.array([str(t) for t in frame["t"]], kind)
    write("c.parquet", frame | dict(t=texts))
    run(f"fit c.parquet --task forecast {COLUMNS} --dry-run")
    assert "column 't', 0 to 3" in capsys.readouterr().out


def test_times_with_zones_in_texts(here, frame, capsys):
    """Clocks go forward on 31 March 2024: that day has 23 hours."""
    days = [
        f"2024-03-{30 + k}T00:00:00+0{1 + (k == 2)}:00"
        if k < 2
        else f"2024-04-0{k - 1}T00:00:00+02:00"
        for k in (int(2 * t) for t in frame["t"])
    ]
    write("b.parquet", frame | dict(t=days))
    write("b.csv", frame | dict(t=days))
    for suffix in ("csv", "parquet"):
        run(f"features b.{suffix} {COLUMNS} --no-progress --unit h --out {suffix}.csv")
        text = capsys.readouterr().out
        assert "2024-03-29 23:00:00+00:00 to 2024-04-0" in text
    assert (
        pathlib.Path("csv.csv").read_bytes() == pathlib.Path("parquet.csv").read_bytes()
    )
    write("b.parquet", frame | dict(t=[*days[:-1], "2024-05-01"]))
    message = refusal(f"features b.parquet {COLUMNS}")
    assert "holds a date with a zone in row 0 and a date in row 71" in message


def test_nanoseconds_of_the_epoch(here, frame, capsys):
    """Whole numbers keep all digits, where float64 would count in 256 ns."""
    late = [1_700_000_000_000_000_001 + int(2 * t) for t in frame["t"]]
    write("b.parquet", frame | dict(t=late))
    run(f"features a.csv {COLUMNS} --no-progress --out a.parquet")
    run(f"features b.parquet {COLUMNS} --no-progress --out late.parquet")
    found, late = map(pyarrow.parquet.read_table, ("a.parquet", "late.parquet"))
    for name in found.column_names[1:]:
        np.testing.assert_allclose(late[name], found[name], atol=1e-12)


def test_whole_numbers_beyond_float64(here, frame):
    """A channel of 2**60 and its neighbours is read in double precision."""
    write("b.parquet", frame | dict(price=[2**60 + 4096 * k for k in range(72)]))
    run(f"fit b.parquet --task forecast {COLUMNS} --dry-run")


def test_labels_are_as_written(here, frame):
    """`007` and `7` are two groups; whole numbers stay numbers."""
    names = {f"g{k}": f"{k:03}" if k < 6 else str(k - 6) for k in range(12)}
    write("b.csv", frame | dict(id=[names[k] for k in frame["id"]]))
    plain = {f"g{k}": str(k) for k in range(12)}
    write("c.csv", frame | dict(id=[plain[k] for k in frame["id"]]))
    for name in "abc":
        run(f"features {name}.csv {COLUMNS} --no-progress --out {name}.parquet")
    a, b, c = (pyarrow.parquet.read_table(f"{name}.parquet") for name in "abc")
    assert b["id"].to_pylist() == list(names.values())
    assert c["id"].to_pylist() == list(range(12))
    assert a.drop_columns(["id"]) == b.drop_columns(["id"]) == c.drop_columns(["id"])


@pytest.mark.parametrize("label", ["A1", "07"])
def test_labels_that_change_their_kind(here, label):
    """Far below the first block, which Arrow takes the types from."""
    rows = [f"{k // 2},{k % 2},{k % 7}\n" for k in range(300_000)]
    rows += [f"{label},0,1\n", f"{label},1,2\n"]
    pathlib.Path("b.csv").write_text("id,t,x\n" + "".join(rows))
    message = refusal("features b.csv --time t --group id --no-progress")
    assert message == (
        f"b.csv: column 'id' holds '{label}' in row 300000, after whole numbers. Write "
        "labels in one way."
    )


@pytest.mark.parametrize("name", ["", "Unnamed: 0", "__index_level_0__"])
def test_an_index_that_pandas_wrote_is_no_channel(here, frame, capsys, name):
    table = {key: frame[key] for key in ("id", "t", "price", "volume")}
    data = {name: list(range(72))} | table
    write("b.parquet" if name else "b.csv", data)
    file = "b.parquet" if name else "b.csv"
    run(f"fit {file} --task forecast --time t --group id {TRAIN}")
    text = capsys.readouterr().out
    assert "channel 'price'" in text and text.count("channel '") == 2
    run(f"predict model.abx {file} --out p.csv")


def test_numbers_and_classes_of_other_types(here, frame, rng):
    """Decimals are numbers, half precision is read, and dates are no classes."""
    size = [decimal.Decimal(str(round(v, 1))) for v in frame["size"]]
    days = [datetime.datetime(2024, 1, 1 + (k == "up")) for k in frame["kind"]]
    write("b.parquet", frame | dict(size=size, kind=days))
    run(f"fit b.parquet --task regress --target size {COLUMNS} --dry-run")
    text = refusal(f"fit b.parquet --task classify --target kind {COLUMNS} --dry-run")
    assert "'kind' holds '2024-01-01 00:00:00', of type datetime." in text
    np.savez("x.npz", x=rng.normal(size=(12, 6, 2)).astype(np.float16))
    run("fit x.npz --task forecast --dry-run")


def test_dates_are_not_compared_with_numbers(here, frame):
    """Their unit would be another."""
    days = [datetime.datetime(2024, 1, 1 + int(2 * t)) for t in frame["t"]]
    write("b.csv", frame | dict(t=days))
    run(f"fit b.csv --task regress --target size {COLUMNS} {TRAIN}")
    run(f"features b.csv {COLUMNS} --no-progress --save units.abx")
    for command in ("predict model.abx a.csv", "features a.csv --model units.abx"):
        text = refusal(command)
        assert "a.csv: column 't' holds numbers" in text and "both be" not in text
        assert "both must be dates, or both numbers" in text
    assert "must both be dates" in refusal(f"compare a.csv b.csv {COLUMNS}")


def test_data_are_not_overwritten(here):
    before = pathlib.Path("a.csv").read_bytes()
    run(f"fit a.csv --task forecast {COLUMNS} {TRAIN}")
    for command in (
        f"features a.csv {COLUMNS} --out a.csv",
        f"features a.csv {COLUMNS} --save ./a.csv",
        f"fit a.csv --task forecast {COLUMNS} --out a.csv",
        "predict model.abx a.csv --out a.csv",
    ):
        assert "a.csv holds the data; give another --" in refusal(command)
    assert pathlib.Path("a.csv").read_bytes() == before


def test_parts_of_a_parquet_file_are_not_kept(here):
    """Arrow holds a part at a time, however long the file."""
    from arborax.cli._tables import find_columns, read_chunks

    file, rows = pathlib.Path("long.parquet"), 400_000
    data = dict(id=np.arange(rows) // 10, x=np.arange(rows) % 7.0)
    pyarrow.parquet.write_table(pa.table(data), file, row_group_size=20_000)
    columns = find_columns(file, group="id", channels=("x",))
    before, held = pa.total_allocated_bytes(), []
    for _, _ in read_chunks(file, columns, 20_000):
        held.append(pa.total_allocated_bytes() - before)
    assert len(held) > 19
    assert held[-2] < 1.2 * max(held[:5])


def test_mistakes_in_the_command(here):
    pathlib.Path("head.csv").write_text("id,t,x\n")
    data = "--time t --group id --channels x --no-progress"
    assert refusal(f"features head.csv {data}") == "head.csv has no rows."
    assert "`rows` must be at least 1" in refusal(f"features head.csv {data} --rows 0")
    twice = refusal("fit a.csv --task classify --group id --time t --target t")
    assert "column 't' is asked for twice" in twice
    text = f"fit a.csv --task regress {COLUMNS} --target kind --dry-run"
    assert "'kind' holds 'down'" in refusal(text)
    assert "needs --target" in refusal("fit a.csv --task classify --group id")
    assert "no target" in refusal("fit a.csv --task forecast --target kind")
    assert "--group" in refusal("fit a.csv --task generate --channels price")
    assert "paths apart by --group" in refusal(
        "fit a.csv --task forecast --time t --channels price"
    )
    forecast = f"fit a.csv --task forecast {COLUMNS} --no-progress"
    assert "`steps` must be at least 1" in refusal(f"{forecast} --steps 0")
    assert "there is no file b.csv" in refusal("fit b.csv --task forecast")
    pathlib.Path("folder.csv").mkdir()
    assert "there is no file folder.csv" in refusal("fit folder.csv --task forecast")
    pathlib.Path("a.xls").write_text("")
    assert "unknown format '.xls'" in refusal("fit a.xls --task forecast")
