"""The study's figures as its report has them: errors beside the founding ones, means, repair."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from .lns_mnist import LAST_EPOCHS, Outcome, Study
from .lns_trainers import Arithmetic

FOUNDING = {
    Arithmetic.FLOAT32: 2.14,
    Arithmetic.PRODUCTS: 2.12,
    Arithmetic.EVERYWHERE: 3.62,
    Arithmetic.COMPENSATED: 2.29,
}
"""Error rates of the founding work, in percent."""


def summarise(study: Study, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """The figures as the report has them; means are over runs that are complete."""
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
        "repaired": {
            arithmetic.value: repaired(rows, arithmetic)
            for arithmetic in study.arithmetics
            if arithmetic in (Arithmetic.COMPENSATED, Arithmetic.COMPLEMENTED)
        },
        "table": rows,
        "sweep": sweep,
    }


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None


def repaired(rows: Sequence[dict[str, Any]], by: Arithmetic) -> float | None:
    """The share of what logarithms everywhere cost beyond float32 that an arithmetic regains."""
    means = {row["arithmetic"]: row["last_epochs_error_percent"] for row in rows}
    least, most, found = (
        means.get(name.value) for name in (Arithmetic.FLOAT32, Arithmetic.EVERYWHERE, by)
    )
    if least is None or most is None or found is None or most <= least:
        return None
    return (most - found) / (most - least)
