// Forward and backward pass of the hierarchical softmax beside other ways to compute a head: a softmax over
// all words, AdaptiveLogSoftmaxWithLoss, and the gather formulation of two levels. On the CPU, and on a GPU
// where there is one. extra_MB: what a pass takes at its peak beyond what was held before, measured; the
// entries "bytes" compute it for the headline size, which not every machine could run.
#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>
#include <malloc.h>
#include <torch/csrc/autograd/autograd.h>

#ifdef HSM_WITH_CUDA
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#endif

#include <cmath>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>

#include "base/available_threads.h"
#include "head_torch.h"
#include "kernels/cuda_device.h"
#include "kernels/device/cuda_kernels.h"
#include "kernels/device/head_plan.h"
#include "kernels/head.h"

namespace hsm::bench {
namespace {

namespace dev = kernels::device;
constexpr double kMega = 1e6;

/// Megabytes of this process by a line of /proc/self/status.
double resident(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(key + ":")) return std::stod(line.substr(key.size() + 1)) * 1024 / kMega;
  }
  return 0;
}

/// What a function takes in megabytes beyond what was held before: resident memory, or the device's.
class Peak {
 public:
  explicit Peak(bool on_gpu) : on_gpu_(on_gpu) {
    if (on_gpu_) {
      reset_device();
      return;
    }
    ::malloc_trim(0);  // what earlier passes gave back doesn't hide what this one takes
    std::ofstream("/proc/self/clear_refs") << "5";  // the peak starts anew
    before_ = resident("VmRSS");
  }
  [[nodiscard]] double megabytes() const { return (on_gpu_ ? device_peak() : resident("VmHWM")) - before_; }

 private:
#ifdef HSM_WITH_CUDA
  void reset_device() {
    c10::cuda::CUDACachingAllocator::resetPeakStats(0);
    before_ = static_cast<double>(stats().current) / kMega;
  }
  static double device_peak() {
    return static_cast<double>(stats().peak) / kMega;
  }
  static c10::CachingAllocator::Stat stats() {
    return c10::cuda::CUDACachingAllocator::getDeviceStats(0).allocated_bytes[0];
  }
#else
  void reset_device() {}
  static double device_peak() {
    return 0;
  }
#endif
  bool on_gpu_;
  double before_ = 0;
};

void wait_for(bool on_gpu) {
#ifdef HSM_WITH_CUDA
  if (on_gpu) c10::cuda::device_synchronize();
#else
  static_cast<void>(on_gpu);
#endif
}

/// Times a formulation that the constructor prepares and pass() runs; the first pass measures memory.
template <class Formulation>
void run(benchmark::State& state, const std::function<std::unique_ptr<Formulation>()>& make, bool on_gpu) {
  const auto formulation = make();
  wait_for(on_gpu);
  const Peak peak(on_gpu);
  formulation->pass();
  wait_for(on_gpu);
  state.counters["extra_MB"] = peak.megabytes();
  for (auto _ : state) {
    formulation->pass();
    wait_for(on_gpu);
  }
}

// ---- ours

class CpuHead {
 public:
  explicit CpuHead(const HeadProblem& problem)
      : problem_(problem),
        offsets_(problem.cluster_offsets()),
        cluster_of_row_(problem.cluster_of_row()),
        targets_(problem.targets()),
        hidden_(draw(problem.tokens * problem.dim)),
        word_(draw(problem.words * problem.dim)),
        cluster_(draw(problem.clusters * problem.dim)),
        word_bias_(static_cast<size_t>(problem.words)),
        cluster_bias_(static_cast<size_t>(problem.clusters)),
        hidden_gradient_(hidden_.size()),
        cluster_gradient_(cluster_.size()),
        cluster_bias_gradient_(cluster_bias_.size()),
        pool_(available_threads()) {}

  void pass() {
    const kernels::HeadShape shape{problem_.words, problem_.shortlist, problem_.dim, offsets_,
                                   cluster_of_row_};
    const kernels::HeadGradients<float> gradients{hidden_gradient_.data(), &rows_, cluster_gradient_.data(),
                                                  cluster_bias_gradient_.data()};
    benchmark::DoNotOptimize(kernels::head_loss<float>(
        shape, {word_.data(), word_bias_.data(), cluster_.data(), cluster_bias_.data()}, hidden_.data(),
        targets_, 1.0F / static_cast<float>(problem_.tokens), &gradients, workspace_, pool_));
  }

 private:
  static std::vector<float> draw(int64_t count) {
    const CounterRandom random(2, Purpose::initialization);
    std::vector<float> values(static_cast<size_t>(count));
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>(0.2 * random.uniform(0, i) - 0.1);
    return values;
  }

  HeadProblem problem_;
  std::vector<int64_t> offsets_;
  std::vector<int32_t> cluster_of_row_;
  std::vector<int64_t> targets_;
  std::vector<float> hidden_, word_, cluster_, word_bias_, cluster_bias_;
  std::vector<float> hidden_gradient_, cluster_gradient_, cluster_bias_gradient_;
  kernels::RowGradients<float> rows_;
  kernels::HeadWorkspace<float> workspace_;
  ThreadPool pool_;
};

/// Of a pass over the problem on a device; the largest clusters could all be hit.
dev::HeadSizes sizes_of(const HeadProblem& p) {
  const int64_t hit = std::min(p.words - p.shortlist, p.tokens * p.cluster_rows());
  return {p.tokens, p.words, p.shortlist, p.clusters, p.dim, p.cluster_rows(), hit};
}

#ifdef HSM_WITH_CUDA
class GpuHead {
 public:
  GpuHead(const HeadProblem& problem, dev::Precision precision)
      : elements_(at::TensorOptions().device(at::kCUDA).dtype(type_of(precision))),
        floats_(elements_.dtype(at::kFloat)),
        kernels_(dev::make_cuda_kernels(precision, 0, c10::cuda::getCurrentCUDAStream(0).stream())) {
    pass_.sizes = sizes_of(problem);
    const dev::HeadSizes& s = pass_.sizes;
    const int64_t rows = s.shortlist + s.most_hit_rows;
    pass_.hidden = keep(at::randn({s.tokens, s.dim}, elements_).mul_(0.1));
    pass_.word = keep(at::randn({s.words, s.dim}, elements_).mul_(0.05));
    pass_.cluster = keep(at::randn({s.clusters, s.dim}, elements_).mul_(0.05));
    pass_.word_bias = static_cast<const float*>(keep(at::zeros({s.words}, floats_)));
    pass_.cluster_bias = static_cast<const float*>(keep(at::zeros({s.clusters}, floats_)));
    pass_.cluster_offsets =
        static_cast<const int64_t*>(keep(at::tensor(problem.cluster_offsets()).to(at::kCUDA)));
    pass_.cluster_of_row =
        static_cast<const int32_t*>(keep(at::tensor(problem.cluster_of_row(), at::kInt).to(at::kCUDA)));
    pass_.targets = static_cast<const int32_t*>(
        keep(at::tensor(problem.targets(), at::kLong).to(at::kInt).to(at::kCUDA)));
    pass_.scale =
        static_cast<const float*>(keep(at::full({1}, 1.0 / static_cast<double>(s.tokens), floats_)));
    pass_.loss = static_cast<float*>(keep(at::zeros({1}, floats_)));
    pass_.hidden_gradient = keep(at::empty({s.tokens, s.dim}, elements_));
    pass_.word_gradient = static_cast<float*>(keep(at::empty({rows, s.dim}, floats_)));
    pass_.word_bias_gradient = static_cast<float*>(keep(at::empty({rows}, floats_)));
    pass_.cluster_gradient = static_cast<float*>(keep(at::empty({s.clusters, s.dim}, floats_)));
    pass_.cluster_bias_gradient = static_cast<float*>(keep(at::empty({s.clusters}, floats_)));
  }

  void pass() {
    const at::Tensor scratch =
        at::empty({kernels_->head_scratch_bytes(pass_.sizes)}, elements_.dtype(at::kByte));
    pass_.scratch = scratch.mutable_data_ptr();
    kernels_->head(pass_);
  }

 private:
  static at::ScalarType type_of(dev::Precision precision) {
    return precision == dev::Precision::bf16   ? at::kBFloat16
           : precision == dev::Precision::fp16 ? at::kHalf
                                               : at::kFloat;
  }
  void* keep(const at::Tensor& tensor) { return kept_.emplace_back(tensor).mutable_data_ptr(); }

  at::TensorOptions elements_;
  at::TensorOptions floats_;
  std::unique_ptr<dev::DeviceKernels> kernels_;
  dev::HeadPass pass_;
  std::vector<at::Tensor> kept_;
};
#endif

// ---- registration

template <class Formulation, class... Arguments>
void add(const std::string& name, bool on_gpu, const Arguments&... arguments) {
  const std::function<std::unique_ptr<Formulation>()> make = [arguments...] {
    return std::make_unique<Formulation>(arguments...);
  };
  benchmark::RegisterBenchmark(
      name.c_str(), [make, on_gpu](benchmark::State& state) { run<Formulation>(state, make, on_gpu); })
      ->Unit(benchmark::kMillisecond)
      ->UseRealTime();
}

void add_torch(const std::string& suffix, const HeadProblem& problem, const at::TensorOptions& options) {
  const bool on_gpu = options.device().is_cuda();
  add<AdaptiveSoftmax>("adaptive/" + suffix, on_gpu, problem, options);
  add<FullSoftmax>("full/" + suffix, on_gpu, problem, options);
  add<GatherSoftmax>("gather/" + suffix, on_gpu, problem, options);
}

/// A formulation's bytes, computed.
void add_bytes(const std::string& name, double bytes) {
  benchmark::RegisterBenchmark(("bytes/" + name).c_str(), [bytes](benchmark::State& state) {
    for (auto _ : state) benchmark::DoNotOptimize(bytes);
    state.counters["extra_MB"] = bytes / kMega;
  })->Iterations(1);
}

void add_all_bytes() {
  // Tiles as a pass in bf16 has them; the plan is the device's own.
  const dev::HeadPlan plan = dev::plan_head(sizes_of(kHeadline), dev::HeadTiles{});
  for (const auto& [name, bytes] : {std::pair{"fp32", int64_t{4}}, std::pair{"bf16", int64_t{2}}}) {
    const std::string suffix = std::string("/headline/") + name;
    add_bytes("hsm" + suffix, static_cast<double>(plan.extra_bytes(4)));
    add_bytes("gather" + suffix, HeadBytes::gathered(kHeadline, 100, bytes));
    add_bytes("full" + suffix, HeadBytes::full(kHeadline, bytes));
  }
}

void add_all() {
  add<CpuHead>("hsm/small/cpu", false, kSmall);
  add_torch("small/cpu", kSmall, at::TensorOptions().dtype(at::kFloat));
  add_all_bytes();
#ifdef HSM_WITH_CUDA
  if (kernels::find_cuda_devices().devices.empty()) return;
  const at::TensorOptions gpu = at::TensorOptions().device(at::kCUDA);
  add<GpuHead>("hsm/headline/gpu_fp32", true, kHeadline, dev::Precision::fp32);
  add_torch("headline/gpu_fp32", kHeadline, gpu.dtype(at::kFloat));
  add<GpuHead>("hsm/headline/gpu_bf16", true, kHeadline, dev::Precision::bf16);
  add_torch("headline/gpu_bf16", kHeadline, gpu.dtype(at::kBFloat16));
#endif
}

}  // namespace
}  // namespace hsm::bench

int main(int argc, char** argv) {
  at::set_num_threads(hsm::available_threads());
  hsm::bench::add_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
