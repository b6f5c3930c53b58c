"""Random networks of every kind equal their references; what is wrong is found and made small."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ending_campaign import EndingCampaign
from slipstick.compiler import compile_graph
from slipstick.compiler.codegen import convolution as emit
from slipstick.compiler.mapping.reduction import weight_words
from slipstick.errors import UnsupportedError
from slipstick.frontends.tflite import load_tflite_bytes
from slipstick.targets import find_target
from slipstick.verify.random_networks import campaign as campaigns
from slipstick.verify.random_networks.campaign import (
    REFERENCE_ENDS,
    Campaign,
    Tally,
    figures,
    minimal,
    run,
)
from slipstick.verify.random_networks.decisions import DECISIONS, decisions, possible
from slipstick.verify.random_networks.formats import TFLITE
from slipstick.verify.random_networks.network_check import check, plain_reason
from slipstick.verify.random_networks.recipes import Layer, Recipe, RecipeError
from slipstick_rtl.config import Configuration
from typer.testing import CliRunner

MEDIUM = find_target("sim-medium").configuration
NETWORKS = 40
"""Per target and kind of file; thousands stand in reports/."""


def of(target: str, form: str | None = None, seed: int = 0, networks: int = NETWORKS) -> Campaign:
    configuration = find_target(target).configuration
    return Campaign(networks=networks, seed=seed, configuration=configuration, form=form)


@pytest.mark.parametrize(
    ("target", "form", "seed"),
    [
        ("sim-medium", "tflite", 0),
        pytest.param("sim-medium", "onnx", 0, marks=pytest.mark.thorough),
        ("sim-small", None, 0),
        ("ulx3s-85f", "tflite", 0),
        ("ulx3s-12f", None, 0),
        ("icebreaker", "tflite", 1520),
        ("tang-nano-9k", None, 0),
        ("asic-4x4", "tflite", 0),
        pytest.param("2x8x4", None, 0, marks=pytest.mark.thorough),
        ("sim-lns6", None, 0),
    ],
)
def test_random_networks_equal_their_references(target: str, form: str | None, seed: int) -> None:
    campaign, tally = of(target, form, seed), Tally()
    for number in range(seed, seed + NETWORKS):
        tally.add(campaign.check(number))
    assert not tally.findings, [(each.seed, each.reason) for each in tally.findings]
    assert tally.networks == NETWORKS and tally.elements > 1000
    assert sum(tally.refused.values()) <= NETWORKS // 10, tally.refused


def test_the_same_seed_gives_the_same_file() -> None:
    for form in ("tflite", "onnx"):
        campaign = of("sim-medium", form)
        files = [campaign.file_format(5).write(campaign.recipe(5)) for _ in range(2)]
        assert files[0] == files[1]
        assert files[0] != campaign.file_format(6).write(campaign.recipe(6))


@pytest.fixture
def wrong_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler that gets the weights wrong where each kernel row begins a new tile."""

    def words(convolution: Any, tile: Any, *others: Any) -> np.ndarray:
        right = weight_words(convolution, tile, *others)
        # weights of lanes that idle must stay zero, or the golden model refuses the program
        wrong = np.where(right == 0, right, right ^ np.int8(64))
        return wrong if tile.reduction.align_row else right

    monkeypatch.setattr(emit, "weight_words", words)


def test_a_wrong_layout_is_found_and_made_small(wrong_rows: None, tmp_path: Path) -> None:
    campaign = of("sim-medium", "tflite")
    outcomes = [campaign.check(seed) for seed in range(60)]
    wrong = [outcome for outcome in outcomes if outcome.is_finding]
    assert wrong and all("layout: rows aligned" in outcome.taken for outcome in wrong)
    finding = minimal(campaign, wrong[0], tmp_path)
    assert len(finding.layers) <= 2
    smaller = compile_graph(load_tflite_bytes(finding.file.read_bytes()), MEDIUM)
    assert sum(layer.macs for layer in smaller.layers) < 4000


def test_decisions_are_read_back_from_programs() -> None:
    seen: set[str] = set()
    for target in ("sim-medium", "asic-4x4", "ulx3s-85f", "icebreaker"):
        campaign = of(target, "tflite")
        able = possible(campaign.configuration)
        for seed in range(30):
            taken = campaign.check(seed).taken
            assert taken <= able, (target, taken - able)
            seen |= taken
    assert len(seen) > len(DECISIONS) // 2


def conv(**changes: Any) -> Layer:
    own = {"kernel": (3, 3), "stride": (1, 1), "dilation": (1, 1), "padding": "VALID", "groups": 1}
    own |= {"filters": 4, "activation": "none", "amplitude": 127, "factor": -8.0, "bias": True}
    own |= {"per_channel": True, "pattern": "first", "spread": 2.0}
    return Layer("conv2d", (0,), 1, (0.1, 3), {**own, **changes})


def recipe(*layers: Layer, shape: tuple[int, ...] = (1, 6, 7, 3)) -> Recipe:
    return Recipe(3, shape, (0.05, -3), layers, (len(layers),))


def test_a_slice_of_few_channels_ends_a_streamed_segment() -> None:
    """Tensors within the segment keep all channels: a sum needs operands of equal pitches."""
    plain = {"kernel": (1, 1), "padding": "SAME"}
    box = {"starts": (0, 3, 0, 0), "steps": (1, 1, 1, 1), "sizes": (1, 10, 11, 12)}
    layers = (
        conv(**plain, filters=24),
        Layer("add", (1, 0), 2, (0.1, 3), {"activation": "none"}),
        dataclasses.replace(conv(**plain, filters=16, groups=8), sources=(2,)),
        Layer("slice", (3,), 3, (0.1, 3), box),
        dataclasses.replace(conv(filters=406, keep_dimensions=False), kind="fully_connected"),
    )
    layers = (*layers[:4], dataclasses.replace(layers[4], sources=(4,)))
    outcome = check(
        recipe(*layers, shape=(1, 15, 36, 24)), TFLITE, find_target("sim-small").configuration
    )
    assert "streaming: loads" in outcome.taken
    assert (outcome.status, outcome.mismatches) == ("equal", 0)


def test_pixels_that_are_written_together_have_no_gaps() -> None:
    """A depthwise layer behind them would read several taps at once if there were some."""
    plain = {"kernel": (1, 1), "stride": (1, 1), "dilation": (1, 1), "padding": "VALID"}
    weights = conv().parameters
    own = {**weights, **plain, "kernel": (1, 2), "multiplier": 1}
    layers = (conv(**plain, filters=4), Layer("depthwise_conv2d", (1,), 5, (0.1, 3), own))
    target = find_target("ulx3s-85f").configuration
    outcome = check(recipe(*layers, shape=(1, 1, 6, 1)), TFLITE, target)
    assert "layout: pixels folded" in outcome.taken and "layout: diagonal" in outcome.taken
    assert (outcome.status, outcome.mismatches) == ("equal", 0)


def test_recipes() -> None:
    relu = Layer("relu", (1,), 2, (0.1, 3))
    both = recipe(conv(), relu)
    assert both.shapes() == [(1, 6, 7, 3), (1, 4, 5, 4), (1, 4, 5, 4)]
    assert both.macs() == 4 * 5 * 4 * 27
    assert both.without(1).shapes() == [(1, 6, 7, 3), (1, 4, 5, 4)]
    assert both.without(0).shapes() == [(1, 6, 7, 3)] * 2
    assert both.without(0).layers[0].sources == (0,)
    unused = Recipe(3, both.shape, both.codes, both.layers, (1,))
    assert len(unused.used().layers) == 1


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (recipe(conv(kernel=(7, 1))), "larger than its input"),
        (recipe(conv(groups=2)), "groups do not divide"),
        (recipe(conv(padding=(3, 0, 0, 0))), "padding only"),
        (recipe(Layer("relu", (1,), 2, (0.1, 3))), "made later"),
        (recipe(conv(), shape=(1, 20)), "needs a picture"),
    ],
)
def test_recipes_that_describe_no_network(broken: Recipe, message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        broken.shapes()
    with pytest.raises(RecipeError, match=message):
        check(broken, TFLITE, MEDIUM)


def test_a_network_that_ends_the_reference_is_no_finding() -> None:
    """Its softmax is of 2,520 numbers, of which half are the largest."""
    campaign = Campaign(
        networks=1, seed=5017, configuration=find_target("sim-medium").configuration, processes=1
    )
    tally = run(campaign, lambda done: None)
    assert not tally.findings and tally.refused == {REFERENCE_ENDS: 1}


def test_a_process_that_ends_or_hangs_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaigns, "CHUNK", 4)
    monkeypatch.setenv(campaigns.SECONDS_VARIABLE, "2")
    ending = EndingCampaign(networks=12, seed=0, configuration=MEDIUM, processes=2)
    done: list[int] = []
    tally = run(ending, done.append)
    assert tally.networks == sum(done) == 12
    assert [(each.seed, each.status) for each in tally.findings] == [(7, "failed"), (9, "failed")]
    assert tally.findings[0].reason == "the process ended"
    assert "at most N s" in tally.findings[1].reason


def test_reasons_count_together() -> None:
    first = UnsupportedError("layer 'a' has 3 taps, not 1.5e-3, of t12")
    second = UnsupportedError("layer 'bb' has 44 taps, not 2.5, of t3_weights")
    assert plain_reason(first) == plain_reason(second)


def test_figures_name_every_possible_decision() -> None:
    shown = figures(Tally(), Configuration(rows=8, columns=8, lanes=4))
    assert set(shown["coverage"]) == possible(Configuration(rows=8, columns=8, lanes=4))
    assert shown["networks"] == shown["total_mismatches"] == 0


def test_what_a_program_shows_of_itself() -> None:
    graph = load_tflite_bytes(TFLITE.write(recipe(conv())))
    taken = decisions(compile_graph(graph, MEDIUM), graph)
    assert "layout: taps packed" in taken and "layout: diagonal" not in taken


def slipstick(*arguments: object) -> Any:
    from slipstick.cli import app

    return CliRunner().invoke(app, ["verify", *map(str, arguments)])


def test_the_command(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    options = ("--random", 6, "--seed", 40, "--jobs", 1, "--output", tmp_path, "--report", report)
    outcome = slipstick(*options, "--json")
    assert outcome.exit_code == 0, outcome.output
    shown = json.loads(outcome.stdout)
    assert (shown["networks"], shown["total_mismatches"], shown["seed"]) == (6, 0, 40)
    assert shown["target"] == "sim-medium" and shown["findings"] == []
    assert set(shown["coverage"]) == possible(MEDIUM)
    assert json.loads(report.read_text())["networks"] == 6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--random", 0), "--random must be at least 1, not 0"),
        (("--random", 2, "--rtl", 3), "--rtl must be at most --random"),
        (("--random", 2, "--jobs", 0), "--jobs must be at least 1"),
        (("model.tflite", "--random", 2), "MODEL cannot stand beside --random"),
        (("--random", 2, "--limit", 3), "--limit cannot stand beside --random"),
        (("model.tflite", "--rtl", 2), "--rtl needs --random N"),
        ((), "needs a network's file, or --random N"),
        (("--random", 2, "--target", "sim-lns6", "--format", "onnx"), "must not be named"),
    ],
)
def test_wrong_calls(arguments: tuple[object, ...], message: str) -> None:
    outcome = slipstick(*arguments)
    assert outcome.exit_code != 0
    assert message in str(outcome.exception) or message in outcome.output
