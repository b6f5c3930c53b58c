"""Batches through modelled wires and the simulated core: right, and as small as they can be."""

import json
import threading
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import slipstick
from slipstick.benchmarks.end_to_end import __main__ as suite
from slipstick.benchmarks.end_to_end.host_cost import TCP, UDP, host_cost, null_link
from slipstick.benchmarks.end_to_end.measure import EndToEnd, measure_end_to_end
from slipstick.devices.wire_models import WIRES, find_wire_model
from slipstick.errors import InputError
from slipstick.loading import compile_file
from slipstick.runtime.end_to_end import predicted_per_second, wires_of
from slipstick.runtime.feeds import random_batch
from slipstick.session import InferenceSession
from slipstick.targets import find_target

MODEL = Path(slipstick.__file__).parent / "assets" / "digits.tflite"
IMAGES = 12


@pytest.mark.parametrize(
    "wire",
    [
        pytest.param("uart@3000000", marks=pytest.mark.thorough),
        "spi",
        "usb-fs",
        "usb-hs",
        "rmii",
        "rgmii",
    ],
)
def test_a_batch_over_a_wire(wire: str) -> None:
    program = compile_file(MODEL, find_target("sim-small").configuration)
    measured = measure_end_to_end(program, find_wire_model(wire), IMAGES)
    assert measured.equal_images == IMAGES
    assert measured.lost_bytes == 0
    assert 0 < measured.per_second < 1.01 * measured.core_per_second
    entry = measured.entry()
    assert 0 < entry["share_of_wire"] < 1.01
    # frames are 24 bytes of an image that has only 64
    assert measured.bytes_up <= IMAGES * (1.05 * measured.input_bytes + 24)
    assert measured.bytes_down <= IMAGES * (1.05 * measured.output_bytes + 32)
    assert measured.round_trips <= 1
    # the last answer of a batch is late, however long the batch is
    model = find_wire_model(wire)
    predicted = IMAGES / predicted_per_second(program, model) + model.reply_seconds
    assert 0.9 < measured.per_second * predicted / IMAGES < 1.1


def test_the_hosts_own_cost_counts_all_images() -> None:
    program = compile_file(MODEL, find_target("sim-small").configuration)
    for devices, over in ((1, TCP), (3, TCP), (1, UDP)):
        cost = host_cost(program, images=300, devices=devices, over=over)
        assert cost["images"] == 300 and cost["devices"] == devices
        assert cost["images_per_core_second"] > 0 < cost["images_per_second"]


@pytest.mark.parametrize("over", [TCP, UDP])
def test_sessions_that_share_boards_which_take_turns(over: str) -> None:
    program = compile_file(MODEL, find_target("sim-small").configuration)
    feeds = random_batch(program, 150)
    with ExitStack() as stack:
        boards = [stack.enter_context(null_link(program, over)) for _ in range(2)]
        assert all(board.takes_turns for board in boards)
        pools = [stack.enter_context(InferenceSession(program, boards)) for _ in range(2)]
        results = list[int]()

        def run(session: InferenceSession) -> None:
            for _ in range(3):
                results.append(len(session.run_batch(None, feeds)[0]))

        threads = [threading.Thread(target=run, args=(pool,), daemon=True) for pool in pools]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        assert results == [150] * 6


def test_the_wires_of_a_board() -> None:
    assert [wire.name for wire in wires_of("icebreaker")] == ["uart@4000000", "spi@10000000"]
    assert "usb-hs" in [wire.name for wire in wires_of("ecpix5-85f")]


@pytest.mark.parametrize("name", ["", "uart@0", "uart@x", "spi@", "usb", "rgmii@5"])
def test_unknown_wires_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="wire must be one of uart"):
        find_wire_model(name)
    assert "rgmii" in WIRES


@pytest.mark.parametrize("seconds", [-0.1, 11.0, float("nan")])
def test_reply_latencies_are_bounded(seconds: float) -> None:
    with pytest.raises(InputError, match=r"reply latency must be within 0\.\.10 seconds"):
        find_wire_model("usb-hs", seconds)


def test_the_report_grows_case_by_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    measured = EndToEnd(
        program=compile_file(MODEL, find_target("ecpix5-85f-ethernet").configuration),
        wire=find_wire_model("rgmii"),
        images=4,
        equal_images=4,
        clock_mhz=100.0,
        cycles=20_000,
        core_cycles=4_000,
        input_bytes=64,
        output_bytes=10,
        bytes_up=400,
        bytes_down=80,
        round_trips=1,
        lost_bytes=0,
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(suite, "_measure", lambda case: measured)
    path = tmp_path / "reports" / "end_to_end.json"

    def cases() -> dict[str, dict[str, Any]]:
        return json.loads(path.read_text())["cases"]

    assert suite.end_to_end_benchmark(only="VWW ecpix5-85f-ethernet usb-hs") == 0
    assert suite.end_to_end_benchmark(only="ResNet-8 ecpix5-85f-ethernet rgmii") == 0
    assert list(cases()) == ["ResNet-8 ecpix5-85f-ethernet rgmii", "VWW ecpix5-85f-ethernet usb-hs"]
    assert "20,000.0 images per second, 80.0% of the core's 25,000.0" in capsys.readouterr().out
    # what was measured on other hardware does not stay
    path.write_text(path.read_text().replace(measured.program.fingerprint, "0" * 16))
    monkeypatch.setattr(suite, "_measure", lambda case: replace(measured, equal_images=3))
    assert suite.end_to_end_benchmark(only="DS-CNN ecpix5-85f-ethernet rgmii") == 1
    assert list(cases()) == ["DS-CNN ecpix5-85f-ethernet rgmii"]
