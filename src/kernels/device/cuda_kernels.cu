#include "kernels/device/cuda_kernels.h"
#include "kernels/device/cuda_launch.cuh"
#include "kernels/device/head.h"
#include "kernels/device/head_memory.h"
#include "kernels/device/index_kernels.h"

namespace hsm::kernels::device {
namespace {

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
