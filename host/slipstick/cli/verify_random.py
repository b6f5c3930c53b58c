"""``slipstick verify --random``: random networks held against their references."""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import typer

from .. import console, reports
from ..cluster.opening import open_cluster_pool
from ..errors import InputError
from ..targets import DEFAULT_TARGET, find_target
from ..verify.random_networks.campaign import MOST_SHRUNK, Campaign, figures, minimal, run
from ..verify.random_networks.network_check import Outcome
from .options import check_least

SMALLEST_SHARE = 100
"""A decision of the compiler that fewer networks took is named."""


@dataclass(frozen=True)
class Request:
    """The options of a run.

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
    cluster : str or None
        Whose workers check; None: processes of this machine.
    """

    networks: int
    seed: int
    target: str | None
    form: str | None
    rtl: int
    jobs: int | None
    output: Path
    report: Path | None
    cluster: str | None = None

    def __post_init__(self) -> None:
        check_least("--random", self.networks, 1)
        check_least("--rtl", self.rtl, 0)
        check_least("--jobs", self.jobs, 1)
        if self.rtl > self.networks:
            raise InputError(f"--rtl must be at most --random ({self.networks}), not {self.rtl}")

    @property
    def name(self) -> str:
        """The target's name."""
        return self.target or DEFAULT_TARGET

    def campaign(self) -> Campaign:
        """Returns the networks that are to be checked."""
        configuration = find_target(self.name).configuration
        options = {} if self.jobs is None else {"processes": self.jobs}
        return Campaign(
            networks=self.networks,
            seed=self.seed,
            configuration=configuration,
            form=self.form,
            rtl=self.rtl,
            **options,
        )


def refuse(options: Mapping[str, object], why: str) -> None:
    """InputError if one of some options has a value."""
    for option, value in options.items():
        if value is not None:
            raise InputError(f"{option} {why}")


def verify_random(request: Request, *, json: bool) -> None:
    """Checks random networks and prints what came of them; exits with 1 if one is wrong."""
    campaign = request.campaign()
    with ExitStack() as stack:
        check = run
        if request.cluster is not None:
            pool = stack.enter_context(open_cluster_pool(request.cluster))
            from ..cluster import verification

            check = partial(verification.check_networks, pool)
        what = f"random networks on {request.name}"
        tally = check(campaign, stack.enter_context(console.progress(what, request.networks)))
    configuration = campaign.configuration
    number_format = configuration.number_format
    result = {
        **figures(tally, configuration),
        "wrong": len(tally.findings),
        "findings": [_smallest(campaign, request, each) for each in tally.findings[:MOST_SHRUNK]],
        "seed": request.seed,
        "target": request.name,
        "format": number_format if configuration.logarithmic else request.form or "tflite, onnx",
        "fingerprint": configuration.fingerprint,
    }
    if request.report is not None:
        reports.write_file(request.report, reports.command_line(), result)
    if json:
        console.print_json(result)
    else:
        _show(result)
    if tally.findings:
        raise typer.Exit(1)


def _smallest(campaign: Campaign, request: Request, outcome: Outcome) -> dict[str, Any]:
    """A network that is wrong, with its smallest file and the command that repeats it."""
    with console.step(f"making network {outcome.seed} smaller"):
        finding = minimal(campaign, outcome, request.output)
    on_rtl = bool(outcome.rtl_mismatches)
    return {
        "seed": outcome.seed,
        "format": finding.form,
        "status": outcome.status,
        "reason": outcome.reason,
        "mismatches": outcome.mismatches + (outcome.rtl_mismatches or 0),
        "layers": list(finding.layers),
        "file": str(finding.file),
        "command": _repeats(outcome.seed, request.name, request.form, on_rtl),
    }


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
