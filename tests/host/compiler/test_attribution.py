"""Each cycle is one layer's, also where layers take turns."""

from slipstick.compiler.timing.attribution import LayerTimes, attribute


def _array(*spans: tuple[int, int]) -> LayerTimes:
    return LayerTimes([start for start, _ in spans], [landed for _, landed in spans])


def test_layers_one_after_the_other():
    layers = [_array((10, 50), (50, 90)), LayerTimes(post_ends=[100, 130]), _array((120, 160))]
    assert attribute(layers, 200, 5) == [85, 30, 80]


def test_layers_that_take_turns():
    first, second = _array((0, 20), (20, 40), (80, 100)), _array((40, 80), (100, 140))
    assert attribute([first, second], 150) == [60, 90]


def test_what_the_post_processor_does_alone_counts_while_the_array_waits():
    sums = LayerTimes(post_ends=[30, 70, 95])
    # its rows are read by tiles of the layer behind it, between tiles of the one before it
    layers = [_array((0, 20), (40, 60)), sums, _array((50, 80), (90, 120))]
    assert attribute(layers, 121) == [60, 10, 51]
    assert attribute([_array((0, 20)), sums], 100) == [20, 80]


def test_nothing_works():
    assert attribute([LayerTimes()], 10) == [0]
