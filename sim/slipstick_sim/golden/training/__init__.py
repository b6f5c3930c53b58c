"""Integer training, bit for bit: the definition that gateware is held to, as pure functions.

``docs/explanation/training.md`` has the formulas, widths and sources. Sums are int32, everything
that is stored is int8 with a power of two for scale; each function says what it rounds and how.
"""

from .convolution import bias_gradient, convolve_forward, input_gradient, weight_gradient
from .depthwise import depthwise_forward, depthwise_input_gradient, depthwise_weight_gradient
from .elementwise import aligned_sum, relu_gradient
from .finishing import add_bias, finish_errors, finish_forward, largest_error, largest_forward
from .geometry import Window
from .logarithmic import LogarithmicProducts, codes_of_wide, weights_of_masters, wide_codes
from .logarithmic_depthwise import (
    logarithmic_depthwise_forward,
    logarithmic_depthwise_input_gradient,
    logarithmic_depthwise_weight_gradient,
)
from .loss import SHARE_PLACES, loss_gradient, probabilities
from .pooling import average_shift, max_pool, max_pool_gradient, sum_pool, sum_pool_gradient
from .rounding import (
    LARGEST_CODE,
    LARGEST_SUM,
    codes_of,
    next_exponent,
    round_half_even,
    round_pseudo_stochastic,
    shift_between,
    shift_for,
)
from .updates import (
    BIAS_PLACES,
    LARGEST_MASTER,
    MASTER_PLACES,
    bias_of,
    merge_gradients,
    pack_masters,
    unpack_masters,
    update,
    update_with_momentum,
    weights_of,
)

__all__ = [
    "BIAS_PLACES",
    "LARGEST_CODE",
    "LARGEST_MASTER",
    "LARGEST_SUM",
    "LogarithmicProducts",
    "MASTER_PLACES",
    "SHARE_PLACES",
    "Window",
    "add_bias",
    "aligned_sum",
    "average_shift",
    "bias_gradient",
    "bias_of",
    "codes_of",
    "codes_of_wide",
    "convolve_forward",
    "depthwise_forward",
    "depthwise_input_gradient",
    "depthwise_weight_gradient",
    "finish_errors",
    "finish_forward",
    "input_gradient",
    "largest_error",
    "largest_forward",
    "logarithmic_depthwise_forward",
    "logarithmic_depthwise_input_gradient",
    "logarithmic_depthwise_weight_gradient",
    "loss_gradient",
    "max_pool",
    "max_pool_gradient",
    "merge_gradients",
    "pack_masters",
    "next_exponent",
    "probabilities",
    "relu_gradient",
    "round_half_even",
    "round_pseudo_stochastic",
    "shift_between",
    "shift_for",
    "sum_pool",
    "sum_pool_gradient",
    "unpack_masters",
    "update",
    "update_with_momentum",
    "weight_gradient",
    "weights_of",
    "weights_of_masters",
    "wide_codes",
]
