#pragma once
#include <ATen/core/Tensor.h>

#include <memory>

#include "decode/row_engine.h"
#include "gpu/engine/decode_model.h"

namespace hsm {

/// Where a model is decoded on a device, with its own copy of `weights` there. The layout outlives the
/// object. UsageError when the end symbol does not lie in the shortlist.
std::unique_ptr<DecodeDevice> make_decode_device(const ModelShape& shape, const HeadLayout& layout,
                                                 const WeightView& weights, int32_t end_of_sentence,
                                                 at::Device device,
                                                 std::shared_ptr<kernels::device::DecodeKernels> kernels);

}  // namespace hsm
