"""Measures the server: ``python -m slipstick.benchmarks.server``; ``--help`` tells more.

The server is a process of its own, its boards are emulated: each answers after the time that the
board would take. Ends with 1 if a malformed request was answered with anything but 4xx. The answers
to malformed requests and the soak are kept from the last report if they are not measured again.
"""

import json as json_files
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from ... import console, reports
from ...failures import command_status
from ...loading import load_program
from ...session import InferenceSession
from ...targets import find_target
from ..suite import shared_folder
from .measure import latency, malformed, running_server, soak, throughput

COMMAND = "python -m slipstick.benchmarks.server"
REPORT = "server"
NETWORK = Path("models", "ic01_resnet8_int8.tflite")
TARGET = "ulx3s-25f"
_KEPT = ("malformed", "soak")
LIMIT_MS = 0.5
"""Milliseconds that the server may add to the device's time, as the issue has it."""


def measure_server(
    network: Path,
    *,
    requests: int,
    boards: int,
    slower: float,
    seconds: float,
    malformed_requests: int,
    soak_minutes: float,
) -> dict[str, Any]:
    """Measures all that the report has.

    Parameters
    ----------
    network : Path
    requests : int
        For the latency.
    boards : int
        Of the pool, for the throughput.
    slower : float
        So many times as long as real boards those of the pool take: this computer is the host of
        all, and of the clients.
    seconds : float
        Of each measurement of the throughput.
    malformed_requests : int
    soak_minutes : float
    """
    program = load_program(network, find_target(TARGET).configuration)
    device_seconds = program.predicted_cycles / program.hardware.clock_hz
    result: dict[str, Any] = {
        "network": program.name,
        "target": TARGET,
        "device_ms": device_seconds * 1e3,
    }
    with console.waiting("measuring the latency"):
        device = f"emulated:{TARGET}"
        with running_server(network, device) as server, InferenceSession(program, device) as direct:
            served, alone = latency(server, direct, requests)
    result["latency"] = {
        "requests": requests,
        "load_average": os.getloadavg()[0],
        **served,
        "added_p50_ms": served["p50_ms"] - device_seconds * 1e3,
        "session": alone,
        "added_to_session_p50_ms": served["p50_ms"] - alone["p50_ms"],
    }
    pool = ",".join([f"emulated:{TARGET}/{slower:g}"] * boards)
    rate = boards / (device_seconds * slower)
    cases = []
    with running_server(network, f"pool:{pool}") as server:
        for images, connections in ((1, 8 * boards), (8, 4 * boards)):
            with console.waiting(f"measuring {images} images per request"):
                reached = throughput(server, program, connections, images, seconds)
            cases.append(
                {
                    "images_per_request": images,
                    "connections": connections,
                    "images_per_second": reached,
                    "share_of_pool": reached / rate,
                }
            )
        result["throughput"] = {
            "boards": boards,
            "slower": slower,
            "pool_images_per_second": rate,
            "cases": cases,
        }
        if malformed_requests:
            with console.waiting(f"sending {malformed_requests} malformed requests"):
                result["malformed"] = malformed(server, program, malformed_requests)
        if soak_minutes:
            with console.waiting(f"soaking for {soak_minutes:g} minutes"):
                result["soak"] = soak(server, program, soak_minutes)
    return result


def _add_kept(result: dict[str, Any]) -> None:
    """Adds parts of the last report that are not measured again, with its command and date."""
    try:
        last = json_files.loads(Path(reports.FOLDER, f"{REPORT}.json").read_text("utf-8"))
        for part in _KEPT:
            if part not in result and part in last:
                result[part] = {"command": last["command"], "date": last["date"], **last[part]}
    except (OSError, ValueError, KeyError, TypeError):
        return


def _show(result: dict[str, Any]) -> None:
    reached = result["latency"]
    rows = [
        ["device time", f"{result['device_ms']:.3f} ms"],
        ["latency p50", f"{reached['p50_ms']:.3f} ms"],
        ["latency p99", f"{reached['p99_ms']:.3f} ms"],
        ["the server's own part, p50", f"{reached['added_p50_ms']:.3f} ms (limit {LIMIT_MS} ms)"],
        ["session.run alone, p50", f"{reached['session']['p50_ms']:.3f} ms"],
    ]
    boards = result["throughput"]["boards"]
    for case in result["throughput"]["cases"]:
        rate, share = case["images_per_second"], console.percent(case["share_of_pool"])
        rows.append(
            [
                f"{boards} boards, {case['images_per_request']} per request",
                f"{rate:,.0f} images/s ({share} of the pool)",
            ]
        )
    for name in _KEPT:
        if name in result:
            entry = result[name]
            growth = entry.get("memory_growth_bytes", entry.get("growth_bytes", 0)) / (1 << 20)
            rows.append([f"{name} requests", f"{entry['requests']:,}, {len(entry['wrong'])} wrong"])
            rows.append([f"memory, {name}", f"grew by {growth:.1f} MiB"])
    console.print_table(
        f"{result['network']} on {result['target']}, emulated, served over REST",
        {"figure": "left", "value": "right"},
        rows,
        "bytes in and out, kept-alive connections, client on the same computer",
    )


def server_benchmark(
    network: Annotated[Path | None, typer.Argument(help="A network; by default ResNet-8.")] = None,
    requests: Annotated[int, typer.Option(min=1, help="For the latency.")] = 2000,
    boards: Annotated[int, typer.Option(min=1, help="Of the pool.")] = 4,
    slower: Annotated[
        float, typer.Option(min=0.01, help="How many times as long boards of the pool take.")
    ] = 4.0,
    seconds: Annotated[float, typer.Option(min=0.1, help="For each throughput.")] = 10.0,
    malformed_requests: Annotated[
        int, typer.Option("--malformed", min=0, help="Malformed requests; 0: the last report's.")
    ] = 10_000,
    soak_minutes: Annotated[
        float, typer.Option("--soak", min=0, help="Minutes of soaking; 0: the last report's.")
    ] = 0.0,
    json: Annotated[bool, typer.Option("--json", help="Print the report.")] = False,
) -> int:
    """Measure `slipstick serve` and write reports/server.json."""
    result = measure_server(
        network or shared_folder() / NETWORK,
        requests=requests,
        boards=boards,
        slower=slower,
        seconds=seconds,
        malformed_requests=malformed_requests,
        soak_minutes=soak_minutes,
    )
    _add_kept(result)
    command = " ".join([COMMAND, *sys.argv[1:]])
    path = reports.write(REPORT, command, result)
    if json:
        console.print_json(result)
    else:
        _show(result)
        console.print_line(f"written to {path}")
    return int(any(result.get(name, {}).get("wrong") for name in _KEPT))


def main() -> int:
    """The command line."""
    return command_status(server_benchmark)


if __name__ == "__main__":
    sys.exit(main())
