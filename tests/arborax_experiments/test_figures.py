"""Figures that all experiments share."""

import types

from arborax_experiments.harness.figures import look, training_curves


TASK = types.SimpleNamespace(label=lambda result: result["model"])


def trained(model, seed, validation=()):
    stage = {"steps": 4, "loss": [1.0, 0.5], "validation": list(validation)}
    return {"model": model, "seed": seed, "stages": [stage]}


def test_seeds_share_an_entry_of_the_legend_and_a_line():
    results = [trained(model, seed) for model in "ab" for seed in (1, 2)]
    results.append({"model": "nearest neighbour", "seed": 1, "stages": []})
    figure = training_curves(TASK, results)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a", "b"]
    left, right = figure.axes
    drawn = {(line.get_color(), line.get_linestyle()) for line in left.lines}
    assert len(drawn) == 2
    assert not right.axison  # nothing was validated


def test_validations_are_drawn():
    records = [{"step": 0, "metric": 2.0}, {"step": 4, "metric": 1.0}]
    _, right = training_curves(TASK, [trained("a", 1, records)]).axes
    assert right.axison and list(right.lines[0].get_ydata()) == [2.0, 1.0]


def test_twenty_rows_look_different():
    assert len({look(number) for number in range(20)}) == 20
