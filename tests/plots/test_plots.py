"""Every picture: what is on it, where it is drawn, and what it refuses."""

import inspect
import pathlib
import runpy
import subprocess
import sys

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import pytest
from user_defined import BackwardTrees, BackwardWords

import arborax as abx
from arborax import algebra, plots
from arborax.kernels import TwoSampleResult
from arborax.training import History


ROOT = pathlib.Path(__file__).parents[2]
RNG = np.random.default_rng(0)
PATHS = RNG.normal(size=(40, 11, 2)).cumsum(axis=1)
TS = np.linspace(0, 1, 11)
HISTORY = History(
    loss=list(np.linspace(2, 1, 200)),
    aux={"window": [3.0, 4.0]},
    validation=[{"step": 0, "metric": 2.0}, {"step": 100, "metric": 1.5}],
)
TEST = TwoSampleResult(jnp.asarray(2.0), jnp.asarray(0.01), jnp.linspace(-1.0, 1.0, 99))
TURNS = np.stack(
    [
        [[np.cos(a), -np.sin(a), 0], [np.sin(a), np.cos(a), 0], [0, 0, 1]]
        for a in np.linspace(0, 2, 9)
    ]
)
COVARIANCES = np.stack([np.diag([1.0 + k, 2.0]) for k in range(20)])
ALG = abx.MuntheKaasWright(2, 2)

CALLS = {
    "fan_chart": lambda **ax: plots.fan_chart(PATHS, TS, show=3, **ax),
    "sample_paths": lambda **ax: plots.sample_paths(PATHS, PATHS, TS, **ax),
    "permutation_histogram": lambda **ax: plots.permutation_histogram(TEST, **ax),
    "signature_bars": lambda **ax: plots.signature_bars(np.ones(ALG.size), ALG, **ax),
    "draw_forest": lambda **ax: plots.draw_forest(ALG.basis[-1], **ax),
    "rotations": lambda **ax: plots.rotations(TURNS, **ax),
    "on_sphere": lambda **ax: plots.on_sphere(TURNS[:, 0], **ax),
    "covariance_ellipses": lambda **ax: plots.covariance_ellipses(COVARIANCES, **ax),
    "training_curve": lambda **ax: plots.training_curve(HISTORY, **ax),
}


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def _legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_every_picture_is_tried_and_in_the_gallery():
    public = {name for name, value in vars(plots).items() if inspect.isfunction(value)}
    public -= {"html_image", "html_page"}
    assert public == set(CALLS)
    gallery = runpy.run_path(str(ROOT / "examples" / "gallery.py"))
    assert public <= {picture.__name__ for picture in gallery["PICTURES"]}


@pytest.mark.parametrize("name", CALLS)
def test_draws_on_given_or_new_axes_and_leaves_the_style_alone(name):
    before = dict(plt.rcParams)
    new = CALLS[name]()
    assert isinstance(new, plt.Axes) and plt.get_fignums() == [1]
    figure, given = plt.subplots()
    assert CALLS[name](ax=given) is given and len(plt.get_fignums()) == 2
    assert dict(plt.rcParams) == before
    for ax in (new, given):
        ax.figure.canvas.draw()
        assert ax.has_data()


@pytest.mark.parametrize("name", CALLS)
def test_refuses_what_is_no_axes_before_drawing(name):
    with pytest.raises(TypeError, match="one Matplotlib axes"):
        CALLS[name](ax=plt.figure())


def test_fan_chart_draws_the_quantiles():
    ax = plots.fan_chart(PATHS[..., 0], TS, levels=(0.5,), show=4)
    (band,) = ax.collections
    low, high = np.quantile(PATHS[..., 0], [0.25, 0.75], axis=0)
    corners = band.get_paths()[0].vertices
    for k in range(11):
        column = corners[np.isclose(corners[:, 0], TS[k]), 1]
        np.testing.assert_allclose([column.min(), column.max()], [low[k], high[k]])
    assert len(ax.lines) == 1 + 4 and _legend(ax) == ["50 %", "median"]
    ax = plots.fan_chart(PATHS, names=("price", "volume"))
    assert _legend(ax) == ["price", "volume"] and ax.get_xlabel() == "point"


def test_missing_values_and_padding_are_left_out():
    lengths = np.full(40, 6)
    path = abx.SampledPath(TS, PATHS, lengths=lengths)
    ax = plots.fan_chart(path)
    assert ax.lines[0].get_xdata().max() == TS[5]
    wild = np.where(np.arange(11)[:, None] == 3, 1e6, PATHS)
    mask = np.arange(11) != 3
    path = abx.SampledPath(TS, wild, mask=np.broadcast_to(mask, (40, 11)))
    ax = plots.fan_chart(path)
    assert ax.get_ylim()[1] < 1e3
    ax = plots.sample_paths(path, path, count=2)
    assert len(ax.lines) == 4 and np.isnan(ax.lines[0].get_ydata()[3])


def test_sample_paths_says_which_is_which():
    ax = plots.sample_paths(PATHS[..., :1], PATHS[:3], TS, count=5, channel=0)
    assert len(ax.lines) == 5 + 3 and _legend(ax) == ["data", "generated"]
    np.testing.assert_array_equal(ax.lines[5].get_ydata(), PATHS[0, :, 0])


def test_histogram_holds_all_permutations():
    ax = plots.permutation_histogram(TEST, bins=10)
    assert sum(bar.get_height() for bar in ax.patches) == 99
    assert {line.get_xdata()[0] for line in ax.lines} >= {2.0}
    assert "p = 0.01" in _legend(ax)[-1]


@pytest.mark.parametrize("kind", [abx.Shuffle, abx.Ito, abx.GrossmanLarson])
@pytest.mark.parametrize("primitive", [False, True])
def test_every_coordinate_has_a_bar_and_a_drawn_label(kind, primitive):
    alg = kind(2, 3)
    size = alg.primitive_size if primitive else alg.size
    values = RNG.normal(size=size)
    ax = plots.signature_bars(values, alg)
    np.testing.assert_array_equal([bar.get_height() for bar in ax.patches], values)
    assert len([a for a in ax.artists if "Annotation" in type(a).__name__]) == size
    assert _legend(ax) == ["channel 0", "channel 1"]


def test_labels_show_every_vertex_in_the_colour_of_its_channel():
    alg = abx.MuntheKaasWright(2, 3)
    ax = plots.signature_bars(np.ones(alg.size), alg)
    for artist, key, weight in zip(ax.artists, alg.basis, alg.weights):
        dots = [p for p in artist.offsetbox.get_children() if isinstance(p, plt.Circle)]
        assert len(dots) == weight, key
    colours = {dot.get_facecolor() for dot in dots}
    assert len(colours) == 1  # the last forest: three times the last channel


def test_largest_coordinates_and_several_signatures():
    values = np.array([5.0, 0.1, -4.0, 0.2, 0.3, 3.0])
    alg = abx.Shuffle(2, 2)
    ax = plots.signature_bars({"a": values, "b": -values}, alg, largest=3)
    heights = [bar.get_height() for bar in ax.patches]
    assert heights == [5.0, -4.0, 3.0, -5.0, 4.0, -3.0]
    assert _legend(ax)[:2] == ["a", "b"]


@pytest.mark.parametrize("kind", [BackwardTrees, BackwardWords])
def test_algebras_of_users_are_drawn_too(kind):
    alg = kind(2, 2)
    ax = plots.signature_bars(np.ones(alg.size), alg)
    assert len(ax.artists) == alg.size and not len(ax.get_xticks())


@pytest.mark.parametrize("primitive", [False, True])
def test_keys_that_nobody_can_draw_are_written(primitive):
    alg = algebra.MultiIndex(2, 2)
    keys = alg.primitive_basis if primitive else alg.basis
    ax = plots.signature_bars(np.ones(len(keys)), alg)
    texts = [label.get_text() for label in ax.get_xticklabels()]
    assert texts == [str(key).replace(" ", "") for key in keys] and not ax.artists


def test_forest_has_its_vertices_edges_and_names():
    tree = (0, ((1, ()), (2, ((0, ()),))))
    ax = plots.draw_forest((tree, (1, ())), names=("a", "b", "c"))
    labels = sorted(text.get_text() for text in ax.texts)
    assert labels == ["a", "a", "b", "b", "c"]
    assert len(ax.lines) == 5 + 3


def test_rotations_end_where_the_axes_end():
    ax = plots.rotations(TURNS, view=(90.0, -90.0))  # from above: x right, y up
    ends = [np.ravel(line.get_data()) for line in ax.lines]
    np.testing.assert_allclose(ends, TURNS[-1, :2].T, atol=1e-12)
    assert [text.get_text() for text in ax.texts] == ["x", "y", "z"]
    count = len(ax.collections)
    plots.on_sphere(TURNS[:, 0], ax=ax)
    assert len(ax.collections) == count + 1  # one globe


def test_the_far_side_is_faint():
    ax = plots.on_sphere(np.eye(3)[[2, 2]], view=(-90.0, 0.0))
    assert ax.lines[0].get_alpha() < 0.5


def test_ellipses_have_the_axes_of_the_matrices():
    turn = TURNS[3, :2, :2]
    matrix = turn @ np.diag([4.0, 1.0]) @ turn.T
    ax = plots.covariance_ellipses(matrix[None])
    (patch,) = ax.patches
    np.testing.assert_allclose([patch.width, patch.height], [4.0, 2.0])
    angle = np.rad2deg(np.arctan2(turn[1, 0], turn[0, 0]))
    np.testing.assert_allclose(np.mod(patch.angle, 180), angle)
    ax = plots.covariance_ellipses(np.stack([COVARIANCES] * 3), TS[:1].repeat(20))
    assert len(ax.patches) == 3 * 12
    ax = plots.covariance_ellipses(COVARIANCES, count=5, centres=np.ones((20, 2)))
    assert [tuple(p.center) for p in ax.patches] == [(1.0, 1.0)] * 5


def test_training_curve_of_losses_validations_and_scalars():
    ax = plots.training_curve(HISTORY, label="run")
    assert ax.get_yscale() == "log" and _legend(ax) == ["run"]
    assert ax.get_ylabel() == "loss" and len(ax.lines) == 2
    plots.training_curve(HISTORY, "metric", ax=ax)
    np.testing.assert_array_equal(ax.lines[-1].get_ydata(), [2.0, 1.5])
    ax = plots.training_curve(History(loss=[1.0, -1.0]), steps=np.array([0, 10]))
    assert ax.get_yscale() == "linear" and ax.lines[0].get_xdata()[1] == 10
    ax = plots.training_curve(HISTORY, "window")
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), [3.0, 4.0])


NAN = np.full((3, 2, 2), np.nan)
BAD = {
    "one path": (lambda: plots.fan_chart(np.ones(5)), "shape"),
    "no path": (lambda: plots.fan_chart(np.ones((0, 5, 1))), "shape"),
    "times": (lambda: plots.fan_chart(PATHS, TS[1:]), "one time for each"),
    "two times": (lambda: plots.fan_chart(abx.SampledPath(TS, PATHS), TS), "its own"),
    "levels": (lambda: plots.fan_chart(PATHS, levels=(50,)), "between 0 and 1"),
    "names": (lambda: plots.fan_chart(PATHS, names=("a",)), "2 channels"),
    "grids": (
        lambda: plots.fan_chart(abx.SampledPath(TS + np.arange(40)[:, None], PATHS)),
        "common grid",
    ),
    "chart": (lambda: plots.fan_chart(PATHS, channel=2), "2 channels"),
    "channel": (lambda: plots.sample_paths(PATHS, PATHS, channel=2), "2 channels"),
    "result": (lambda: plots.permutation_histogram((1, 2, 3)), "two_sample_test"),
    "many tests": (
        lambda: plots.permutation_histogram(
            TwoSampleResult(*(np.ones((2, 9)) for _ in range(3)))
        ),
        "one at a time",
    ),
    "coordinates": (lambda: plots.signature_bars(np.ones(3), ALG), "log-signature"),
    "batch": (lambda: plots.signature_bars(np.ones((2, 10)), ALG), "one path at a"),
    "no algebra": (lambda: plots.signature_bars(np.ones(3), 2), "algebra"),
    "a word": (lambda: plots.draw_forest((0, 1)), "tree"),
    "no tree": (lambda: plots.draw_forest(()), "tree"),
    "vertex names": (lambda: plots.draw_forest((1, ()), names=("a",)), "2 channels"),
    "quaternions": (lambda: plots.rotations(np.ones((5, 4))), r"\(times, 3, 3\)"),
    "no rotation": (lambda: plots.rotations(2 * TURNS), "project_rotation"),
    "reflections": (lambda: plots.rotations(-TURNS), "determinant"),
    "off the sphere": (lambda: plots.on_sphere(np.ones((5, 3))), "length one"),
    "plane": (lambda: plots.on_sphere(np.ones((5, 2))), r"\(times, 3\)"),
    "NaN": (lambda: plots.covariance_ellipses(NAN), "NaN"),
    "not square": (lambda: plots.covariance_ellipses(np.ones((4, 2, 3))), "shape"),
    "negative": (lambda: plots.covariance_ellipses(-COVARIANCES), "semidefinite"),
    "pair": (
        lambda: plots.covariance_ellipses(COVARIANCES, channels=(0, 2)),
        "2 channels",
    ),
    "centres": (
        lambda: plots.covariance_ellipses(COVARIANCES, centres=np.ones((3, 2))),
        "one sequence",
    ),
    "quantity": (lambda: plots.training_curve(HISTORY, "accuracy"), "'loss'"),
    "no run": (lambda: plots.training_curve([1.0, 2.0]), "abx.fit"),
    "steps": (lambda: plots.training_curve(HISTORY, steps=[1, 2]), "one step for"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_in_a_sentence(case, monkeypatch):
    monkeypatch.setattr("jaxtyping.config.jaxtyping_disable", True)
    call, words = BAD[case]
    with pytest.raises((TypeError, ValueError), match=words) as error:
        call()
    assert len(str(error.value)) < 300
    assert not plt.get_fignums()


def test_without_matplotlib_the_extra_is_named():
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "import arborax as abx, numpy as np\n"
        "abx.plots.fan_chart(np.ones((2, 3)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert 'pip install "arborax[plots]"' in out.stderr
