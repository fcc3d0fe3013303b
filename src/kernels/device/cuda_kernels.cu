#include "kernels/device/cuda_kernels.h"
#include "kernels/device/head.h"
#include "kernels/device/head_memory.h"
#include "kernels/device/index_kernels.h"
#include "kernels/device/launch.cuh"

namespace hsm::kernels::device {
namespace {

constexpr int kThreads = 256;

template <class Body>
__global__ void run_indices(int64_t count, Body body) {
  const int64_t step = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count; i += step) body(i);
}

/// Launches a body for an index; see IndexKernels.
class CudaLaunch {
 public:
  explicit CudaLaunch(Stream stream) : stream_(stream) {}

  template <class Body>
  void operator()(int64_t count, const Body& body) const {
    if (count == 0) return;
    constexpr int64_t kMostIndexBlocks = 4096;
    const auto blocks = static_cast<unsigned>(smaller(divide_up<int64_t>(count, kThreads), kMostIndexBlocks));
    run_indices<<<blocks, kThreads, 0, stream_>>>(count, body);
    check_cuda(cudaGetLastError(), "kernel over rows or parameters");
    if (synchronous_launches()) check_cuda(cudaStreamSynchronize(stream_), "kernel over rows or parameters");
  }

 private:
  Stream stream_;
};

/// P: what the head computes with.
template <class P>
class CudaKernels final : public IndexKernels<CudaLaunch> {
 public:
  CudaKernels(ElementType type, int device, Stream stream)
      : IndexKernels(CudaLaunch(stream), type), stream_(stream) {
    int bytes = 0;
    check_cuda(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
               "shared memory of cuda:" + std::to_string(device));
    shared_bytes_ = bytes;
  }

  int64_t head_scratch_bytes(const HeadSizes& sizes) const override {
    return head_memory<P>(plan(sizes), nullptr).bytes;
  }

  void head(const HeadPass& pass) override {
    const HeadArgs<P> args = head_args<P>(plan(pass.sizes), pass);
    launch_head_loss<P>(args, shared_bytes_, stream_);
    launch_head_gradients<P>(args, shared_bytes_, stream_);
  }

  void head_scores(const HeadPass& pass, float* root, float* leaf) override {
    const HeadArgs<P> args = head_args<P>(plan(pass.sizes), pass);
    launch_head_loss<P>(args, shared_bytes_, stream_);
    this->launch_(pass.sizes.tokens,
                  TokenScores<float>{args.state, args.in.targets, args.plan.sizes.clusters, root, leaf});
  }

 private:
  HeadPlan plan(const HeadSizes& sizes) const {
    return plan_head(sizes, head_tiles<P>(sizes.dim, shared_bytes_));
  }

  Stream stream_;
  int64_t shared_bytes_ = 0;
};

}  // namespace

std::unique_ptr<DeviceKernels> make_cuda_kernels(Precision precision, int device, Stream stream) {
  const ElementType type = element_type(precision);
  switch (precision) {
    case Precision::tf32:
      return std::make_unique<CudaKernels<Tf32>>(type, device, stream);
    case Precision::bf16:
      return std::make_unique<CudaKernels<Bf16>>(type, device, stream);
    case Precision::fp16:
      return std::make_unique<CudaKernels<Fp16>>(type, device, stream);
    default:
      return std::make_unique<CudaKernels<Fma<float>>>(type, device, stream);
  }
}

}  // namespace hsm::kernels::device
