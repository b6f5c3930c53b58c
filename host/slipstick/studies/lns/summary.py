"""The study's figures as its report has them: errors beside the founding ones, means, repair."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .mnist import LAST_EPOCHS, Outcome, Study
from .trainers import Arithmetic

FOUNDING = {
    Arithmetic.FLOAT32: 2.14,
    Arithmetic.PRODUCTS: 2.12,
    Arithmetic.EVERYWHERE: 3.62,
    Arithmetic.COMPENSATED: 2.29,
}
"""Error rates of the founding work, in percent."""


def summarise(study: Study, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """The figures as the report has them; means are over runs that are complete.

    ``table`` and ``repaired`` are the table's format; ``sweep`` has the runs of the others, and
    ``formats`` the means of all.
    """
    rows, sweep = [], []
    for arithmetic in study.arithmetics:
        of_row = [o for o in outcomes if o.run.arithmetic is arithmetic and o.errors]
        table = [o for o in of_row if o.run.lns == study.lns]
        complete = [o for o in table if len(o.errors) == study.epochs]
        rows.append(
            {
                "arithmetic": arithmetic.value,
                "founding_error_percent": FOUNDING.get(arithmetic),
                "seeds": {str(o.run.seed): o.errors for o in table},
                "complete_seeds": len(complete),
                "last_error_percent": _mean([o.last for o in complete]),
                "last_epochs_error_percent": _mean([o.last_mean for o in complete]),
            }
        )
        sweep += [
            {
                "arithmetic": arithmetic.value,
                "format": o.run.lns.name,
                "bits": o.run.lns.bits,
                "seed": o.run.seed,
                "errors": o.errors,
                "complete": len(o.errors) == study.epochs,
            }
            for o in of_row
            if o.run.lns != study.lns
        ]
    finished = sum(len(o.errors) == study.epochs for o in outcomes)
    return {
        "complete": finished == len(study.runs()),
        "runs_complete": finished,
        "runs": len(study.runs()),
        "format": study.lns.name,
        "network": "784-128-10",
        "epochs": study.epochs,
        "seeds": study.seeds,
        "training_images": study.images,
        "validation_images": study.validation,
        "batch": study.batch,
        "rate": study.rate,
        "averaged_epochs": min(LAST_EPOCHS, study.epochs),
        "repaired": _shares({row["arithmetic"]: row["last_epochs_error_percent"] for row in rows}),
        "table": rows,
        "formats": _formats(study, outcomes),
        "sweep": sweep,
    }


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None


def _formats(study: Study, outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Means over the complete runs of each format, and what each arithmetic regains in it."""
    complete = [o for o in outcomes if len(o.errors) == study.epochs]
    exact = [o.last_mean for o in complete if o.run.arithmetic is Arithmetic.FLOAT32]
    found = []
    for lns in sorted({o.run.lns for o in complete}, key=lambda lns: (lns.bits, lns.fraction_bits)):
        means = {
            arithmetic.value: [
                o.last_mean for o in complete if (o.run.arithmetic, o.run.lns) == (arithmetic, lns)
            ]
            for arithmetic in study.arithmetics
            if arithmetic is not Arithmetic.FLOAT32
        }
        errors = {name: _mean(values) for name, values in means.items()}
        found.append(
            {
                "format": lns.name,
                "bits": lns.bits,
                "complete_seeds": {name: len(values) for name, values in means.items()},
                "last_epochs_error_percent": errors,
                "repaired": _shares({Arithmetic.FLOAT32.value: _mean(exact)} | errors),
            }
        )
    return found


def _shares(means: Mapping[str, float | None]) -> dict[str, float | None]:
    """Computes the share that each arithmetic regains, of those that are meant to."""
    return {
        arithmetic.value: repaired(means, arithmetic)
        for arithmetic in (Arithmetic.COMPENSATED, Arithmetic.COMPLEMENTED)
        if arithmetic.value in means
    }


def repaired(means: Mapping[str, float | None], by: Arithmetic) -> float | None:
    """The share of what logarithms everywhere cost beyond float32 that an arithmetic regains."""
    least, most, found = (
        means.get(name.value) for name in (Arithmetic.FLOAT32, Arithmetic.EVERYWHERE, by)
    )
    if least is None or most is None or found is None or most <= least:
        return None
    return (most - found) / (most - least)
