#pragma once

struct CUstream_st;

namespace hsm::kernels::device {

/// A CUDA stream (cudaStream_t), without CUDA's headers.
using Stream = CUstream_st*;

}  // namespace hsm::kernels::device
