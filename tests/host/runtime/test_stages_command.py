"""``slipstick compile`` for several boards."""

import json
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import stateful_networks as networks
from slipstick.examples.digits import MODEL, load_digits
from slipstick.runtime.executor import Execution
from slipstick.runtime.stages.loading import divided_execution, open_divided

BOARDS = "ulx3s-12f,sim-small"


def compiled(slipstick, *arguments: object) -> dict:
    status, out, err = slipstick("compile", MODEL, *arguments, "--json")
    assert status == 0 and not err, err
    return json.loads(out)


def test_a_pipeline_is_planned_and_written(slipstick, tmp_path: Path) -> None:
    result = compiled(slipstick, "--pipeline", BOARDS, "-o", tmp_path / "digits.slip")
    first, second = result["stages"]
    assert [first["target"], second["target"]] == BOARDS.split(",")
    assert first["sent_bytes"] == second["received_bytes"] > 0
    assert second["host_layers"] and not first["host_layers"]
    slowest = max(stage["seconds"] for stage in result["stages"])
    assert result["inferences_per_second"] == pytest.approx(1 / slowest)
    one = result["one_board"]["inferences_per_second"]
    assert result["speed_up"] == pytest.approx(result["inferences_per_second"] / one)
    assert first["wire"] is not None and second["wire"] is None
    assert [Path(path).name for path in result["output"]] == [
        "digits-1.slip", "digits-2.slip", "digits.stages",
    ]  # fmt: skip
    program, group = open_divided(result["output"][-1], "pipeline:model,model")
    x, y = (array[:50] for array in load_digits()[2:])
    with closing(group):
        execution = divided_execution(program, group, Execution)
        values = execution.infer_batch({program.inputs[0]: x})[program.outputs[0]]
    assert (values.argmax(axis=1) == y).mean() > 0.9


def test_a_split_is_planned(slipstick) -> None:
    result = compiled(slipstick, "--split", "sim-small,sim-small", "--wire", "rgmii")
    assert result["division"] == "split" and result["exchanges"] > 0
    assert len({stage["weight_bytes"] for stage in result["stages"]}) == 1
    moved = [stage["bytes_per_inference"] for stage in result["stages"]]
    assert result["bytes_per_inference"] == sum(moved)
    assert {stage["wire"] for stage in result["stages"]} == {"rgmii"}


def test_the_fastest_way_is_chosen_and_told(slipstick) -> None:
    result = compiled(slipstick, "--boards", "sim-small,sim-small", "--wire", "spi")
    rates = {way["way"]: way["inferences_per_second"] for way in result["ways"]}
    assert set(rates) == {"one board", "pipeline", "split"}
    assert rates[result["division"]] == max(rates.values()) == result["inferences_per_second"]
    status, out, _ = slipstick("compile", MODEL, "--boards", "sim-small,sim-small")
    assert status == 0
    for word in ("Chosen: ", "exchanges per image", "images per second"):
        assert word in " ".join(out.split())


def test_tables_tell_what_each_stage_does(slipstick) -> None:
    for option in ("--pipeline", "--split"):
        status, out, err = slipstick("compile", MODEL, option, "sim-small,sim-small")
        text = " ".join(out.split())
        assert status == 0 and not err
        for word in ("sim-small", "weights, bytes", "times as many as one sim-small alone"):
            assert word in text, word


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--pipeline", "sim-small"), "--pipeline must be 2 to 64 targets, not 1: sim-small"),
        (("--pipeline", "sim-small,"), "--pipeline must be targets with commas between"),
        (("--split", "sim-small,nothing"), "target must be one of"),
        (("--pipeline", ",".join(["sim-small"] * 40)), "too few for a pipeline of 40 boards"),
        (("--pipeline", BOARDS, "--split", BOARDS), "--pipeline and --split do not go together"),
        (("--pipeline", BOARDS, "--target", "sim-small"), "--target is for one board"),
        (("--pipeline", BOARDS, "--wire", "string"), "wire must be one of"),
        (("--wire", "spi"), "--wire is for several boards"),
        (("--split", BOARDS, "-o", "x.slip"), "--output is for one board or for --pipeline"),
        (("--pipeline", "sim-small,sim-lns8"), "the target computes with lns1+3+4"),
    ],
)
def test_what_cannot_be_is_one_sentence(slipstick, arguments, message: str) -> None:
    status, out, err = slipstick("compile", MODEL, *arguments)
    assert status == 2 and not out
    assert message in " ".join(err.split()) and "Traceback" not in err


def test_networks_that_keep_values_are_for_one_board(slipstick, tmp_path: Path) -> None:
    path = tmp_path / "wake.tflite"
    path.write_bytes(networks.wake_word(np.random.default_rng(1)))
    for option in ("--pipeline", "--split"):
        status, _, err = slipstick("compile", path, option, "sim-small,sim-small")
        assert status == 2 and "values from run to run" in " ".join(err.split()), option
    status, out, err = slipstick("compile", path, "--boards", "sim-small,sim-small", "--json")
    result = json.loads(out)
    assert status == 0 and not err and result["division"] == "one board"
    assert "values from run to run" in result["why"]
