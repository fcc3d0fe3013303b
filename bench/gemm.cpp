// Speed of the matrix products of kernels/gemm.h beside MKL's sgemm_, which LibTorch exports: one thread,
// float, GFLOP/s. Shapes are those of training: m rows of a batch, n outputs, k inputs.
#include "kernels/gemm.h"

#include <benchmark/benchmark.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

extern "C" {
// Column-major, as in the reference BLAS: C = alpha · op(A) · op(B) + beta · C.
void sgemm_(const char* transpose_a, const char* transpose_b, const int* m, const int* n, const int* k,
            const float* alpha, const float* a, const int* lda, const float* b, const int* ldb,
            const float* beta, float* c, const int* ldc);
int MKL_Set_Num_Threads_Local(int threads);
}

namespace {

using hsm::kernels::PackedMatrix;

struct Shape {
  int64_t m;
  int64_t n;
  int64_t k;
};

// C[m, n] = A·B with A [m, k] or transposed [k, m], B [k, n] or transposed [n, k].
struct Operands {
  explicit Operands(const Shape& shape)
      : a(static_cast<size_t>(shape.m * shape.k), 0.25F),
        b(static_cast<size_t>(shape.k * shape.n), 0.5F),
        c(static_cast<size_t>(shape.m * shape.n)) {}
  std::vector<float> a;
  std::vector<float> b;
  std::vector<float> c;
};

void count_operations(benchmark::State& state, const Shape& shape) {
  state.counters["GFLOP"] =
      benchmark::Counter(2e-9 * static_cast<double>(shape.m * shape.n * shape.k),
                         benchmark::Counter::kIsIterationInvariantRate, benchmark::Counter::kIs1000);
}

void packed(benchmark::State& state, const Shape& s) {
  Operands x(s);
  const PackedMatrix<float> weights(x.b.data(), s.n, s.k);
  for (auto _ : state) {
    hsm::kernels::gemm_packed<float>(s.m, x.a.data(), s.k, weights, nullptr, false, x.c.data(), s.n);
    benchmark::ClobberMemory();
  }
  count_operations(state, s);
}

void nt(benchmark::State& state, const Shape& s) {
  Operands x(s);
  for (auto _ : state) {
    hsm::kernels::gemm_nt<float>(s.m, s.n, s.k, x.a.data(), s.k, x.b.data(), s.k, nullptr, x.c.data(), s.n);
    benchmark::ClobberMemory();
  }
  count_operations(state, s);
}

void nn(benchmark::State& state, const Shape& s) {
  Operands x(s);
  for (auto _ : state) {
    hsm::kernels::gemm_nn(s.m, s.n, s.k, x.a.data(), s.k, x.b.data(), s.n, false, x.c.data(), s.n);
    benchmark::ClobberMemory();
  }
  count_operations(state, s);
}

void tn(benchmark::State& state, const Shape& s) {
  Operands x(s);
  for (auto _ : state) {
    hsm::kernels::gemm_tn(s.m, s.n, s.k, x.a.data(), s.m, x.b.data(), s.n, false, x.c.data(), s.n);
    benchmark::ClobberMemory();
  }
  count_operations(state, s);
}

void packed_tn(benchmark::State& state, const Shape& s) {
  Operands x(s);
  PackedMatrix<float> b;
  b.assign_transposed(x.b.data(), s.n, s.k, nullptr);
  for (auto _ : state) {
    hsm::kernels::gemm_packed_tn<float>(s.m, x.a.data(), s.m, b, false, x.c.data(), s.n);
    benchmark::ClobberMemory();
  }
  count_operations(state, s);
}

// A row-major C = A·B is Bᵀ·Aᵀ to MKL.
void mkl(benchmark::State& state, const Shape& s, bool transpose_a, bool transpose_b) {
  Operands x(s);
  MKL_Set_Num_Threads_Local(1);
  const auto m = static_cast<int>(s.m);
  const auto n = static_cast<int>(s.n);
  const auto k = static_cast<int>(s.k);
  const int lda = transpose_a ? m : k;
  const int ldb = transpose_b ? k : n;
  const float one = 1;
  const float zero = 0;
  for (auto _ : state) {
    sgemm_(transpose_b ? "T" : "N", transpose_a ? "T" : "N", &n, &m, &k, &one, x.b.data(), &ldb, x.a.data(),
           &lda, &zero, x.c.data(), &n);
    benchmark::ClobberMemory();
  }
  count_operations(state, s);
}

void measure(const std::string& kind, const Shape& shape) {
  const std::string size =
      std::to_string(shape.m) + "x" + std::to_string(shape.n) + "x" + std::to_string(shape.k);
  const auto add = [&](const std::string& name, auto function, auto... arguments) {
    benchmark::RegisterBenchmark((name + "/" + size).c_str(), function, shape, arguments...);
  };
  if (kind == "nt") {
    add("packed", packed);
    add("nt", nt);
    add("mkl_nt", mkl, false, true);
  } else if (kind == "nn") {
    add("packed", packed);
    add("nn", nn);
    add("mkl_nn", mkl, false, false);
  } else {
    add("packed_tn", packed_tn);
    add("tn", tn);
    add("mkl_tn", mkl, true, false);
  }
}

}  // namespace

int main(int argc, char** argv) {
  // Forward: products with weights [n, k]. A step of a batch, a window, a cluster of words, one hypothesis.
  for (const Shape& shape : std::to_array<Shape>({{1, 800, 200},
                                                  {7, 96, 200},
                                                  {10, 800, 200},
                                                  {16, 128, 512},
                                                  {20, 800, 200},
                                                  {20, 800, 400},
                                                  {20, 2600, 650},
                                                  {56, 1100, 200},
                                                  {64, 128, 512},
                                                  {700, 800, 200}})) {
    measure("nt", shape);
  }
  // Backward: gradients of the rows, and of the weights.
  for (const Shape& shape : std::to_array<Shape>(
           {{10, 200, 800}, {20, 200, 800}, {20, 650, 2600}, {64, 200, 800}, {112, 200, 1100}})) {
    measure("nn", shape);
  }
  for (const Shape& shape :
       std::to_array<Shape>({{64, 200, 700}, {84, 200, 700}, {96, 200, 7}, {64, 650, 700}})) {
    measure("tn", shape);
  }
  benchmark::AddCustomContext("instruction set", hsm::kernels::instruction_set());
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
