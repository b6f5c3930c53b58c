"""Einsum: sums of products over named axes, on the host."""

import string

from .operator import Operator
from .values import Activation, Coded, Constant, Pending, Result, Shape, Value, shape_of


def _terms(operator: Operator) -> tuple[list[str], str]:
    """The axes of each input, and of the output, a letter each."""
    equation = operator.text("equation", "").replace(" ", "")
    left, arrow, output = equation.partition("->")
    terms = left.split(",")
    if not set("".join((*terms, output))) <= set(string.ascii_letters):
        operator.refuse(f"equation must name each axis by a letter, not {equation!r:.80}")
    if not arrow:
        # without an output it has the letters that stand once, in their order
        output = "".join(sorted(letter for letter in set(left) - {","} if left.count(letter) == 1))
    if len(terms) != len(operator.inputs):
        operator.reject(f"equation must have {len(operator.inputs)} inputs, not {equation!r:.80}")
    if len(set(output)) < len(output) or not set(output) <= set(left):
        operator.reject(f"equation must have an output of its inputs' axes, not {equation!r:.80}")
    return terms, output


def einsum(operator: Operator) -> Value:
    """Einsum without an ellipsis."""
    operator.require_inputs(1, 16)
    terms, output = _terms(operator)
    values = [operator.value(index) for index in range(len(terms))]
    known = [isinstance(value, Constant | Coded) for value in values]
    if all(known):
        operator.refuse("one input must be computed, and all are constants")
    if operator.lead:
        free = next(item for item in string.ascii_letters if item not in "".join(terms))
        terms = [
            term if constant else free + term for term, constant in zip(terms, known, strict=True)
        ]
        output = free + output
    sizes: dict[str, int] = {}
    for term, value in zip(terms, values, strict=True):
        shape = shape_of(value)
        if len(shape) != len(term) or any(
            sizes.setdefault(letter, size) != size for letter, size in zip(term, shape, strict=True)
        ):
            operator.reject(f"axes {term!r} must be those of an input of shape {shape}")
    batch = output[:1]
    for term, constant in zip(terms, known, strict=True):
        if batch in term if constant else term[:1] != batch or term.count(batch) > 1:
            operator.refuse(f"the batch must be the first axis of all, not {terms} -> {output!r}")
    shape = tuple(sizes[letter] for letter in output)
    return _node(operator, values, f"{','.join(terms)}->{output}", shape)


def _node(operator: Operator, values: list[Value], equation: str, shape: Shape) -> Pending:
    builder = operator.builder

    def emit(wanted: Result) -> Activation:
        names = [
            builder.real_constant(f"{operator.name}/operand{index}", value)
            if isinstance(value, Constant | Coded)
            else builder.natural(builder.real(value)).tensor
            for index, value in enumerate(values)
        ]
        made = builder.tensor(wanted.name, shape, wanted.dtype, wanted.quantization)
        attributes: dict[str, object] = {"equation": equation}
        if wanted.clamp is not None:
            attributes["clamp"] = wanted.clamp
        builder.node(operator.name, "einsum", tuple(names), made, attributes)
        return Activation(made, shape)

    return Pending(operator.output, shape, emit)
