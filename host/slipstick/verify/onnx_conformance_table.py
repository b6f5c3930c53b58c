"""The cases of ONNX's conformance suite that Slipstick does not pass, and why."""

from collections.abc import Mapping

UNSUPPORTED: Mapping[str, tuple[str, ...]] = {
    "types that Slipstick has not: it computes in float32, int8 and uint8": tuple(
        """
        add_int16 add_uint16 add_uint32 add_uint64 cast_BFLOAT16_to_FLOAT
        cast_DOUBLE_to_FLOAT cast_DOUBLE_to_FLOAT16 cast_FLOAT16_to_DOUBLE
        cast_FLOAT16_to_FLOAT cast_FLOAT16_to_FLOAT4E2M1 cast_FLOAT16_to_FLOAT8E4M3FN
        cast_FLOAT16_to_FLOAT8E4M3FNUZ cast_FLOAT16_to_FLOAT8E5M2
        cast_FLOAT16_to_FLOAT8E5M2FNUZ cast_FLOAT16_to_INT2 cast_FLOAT16_to_INT4
        cast_FLOAT16_to_UINT2 cast_FLOAT16_to_UINT4 cast_FLOAT4E2M1_to_FLOAT
        cast_FLOAT4E2M1_to_FLOAT16 cast_FLOAT8E4M3FNUZ_to_FLOAT
        cast_FLOAT8E4M3FNUZ_to_FLOAT16 cast_FLOAT8E4M3FN_to_FLOAT
        cast_FLOAT8E4M3FN_to_FLOAT16 cast_FLOAT8E5M2FNUZ_to_FLOAT
        cast_FLOAT8E5M2FNUZ_to_FLOAT16 cast_FLOAT8E5M2_to_FLOAT cast_FLOAT8E5M2_to_FLOAT16
        cast_FLOAT_to_BFLOAT16 cast_FLOAT_to_DOUBLE cast_FLOAT_to_FLOAT16
        cast_FLOAT_to_FLOAT4E2M1 cast_FLOAT_to_FLOAT8E4M3FN cast_FLOAT_to_FLOAT8E4M3FNUZ
        cast_FLOAT_to_FLOAT8E5M2 cast_FLOAT_to_FLOAT8E5M2FNUZ cast_FLOAT_to_INT2
        cast_FLOAT_to_INT4 cast_FLOAT_to_UINT2 cast_FLOAT_to_UINT4 cast_INT2_to_FLOAT
        cast_INT2_to_FLOAT16 cast_INT2_to_INT8 cast_INT4_to_FLOAT cast_INT4_to_FLOAT16
        cast_INT4_to_INT8 cast_UINT2_to_FLOAT cast_UINT2_to_FLOAT16 cast_UINT2_to_UINT8
        cast_UINT4_to_FLOAT cast_UINT4_to_FLOAT16 cast_UINT4_to_UINT8
        cast_e8m0_FLOAT16_to_FLOAT8E8M0 cast_e8m0_FLOAT8E8M0_to_FLOAT
        cast_e8m0_FLOAT8E8M0_to_FLOAT16 cast_e8m0_FLOAT_to_FLOAT8E8M0
        cast_no_saturate_FLOAT16_to_FLOAT8E4M3FN cast_no_saturate_FLOAT16_to_FLOAT8E4M3FNUZ
        cast_no_saturate_FLOAT16_to_FLOAT8E5M2 cast_no_saturate_FLOAT16_to_FLOAT8E5M2FNUZ
        cast_no_saturate_FLOAT_to_FLOAT8E4M3FN cast_no_saturate_FLOAT_to_FLOAT8E4M3FNUZ
        cast_no_saturate_FLOAT_to_FLOAT8E5M2 cast_no_saturate_FLOAT_to_FLOAT8E5M2FNUZ
        castlike_BFLOAT16_to_FLOAT_expanded castlike_DOUBLE_to_FLOAT16_expanded
        castlike_DOUBLE_to_FLOAT_expanded castlike_FLOAT16_to_DOUBLE_expanded
        castlike_FLOAT16_to_FLOAT4E2M1_expanded castlike_FLOAT16_to_FLOAT8E4M3FNUZ_expanded
        castlike_FLOAT16_to_FLOAT8E4M3FN_expanded
        castlike_FLOAT16_to_FLOAT8E5M2FNUZ_expanded castlike_FLOAT16_to_FLOAT8E5M2_expanded
        castlike_FLOAT16_to_FLOAT_expanded castlike_FLOAT16_to_INT2_expanded
        castlike_FLOAT16_to_INT4_expanded castlike_FLOAT16_to_UINT2_expanded
        castlike_FLOAT16_to_UINT4_expanded castlike_FLOAT4E2M1_to_FLOAT16_expanded
        castlike_FLOAT4E2M1_to_FLOAT_expanded castlike_FLOAT8E4M3FNUZ_to_FLOAT16_expanded
        castlike_FLOAT8E4M3FNUZ_to_FLOAT_expanded castlike_FLOAT8E4M3FN_to_FLOAT16_expanded
        castlike_FLOAT8E4M3FN_to_FLOAT_expanded castlike_FLOAT8E5M2FNUZ_to_FLOAT16_expanded
        castlike_FLOAT8E5M2FNUZ_to_FLOAT_expanded castlike_FLOAT8E5M2_to_FLOAT16_expanded
        castlike_FLOAT8E5M2_to_FLOAT_expanded castlike_FLOAT_to_BFLOAT16_expanded
        castlike_FLOAT_to_DOUBLE_expanded castlike_FLOAT_to_FLOAT16_expanded
        castlike_FLOAT_to_FLOAT4E2M1_expanded castlike_FLOAT_to_FLOAT8E4M3FNUZ_expanded
        castlike_FLOAT_to_FLOAT8E4M3FN_expanded castlike_FLOAT_to_FLOAT8E5M2FNUZ_expanded
        castlike_FLOAT_to_FLOAT8E5M2_expanded castlike_FLOAT_to_INT2_expanded
        castlike_FLOAT_to_INT4_expanded castlike_FLOAT_to_UINT2_expanded
        castlike_FLOAT_to_UINT4_expanded castlike_INT2_to_FLOAT16_expanded
        castlike_INT2_to_FLOAT_expanded castlike_INT2_to_INT8_expanded
        castlike_INT4_to_FLOAT16_expanded castlike_INT4_to_FLOAT_expanded
        castlike_INT4_to_INT8_expanded castlike_UINT2_to_FLOAT16_expanded
        castlike_UINT2_to_FLOAT_expanded castlike_UINT2_to_UINT8_expanded
        castlike_UINT4_to_FLOAT16_expanded castlike_UINT4_to_FLOAT_expanded
        castlike_UINT4_to_UINT8_expanded
        castlike_no_saturate_FLOAT16_to_FLOAT8E4M3FNUZ_expanded
        castlike_no_saturate_FLOAT16_to_FLOAT8E4M3FN_expanded
        castlike_no_saturate_FLOAT16_to_FLOAT8E5M2FNUZ_expanded
        castlike_no_saturate_FLOAT16_to_FLOAT8E5M2_expanded
        castlike_no_saturate_FLOAT_to_FLOAT8E4M3FNUZ_expanded
        castlike_no_saturate_FLOAT_to_FLOAT8E4M3FN_expanded
        castlike_no_saturate_FLOAT_to_FLOAT8E5M2FNUZ_expanded
        castlike_no_saturate_FLOAT_to_FLOAT8E5M2_expanded celu_bfloat16 celu_float16
        dequantizelinear_e4m3fn dequantizelinear_e4m3fn_float16
        dequantizelinear_e4m3fn_zero_point dequantizelinear_e5m2 dequantizelinear_float4e2m1
        dequantizelinear_int16 dequantizelinear_int2 dequantizelinear_int4
        dequantizelinear_uint16 dequantizelinear_uint2 dequantizelinear_uint4 div_int16
        div_int32_trunc div_uint16 div_uint32 div_uint64 einsum_batch_diagonal
        einsum_batch_matmul einsum_batch_matmul_bfloat16 einsum_inner_prod einsum_scalar
        einsum_sum einsum_sum_bfloat16 einsum_transpose einsum_transpose_bfloat16
        flexattention_double_expanded_ver26 flexattention_fp16_expanded_ver26 max_float16
        max_float64 max_int16 max_int32 max_int64 max_uint16 max_uint32 max_uint64
        min_float16 min_float64 min_int16 min_int32 min_int64 min_uint16 min_uint32
        min_uint64 mul_int16 mul_uint16 mul_uint32 mul_uint64 pow_types_float32_uint32
        pow_types_float32_uint64 pow_types_int32_float32 pow_types_int32_int32
        pow_types_int64_float32 pow_types_int64_int64 quantizelinear_blocked_symmetric
        quantizelinear_e4m3fn quantizelinear_e5m2 quantizelinear_float4e2m1
        quantizelinear_int16 quantizelinear_int2 quantizelinear_int4 quantizelinear_uint16
        quantizelinear_uint2 quantizelinear_uint4
        reduce_log_sum_exp_default_axes_keepdims_example
        reduce_log_sum_exp_default_axes_keepdims_random
        reduce_log_sum_exp_do_not_keepdims_example reduce_log_sum_exp_do_not_keepdims_random
        reduce_log_sum_exp_keepdims_example reduce_log_sum_exp_keepdims_random
        reduce_log_sum_exp_negative_axes_keepdims_example
        reduce_log_sum_exp_negative_axes_keepdims_random reduce_max_bool_inputs
        reduce_max_empty_set_bool reduce_min_bool_inputs sub_int16 sub_uint16
        sub_uint32 sub_uint64 swiglu_float16_expanded where_long_example wrap_pad
        """.split()
    ),
    "tensors without elements": tuple(
        """
        reduce_l1_empty_set reduce_l1_empty_set_expanded reduce_l2_empty_set
        reduce_log_sum_empty_set reduce_log_sum_empty_set_expanded
        reduce_log_sum_exp_empty_set reduce_max_empty_set reduce_min_empty_set
        reduce_prod_empty_set reduce_sum_empty_set
        reduce_sum_empty_set_non_reduced_axis_zero reduce_sum_square_empty_set
        reduce_sum_square_empty_set_expanded reshape_allowzero_reordered
        rotary_embedding_3d_input_expanded rotary_embedding_expanded
        rotary_embedding_interleaved_expanded rotary_embedding_no_position_ids_expanded
        rotary_embedding_no_position_ids_interleaved_expanded slice_start_out_of_bounds
        split_zero_size_splits_opset13 split_zero_size_splits_opset18
        """.split()
    ),
    "codes as whole numbers: added, divided, clipped or cast without a scale": tuple(
        """
        add_int8 add_uint8 clip_default_int8_inbounds clip_default_int8_max
        clip_default_int8_min div_int8 div_uint8 dynamicquantizelinear_expanded
        dynamicquantizelinear_max_adjusted_expanded
        dynamicquantizelinear_min_adjusted_expanded max_int8 max_uint8 min_int8 min_uint8
        mul_int8 mul_uint8 sub_int8 sub_uint8
        """.split()
    ),
    "the output is known without any input: no network": tuple(
        """
        constant shape shape_clip_end shape_clip_start shape_end_1 shape_end_negative_1
        shape_example shape_start_1 shape_start_1_end_2 shape_start_1_end_negative_1
        shape_start_greater_than_end shape_start_negative_1
        """.split()
    ),
    "three spatial dimensions": tuple(
        """
        averagepool_3d_default
        averagepool_3d_dilations_large_count_include_pad_is_0_ceil_mode_is_False
        averagepool_3d_dilations_large_count_include_pad_is_0_ceil_mode_is_True
        averagepool_3d_dilations_large_count_include_pad_is_1_ceil_mode_is_False
        averagepool_3d_dilations_large_count_include_pad_is_1_ceil_mode_is_True
        averagepool_3d_dilations_small convtranspose_3d maxpool_3d_default
        maxpool_3d_dilations maxpool_3d_dilations_use_ref_impl
        maxpool_3d_dilations_use_ref_impl_large
        """.split()
    ),
    "training": tuple(
        """
        batchnorm_epsilon_training_mode batchnorm_example_training_mode training_dropout
        training_dropout_default training_dropout_default_mask training_dropout_mask
        training_dropout_zero_ratio training_dropout_zero_ratio_mask
        """.split()
    ),
    "a second output: the mask of Dropout, the places of MaxPool": tuple(
        """
        dropout_default_mask dropout_default_mask_ratio
        maxpool_with_argmax_2d_precomputed_pads maxpool_with_argmax_2d_precomputed_strides
        """.split()
    ),
    "the batch before the steps: onnxruntime has no such LSTM or GRU": tuple(
        """
        gru_batchwise lstm_batchwise
        """.split()
    ),
    "sequences and optional tensors": tuple(
        """
        identity_opt identity_sequence
        """.split()
    ),
    "opsets before 10 have no quantised networks": tuple(
        """
        shrink_hard shrink_soft
        """.split()
    ),
    "onnxruntime is followed: it counts whole pixels of the output, the case not": tuple(
        """
        resize_downsample_scales_cubic_align_corners
        resize_downsample_scales_linear_align_corners
        """.split()
    ),
}
"""Cases of operators that the front-end reads, by the reason; names without ``test_``."""
