#pragma once
#include "kernels/device/launch.cuh"

namespace hsm::kernels::device {

constexpr int kIndexThreads = 256;

template <class Body>
__global__ void run_indices(int64_t count, Body body) {
  const int64_t step = int64_t{gridDim.x} * kIndexThreads;
  for (int64_t i = int64_t{blockIdx.x} * kIndexThreads + threadIdx.x; i < count; i += step) body(i);
}

/// Launches a body for an index; see IndexKernels.
class CudaLaunch {
 public:
  explicit CudaLaunch(Stream stream) : stream_(stream) {}

  template <class Body>
  void operator()(int64_t count, const Body& body) const {
    if (count == 0) return;
    constexpr int64_t kMostIndexBlocks = 4096;
    const auto blocks =
        static_cast<unsigned>(smaller(divide_up<int64_t>(count, kIndexThreads), kMostIndexBlocks));
    run_indices<<<blocks, kIndexThreads, 0, stream_>>>(count, body);
    check_cuda(cudaGetLastError(), "kernel over rows or parameters");
    if (synchronous_launches()) check_cuda(cudaStreamSynchronize(stream_), "kernel over rows or parameters");
  }

 private:
  Stream stream_;
};

}  // namespace hsm::kernels::device
