"""Says what a cluster cannot do."""

from ..errors import UnsupportedError
from ..program import Program


def check_independent(program: Program) -> None:
    """UnsupportedError if images must follow each other."""
    if program.variables:
        raise UnsupportedError(
            f"{program.name} keeps values from run to run, so each image needs the one before it:"
            " --cluster cannot spread them; leave it out"
        )
