#pragma once
#include <memory>

#include "kernels/device/decode_kernels.h"
#include "kernels/device/launch.h"

namespace hsm::kernels::device {

/// Decoding's kernels on a CUDA device, launched on `stream`, which belongs to it and outlives the object.
/// Errors as make_cuda_kernels().
std::unique_ptr<DecodeKernels> make_cuda_decode_kernels(Stream stream);

}  // namespace hsm::kernels::device
