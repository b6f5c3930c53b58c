"""SCALE-Sim's figure for a layer: the cycles of its weight-stationary array, never starved."""

import numpy as np

from ..errors import DeviceError
from .topologies import TopologyLayer


def scalesim_cycles(layer: TopologyLayer, rows: int, columns: int) -> int:
    """Cycles that SCALE-Sim counts for a layer on an array of rows x columns.

    Its topologies tell the folds, and its weight-stationary compute system lays their demands out,
    cycle by cycle. Their number is its report's "Total Cycles" where bandwidth is not limited
    ("CALC"): its memories never stall the array then, whatever their sizes, so they are left out,
    and with them hours of bookkeeping for each access. Each fold counts the loading of its weights,
    and the filling and draining of the array.

    Parameters
    ----------
    layer : TopologyLayer
    rows, columns : int

    Raises
    ------
    DeviceError
        If it is not installed.
    """
    try:
        from scalesim.compute.systolic_compute_ws import systolic_compute_ws
        from scalesim.scale_config import scale_config
        from scalesim.topology_utils import topologies
    except ImportError as error:
        raise DeviceError(f"SCALE-Sim needs slipstick[bench]: {error}") from error
    topology = topologies()
    sizes = (layer.height, layer.width, *layer.kernel, layer.channels, layer.filters)
    strides = (layer.stride, layer.stride)
    topology.append_layer_entry([layer.name, *sizes, *strides])
    reduction, filters, pixels = topology.calc_spatio_temporal_params("ws", 0)
    configuration = scale_config()
    configuration.set_arr_dims(rows, columns)
    configuration.set_dataflow("ws")
    configuration.force_valid()
    array = systolic_compute_ws()
    # addresses, which the number of cycles does not depend on: one number, shown as a matrix
    address = np.zeros(1)
    array.set_params(
        config_obj=configuration,
        ifmap_op_mat=np.broadcast_to(address, (pixels, reduction)),
        filter_op_mat=np.broadcast_to(address, (reduction, filters)),
        ofmap_op_mat=np.broadcast_to(address, (pixels, filters)),
    )
    array.create_ofmap_demand_mat()
    # its clock counts from 0, and so does the report
    return len(array.ofmap_demand_matrix) - 1
