#include "kernels/device/cuda_decode_kernels.h"
#include "kernels/device/cuda_launch.cuh"
#include "kernels/device/decode_args.h"
#include "kernels/device/draw_launch.h"
#include "kernels/device/row_bodies.h"
#include "kernels/device/search_launch.h"

namespace hsm::kernels::device {
namespace {

class CudaDecodeKernels final : public DecodeKernels {
 public:
  explicit CudaDecodeKernels(Stream stream)
      : stream_(stream), launch_(stream), tiles_(search_tiles<DecodePrecision>()) {}

  void upload(const void* from, int64_t bytes, void* to) override {
    // From pageable memory: it has been read when the call returns.
    check_cuda(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyHostToDevice, stream_),
               "copy to the device");
  }
  void download(const void* from, int64_t bytes, void* to) override {
    check_cuda(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDeviceToHost, stream_),
               "copy from the device");
    check_cuda(cudaStreamSynchronize(stream_), "copy from the device");
  }

  void gather_rows(const float* table, int64_t width, const int32_t* rows, int64_t count,
                   float* out) override {
    launch_(count * width, GatherRows<float>{table, width, rows, nullptr, out});
  }
  void linear(const LinearPass& pass) override { launch_root_logits(linear_args(pass, tiles_), stream_); }
  void cell_step(const CellStep& step, int64_t rows) override { launch_(rows * step.width, step); }

  int64_t root_parts(int64_t columns) const override { return device::root_parts(columns, tiles_); }
  void root_scores(const DecodeHead& head, const RootRows& rows) override {
    launch_root_logits(root_args(head, rows, tiles_), stream_);
  }
  void search_start(const SearchPass& pass) override {
    launch_search_start(search_args(pass, tiles_), stream_);
  }
  void search_round(const SearchPass& pass) override {
    launch_search_round(search_args(pass, tiles_), stream_);
  }
  void word_scores(const WordScorePass& pass) override {
    launch_expansion(word_score_args(pass, tiles_), stream_);
    launch_(pass.questions, word_score_body(pass, root_parts(pass.head.root())));
  }
  void draw_round(const DrawPass& pass) override {
    const DrawArgs<DecodePrecision> args = draw_args(pass, tiles_);
    launch_draw_columns(args, stream_);
    launch_expansion(args.search, stream_);
    launch_draw_leaves(args, stream_);
  }

 private:
  Stream stream_;
  CudaLaunch launch_;
  HeadTiles tiles_;
};

}  // namespace

std::unique_ptr<DecodeKernels> make_cuda_decode_kernels(Stream stream) {
  return std::make_unique<CudaDecodeKernels>(stream);
}

}  // namespace hsm::kernels::device
