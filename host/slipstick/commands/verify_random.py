"""``slipstick verify --random``: random networks held against their references."""

from pathlib import Path
from typing import Any

import typer

from .. import console, reports
from ..errors import InputError
from ..targets import DEFAULT_TARGET, find_target
from ..verify.random_networks.campaign import MOST_SHRUNK, Campaign, figures, minimal, run
from .options import check_least

SMALLEST_SHARE = 100
"""A decision of the compiler that fewer networks took is named."""


def verify_random(
    networks: int,
    *,
    seed: int,
    target: str | None,
    form: str | None,
    rtl: int,
    jobs: int | None,
    output: Path,
    report: Path | None,
    json: bool,
) -> None:
    """Checks random networks and prints what came of them; exits with 1 if one is wrong.

    Parameters
    ----------
    networks, seed : int
        Network k is drawn from seed + k.
    target : str or None
    form : str or None
        "tflite" or "onnx"; None: by turns.
    rtl : int
        Networks that run on the compiled RTL as well.
    jobs : int or None
        Processes; by default one per processor.
    output : Path
        Folder for the files of networks that are wrong.
    report : Path or None
        File for the figures, with command, versions and date.
    json : bool
    """
    check_least("--random", networks, 1)
    check_least("--rtl", rtl, 0)
    check_least("--jobs", jobs, 1)
    if rtl > networks:
        raise InputError(f"--rtl must be at most --random ({networks}), not {rtl}")
    name = target or DEFAULT_TARGET
    configuration = find_target(name).configuration
    options = {} if jobs is None else {"processes": jobs}
    campaign = Campaign(
        networks=networks, seed=seed, configuration=configuration, form=form, rtl=rtl, **options
    )
    with console.progress(f"random networks on {name}", networks) as advance:
        tally = run(campaign, advance)
    found = []
    for outcome in tally.findings[:MOST_SHRUNK]:
        with console.step(f"making network {outcome.seed} smaller"):
            finding = minimal(campaign, outcome, output)
        found.append(
            {
                "seed": outcome.seed,
                "format": finding.form,
                "status": outcome.status,
                "reason": outcome.reason,
                "mismatches": outcome.mismatches + (outcome.rtl_mismatches or 0),
                "layers": list(finding.layers),
                "file": str(finding.file),
                "command": _repeats(outcome.seed, name, form, bool(outcome.rtl_mismatches)),
            }
        )
    result = {
        **figures(tally, configuration),
        "wrong": len(tally.findings),
        "findings": found,
        "seed": seed,
        "target": name,
        "format": form or "tflite and onnx",
        "fingerprint": configuration.fingerprint,
    }
    if configuration.logarithmic is not None:
        result["format"] = configuration.number_format
    if report is not None:
        reports.write_file(report, reports.command_line(), result)
    if json:
        console.print_json(result)
    else:
        _show(result)
    if tally.findings:
        raise typer.Exit(1)


def _repeats(seed: int, target: str, form: str | None, rtl: bool) -> str:
    words = [f"slipstick verify --random 1 --seed {seed} --target {target}"]
    words += [f"--format {form}"] if form else []
    words += ["--rtl 1"] if rtl else []
    return " ".join(words)


def _show(result: dict[str, Any]) -> None:
    rows = [[name, count] for name, count in result["coverage"].items()]
    console.print_table(
        f"{result['networks']} random networks on {result['target']}: decisions of the compiler",
        {"decision": "text", "networks": "right"},
        rows,
    )
    for reason, count in result["refused"].items():
        console.print_line(f"{count:,} refused: {reason}")
    few = [name for name, count in result["coverage"].items() if count < SMALLEST_SHARE]
    if few:
        console.print_line(f"taken by fewer than {SMALLEST_SHARE} networks: {', '.join(few)}")
    for finding in result["findings"]:
        what = finding["reason"] or f"{finding['mismatches']:,} codes differ"
        console.print_line(
            f"network {finding['seed']} ({finding['format']}), {finding['status']}: {what};"
            f" smallest file {finding['file']} ({', '.join(finding['layers'])})"
        )
        console.print_line(f"  repeat: {finding['command']}")
    rtl = result["rtl"]
    console.print_line(
        f"{result['codes_compared']:,} codes compared, {result['total_mismatches']:,} differ;"
        f" {rtl['networks']:,} networks on the RTL, {rtl['mismatches']:,} codes differ"
    )
