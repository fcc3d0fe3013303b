#pragma once
#include <algorithm>
#include <cstdlib>
#include <string>

#include "base/error.h"
#include "kernels/device/cuda_context.cuh"
#include "kernels/device/launch.h"

namespace hsm::kernels::device {

/// Throws when a CUDA call failed: ResourceError when the device is out of memory, else a fault that names
/// the call.
inline void check_cuda(cudaError_t status, const std::string& what) {
  if (status == cudaSuccess) return;
  const std::string message = what + ": " + cudaGetErrorString(status);
  if (status == cudaErrorMemoryAllocation) throw ResourceError(message);
  throw Error(ExitCode::fault, message);
}

/// Whether each launch is waited for, to find the one that fails: HSM_CUDA_SYNC=1.
inline bool synchronous_launches() {
  static const bool on = [] {
    const char* value = std::getenv("HSM_CUDA_SYNC");
    return value != nullptr && std::string(value) == "1";
  }();
  return on;
}

/// Blocks of a grid at most: four for each of 132 multiprocessors. More items than blocks take turns.
constexpr int64_t kMostBlocks = 528;

/// Starts Body over args; `name` is for errors. Nothing to do: no launch.
template <class Body>
void launch(const char* name, const typename Body::Args& args, Stream stream) {
  const auto blocks = static_cast<unsigned>(std::min<int64_t>(Body::items(args), kMostBlocks));
  if (blocks == 0) return;
  const int64_t shared = Body::shared_bytes(args);
  check_cuda(cudaFuncSetAttribute(run_body<Body>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(shared)),
             std::string(name) + ", " + std::to_string(shared) + " bytes of shared memory");
  run_body<Body><<<blocks, Body::kThreads, static_cast<size_t>(shared), stream>>>(args);
  check_cuda(cudaGetLastError(), name);
  if (synchronous_launches()) check_cuda(cudaStreamSynchronize(stream), name);
}

}  // namespace hsm::kernels::device
