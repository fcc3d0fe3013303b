#include "device/place.h"

#ifdef HSM_WITH_CUDA
#include <cuda_runtime_api.h>
#endif

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "kernels/cuda_device.h"
#include "kernels/device/host_decode_kernels.h"
#include "kernels/device/host_kernels.h"

namespace hsm::test {
namespace {

namespace dev = kernels::device;

class HostPlace final : public Place {
 public:
  explicit HostPlace(dev::Precision precision) : kernels_(dev::element_type(precision)) {}
  dev::DeviceKernels& kernels() override { return kernels_; }
  dev::DecodeKernels& decode_kernels() override { return decode_kernels_; }
  void wait() override {}

 protected:
  void* allocate(int64_t bytes) override {
    auto& piece = memory_.emplace_back(new char[static_cast<size_t>(bytes) + 1]);
    std::memset(piece.get(), 0xFF, static_cast<size_t>(bytes));
    return piece.get();
  }

 private:
  HostKernels kernels_;
  HostDecodeKernels decode_kernels_;
  std::vector<std::unique_ptr<char[]>> memory_;
};

#ifdef HSM_WITH_CUDA
class GpuPlace final : public Place {
 public:
  explicit GpuPlace(dev::Precision precision)
      : kernels_(dev::make_cuda_kernels(precision, 0, dev::Stream{})),
        decode_kernels_(dev::make_cuda_decode_kernels(dev::Stream{})) {}
  ~GpuPlace() override {
    for (void* piece : memory_) cudaFree(piece);
  }
  GpuPlace(const GpuPlace&) = delete;
  GpuPlace& operator=(const GpuPlace&) = delete;

  dev::DeviceKernels& kernels() override { return *kernels_; }
  dev::DecodeKernels& decode_kernels() override { return *decode_kernels_; }
  void wait() override { check(cudaDeviceSynchronize()); }

 protected:
  void* allocate(int64_t bytes) override {
    void* piece = nullptr;
    check(cudaMallocManaged(&piece, static_cast<size_t>(bytes) + 1, cudaMemAttachGlobal));
    memory_.push_back(piece);
    std::memset(piece, 0xFF, static_cast<size_t>(bytes));
    return piece;
  }

 private:
  static void check(cudaError_t status) {
    if (status != cudaSuccess) throw std::runtime_error(cudaGetErrorString(status));
  }

  std::unique_ptr<dev::DeviceKernels> kernels_;
  std::unique_ptr<dev::DecodeKernels> decode_kernels_;
  std::vector<void*> memory_;
};
#endif

}  // namespace

std::ostream& operator<<(std::ostream& out, PlaceKind kind) {
  return out << (kind == PlaceKind::host ? "host" : "gpu");
}

std::unique_ptr<Place> make_place(PlaceKind kind, dev::Precision precision, std::string& why) {
  if (kind == PlaceKind::host) return std::make_unique<HostPlace>(precision);
  const kernels::CudaSurvey survey = kernels::find_cuda_devices();
  why = survey.reason;
  if (survey.devices.empty()) return nullptr;
#ifdef HSM_WITH_CUDA
  return std::make_unique<GpuPlace>(precision);
#else
  return nullptr;
#endif
}

}  // namespace hsm::test
