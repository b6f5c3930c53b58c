"""Layer lists in SCALE-Sim's format, its figures, and ours beside them."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from shared_data import shared
from slipstick.benchmarks import scalesim as scalesim_benchmark
from slipstick.benchmarks.scalesim_model import scalesim_cycles
from slipstick.benchmarks.topologies import TopologyLayer, layer_graph, read_topology
from slipstick.compiler import compile_graph
from slipstick.errors import InputError
from slipstick.session import InferenceSession
from slipstick.targets import find_target

SIZES = "Layer name, IFMAP Height, IFMAP Width, Filter Height, Filter Width, Channels, Num Filter,"


def square(side: int, kernel: int, channels: int, filters: int, stride: int) -> TopologyLayer:
    return TopologyLayer(
        name="layer",
        height=side,
        width=side,
        kernel=(kernel, kernel),
        channels=channels,
        filters=filters,
        stride=stride,
    )


def test_reads_convolutions_and_products(tmp_path: Path) -> None:
    path = tmp_path / "layers.csv"
    path.write_text(f"{SIZES} Strides, more,\n,,,,\n A ,9, 8,3,2,4,5,2,#dw\n\tB,1,1,1,1,2,3,1\n")
    first, second = read_topology(path)
    assert first == TopologyLayer(
        name="A", height=9, width=8, kernel=(3, 2), channels=4, filters=5, stride=2
    )
    assert (first.sides, first.reduction, first.macs) == ((4, 4), 24, 16 * 24 * 5)
    assert (second.name, second.macs, second.weight_bytes) == ("B", 6, 6)
    path.write_text("Layer,M,N,K,\nL0,196,192,384,\nL1,7,2,3,\n")
    first, second = read_topology(path)
    assert (first.sides, first.reduction, first.filters) == ((14, 14), 384, 192)
    assert (second.sides, second.macs) == ((1, 7), 42)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must hold layers, one a line below its header"),
        (f"{SIZES}\n\n", "must hold layers"),
        (f"{SIZES}\nA,9,9,3,3,4,5\n", "line 2: a layer must have a name and 7 sizes, not 'A,9,9"),
        (f"{SIZES}\n\nA,9,9,3,3,4,x,1\n", "line 3: invalid literal"),
        (f"{SIZES}\nA,9,9,3,3,4,5,0\n", "line 2: layer A: stride must be at least 1, not 0"),
        (f"{SIZES}\nA,9,2,3,3,4,5,1\n", "layer A: its kernel must be within 9 x 2, not 3 x 3"),
        ("Layer,M,N,K\nA,0,2,3\n", "layer A: width must be at least 1, not 0"),
    ],
)
def test_bad_lists_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "layers.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_topology(path)


@pytest.mark.borrows
def test_every_shared_list_is_read() -> None:
    for name in (*scalesim_benchmark.LISTS, "gemm_unet2d.csv"):
        assert len(read_topology(shared(f"{scalesim_benchmark.TOPOLOGIES}/{name}"))) >= 2


def test_a_layer_becomes_a_network_of_its_size() -> None:
    layer = square(10, 3, 5, 6, 2)
    program = compile_graph(layer_graph(layer, copies=2), find_target("1x8x8").configuration)
    assert program.macs == 2 * layer.macs
    assert program.tensors["input"].shape == (1, 11, 11, 5)
    with InferenceSession(program, "model") as session:
        ones = np.random.default_rng(0).integers(-128, 128, (1, 11, 11, 5), np.int8)
        first, second = session.run(None, {"input": ones})
    assert first.shape == (1, 5, 5, 6) and np.array_equal(first, second)
    assert len(np.unique(first)) > 10


@pytest.mark.parametrize(
    ("layer", "cycles"),
    [
        (square(30, 5, 1, 6, 1), 1443),
        (square(10, 5, 6, 16, 1), 819),
        (square(14, 1, 64, 40, 2), 1319),
        (square(1, 1, 512, 100, 1), 10527),
    ],
)
def test_scalesim_counts_what_its_whole_simulation_reports(
    layer: TopologyLayer, cycles: int
) -> None:
    """The figures are "Total Cycles" of SCALE-Sim 3.0.0's own runs, its memories included."""
    pytest.importorskip("scalesim", reason="needs scalesim: pip install 'slipstick[bench]'")
    assert scalesim_cycles(layer, 16, 16) == cycles
    folds = math.ceil(layer.reduction / 16) * math.ceil(layer.filters / 16)
    assert cycles == folds * (2 * 16 + 16 + layer.pixels - 2) - 1


def test_enlarged_memories_hold_a_layer_of_resnet() -> None:
    configuration = scalesim_benchmark.enlarged(find_target("2x8x8").configuration)
    assert configuration.shape == "1x8x8"
    assert replace(configuration, pixels=2).macs_per_cycle == 128


def test_the_benchmark_writes_its_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("scalesim", reason="needs scalesim: pip install 'slipstick[bench]'")
    monkeypatch.setenv("SLIPSTICK_DATA", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(scalesim_benchmark, "LISTS", ("mine.csv", "missing.csv"))
    folder = tmp_path / scalesim_benchmark.TOPOLOGIES
    folder.mkdir(parents=True)
    (folder / "mine.csv").write_text(
        f"{SIZES} Strides,\nbig,16,16,3,3,32,32,1,\nagain,16,16,3,3,32,32,1,\ntiny,3,3,3,3,1,1,1,\n"
    )
    assert scalesim_benchmark.scalesim_benchmark("1x8x8", rtl=False) == 0
    text = capsys.readouterr().out
    assert "skipped: " in text and "slower than SCALE-Sim, alone, mine: tiny" in text
    report = json.loads((tmp_path / "reports/bench_scalesim.json").read_text())
    (network,) = report["networks"]
    big, again, tiny = network["layers"]
    assert {**big, "layer": "again"} == again
    assert big["runs"] == 1 and big["added"] <= big["alone"] < big["scalesim"]
    for key in ("macs", "scalesim", "alone", "added"):
        assert network[key] == 2 * big[key] + tiny[key]
    assert network["slower_alone"] == ["tiny"] and network["simulated"] == []


def test_small_layers_are_simulated() -> None:
    pytest.importorskip("scalesim", reason="needs scalesim: pip install 'slipstick[bench]'")
    layers = (square(6, 3, 4, 8, 1), replace(square(3, 1, 4, 4, 1), name="other"))
    configuration = scalesim_benchmark.enlarged(find_target("1x4x4").configuration)
    found = list(scalesim_benchmark.compare(layers, configuration))
    simulated = list(scalesim_benchmark.simulate(layers, found, configuration))
    assert [entry["layer"] for entry in simulated] == ["other", "layer"]
    assert all(abs(entry["prediction_error"]) < 0.03 for entry in simulated)


def test_a_compact_target_is_refused() -> None:
    with pytest.raises(InputError, match="must have a pipelined engine"):
        scalesim_benchmark.scalesim_benchmark("icebreaker", rtl=False)
