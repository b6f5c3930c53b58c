"""Names the operators of an ONNX network that are not read, and what would help."""

from collections.abc import Collection, Iterable

from ...errors import UnsupportedError
from ..files import quoted
from .reader import DOMAINS, RawNode

LISTED = "docs/reference/onnx.md"
_KINDS = (
    (("If", "Loop", "Scan"), "control flow", "export the network without branches and loops"),
    (("LSTM", "GRU", "RNN"), "a recurrent layer", "run it beside Slipstick"),
    (
        ("NonMaxSuppression", "TopK", "NonZero", "Unique"),
        "of a result whose size or order depends on the data",
        "end the network before it, and choose on the host",
    ),
    (
        ("RandomNormal", "RandomUniform", "Bernoulli", "Multinomial"),
        "random",
        "export the network for inference",
    ),
)
_SIZES = ("Shape", "Size")
"""Operators whose results are known before the network runs."""


def refuse_unknown(
    nodes: Iterable[RawNode],
    inputs: Collection[str],
    known: Collection[tuple[str, str]],
    name: str,
) -> None:
    """UnsupportedError if operators of computed values are not read; it names the first, and more.

    What else is wrong with the network may be because of them, and need not be mended.

    Parameters
    ----------
    nodes : iterable of RawNode
        Those that the outputs depend on.
    inputs : collection of str
        The network's.
    known : collection of (domain, operator)
        Those that are read.
    name : str
        The network's, for messages.
    """
    computed, unknown = set(inputs), list[RawNode]()
    for node in nodes:
        if node.operator in _SIZES or not computed & set(node.inputs):
            continue
        computed |= set(node.outputs)
        if (node.domain, node.operator) not in known:
            unknown.append(node)
    if not unknown:
        return
    first = unknown[0]
    label = f"{name}: {first.operator} (node {first.index}"
    label += f" {quoted(first.name)})" if first.name else ")"
    others = dict.fromkeys(node.operator for node in unknown if node.operator != first.operator)
    more = f", nor {', '.join(list(others)[:4])}" if others else ""
    if first.domain not in DOMAINS:
        rule = f"operator of domain {quoted(first.domain)} must be of a domain in {DOMAINS}{more}"
        raise UnsupportedError(f"{label}: {rule}")
    what, hint = next(
        ((f", {what},", f": {hint}") for names, what, hint in _KINDS if first.operator in names),
        ("", ""),
    )
    raise UnsupportedError(
        f"{label}{what} must be one of the operators that {LISTED} lists, and is not{more}{hint}"
    )
