"""Collections of aeon and sktime, built by hand as those packages lay them out."""

import numpy as np
import pytest


pd = pytest.importorskip("pandas")
pytest.importorskip("sklearn")

from arborax.estimators import as_paths, SignatureFeatures  # noqa: E402


def unequal(rng):
    return [rng.normal(size=(n, 2)) for n in (5, 7, 4)]


def nested(series):
    """sktime `nested_univ`: a series in each cell, one column per channel."""
    columns = {f"dim_{k}": [pd.Series(x[:, k]) for x in series] for k in range(2)}
    return pd.DataFrame(columns)


def pairs(series):
    """sktime `pd-multiindex`: one row per sample and time."""
    frames = [pd.DataFrame(x, columns=["a", "b"]) for x in series]
    return pd.concat(frames, keys=range(len(frames)), names=["sample", "time"])


def frames(series):
    """sktime `df-list`: one frame per sample, one column per channel."""
    return [pd.DataFrame(x, columns=["a", "b"]) for x in series]


@pytest.mark.parametrize("layout", [nested, pairs, frames])
def test_frames_of_sktime(layout, rng):
    series = unequal(rng)
    found, expected = as_paths(layout(series)), as_paths(series)
    np.testing.assert_array_equal(found.lengths, expected.lengths)
    np.testing.assert_array_equal(found.xs, expected.xs)
    np.testing.assert_array_equal(found.ts, expected.ts)


@pytest.mark.parametrize("as_list", [False, True])
def test_channels_first_of_aeon_and_sktime(as_list, rng):
    """`numpy3D` (n, channels, times), and `np-list` of unequal lengths."""
    series = unequal(rng) if as_list else list(rng.normal(size=(3, 6, 2)))
    turned = [x.T for x in series] if as_list else np.stack([x.T for x in series])
    features = SignatureFeatures("shuffle", 2)
    other = SignatureFeatures("shuffle", 2, channels_last=False)
    np.testing.assert_array_equal(
        other.fit_transform(turned), features.fit_transform(series)
    )


@pytest.mark.parametrize("layout", [nested, pairs, frames])
def test_channels_of_frames_keep_their_order(layout, rng, tmp_path):
    def renamed(given, names):
        parts = given if isinstance(given, list) else [given]
        parts = [part.set_axis(names, axis=1) for part in parts]
        return parts if isinstance(given, list) else parts[0]

    given = layout(unequal(rng))
    features = SignatureFeatures().fit(renamed(given, ["p", "v"]))
    features.save(tmp_path / "f.abx")
    again = SignatureFeatures.load(tmp_path / "f.abx")
    assert list(again.get_feature_names_out()[:3]) == ["t", "p", "v"]
    with pytest.raises(ValueError, match="channels.*'v', 'p'.*fitted.*'p', 'v'"):
        again.transform(renamed(given, ["v", "p"]))
    again.transform(unequal(rng))
    assert list(again.fit(unequal(rng)).get_feature_names_out()[1:3]) == ["x0", "x1"]
    if layout is frames:
        with pytest.raises(ValueError, match="frame 1 has columns"):
            mixed = renamed(given[:1], ["p", "v"]) + renamed(given[1:], ["v", "p"])
            again.fit(mixed)


def test_channels_first_without_saying_so(rng):
    turned = [x.T for x in unequal(rng)]
    with pytest.raises(ValueError, match="pass channels_last=False"):
        as_paths(turned)


def test_a_plain_frame_is_refused(rng):
    with pytest.raises(TypeError, match="which rows belong together"):
        as_paths(pd.DataFrame(rng.normal(size=(4, 2))))
