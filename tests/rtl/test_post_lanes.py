"""The post engine's lanes: what must be in time for them."""

import pytest
from slipstick_rtl.config import Configuration
from slipstick_rtl.postprocess.distances import BYTE_DISTANCE
from slipstick_rtl.postprocess.lanes import PostLanes


@pytest.mark.parametrize("halved_tables", [0, 1])
@pytest.mark.parametrize("lanes", [4, 8, 16, 32, 64])
def test_the_last_table_is_written_before_its_first_look(lanes: int, halved_tables: int) -> None:
    configuration = Configuration(
        rows=lanes, columns=lanes, lanes=lanes, halved_tables=halved_tables
    )
    assert PostLanes(configuration=configuration).table_latency <= BYTE_DISTANCE
