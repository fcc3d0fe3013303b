#include "kernels/gemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string>

#include "base/error.h"
#include "kernels/gemm_kernels.h"
#include "kernels/random_values.h"

namespace hsm::kernels {
namespace {

using test::random_values;

struct Shape {
  int64_t m, n, k;
};

// Around the sizes of tiles and vectors, primes, and nothing at all.
constexpr Shape kShapes[] = {{1, 1, 1},    {1, 1, 0},     {3, 5, 0},    {2, 3, 1},    {1, 7, 33},
                             {5, 4, 16},   {7, 31, 17},   {13, 32, 64}, {14, 33, 65}, {15, 47, 193},
                             {29, 65, 31}, {43, 97, 200}, {1, 257, 7},  {2, 300, 5},  {6, 130, 9},
                             {61, 2, 401}, {0, 5, 3},     {4, 0, 3}};

enum class Form { packed, nt, nn, tn };
constexpr Form kForms[] = {Form::packed, Form::nt, Form::nn, Form::tn};
const char* name_of(Form form) {
  constexpr const char* kNames[] = {"packed", "nt", "nn", "tn"};
  return kNames[static_cast<int>(form)];
}

/// A product of one form on one instruction set, on matrices with padded rows.
template <class T>
struct Case {
  InstructionSet set;
  Form form;
  Shape shape;
  bool with_bias;
  bool accumulate;  ///< not for nt

  static constexpr int64_t kPadding = 3;
  [[nodiscard]] int64_t lda() const { return (form == Form::tn ? shape.m : shape.k) + kPadding; }
  [[nodiscard]] bool b_by_column() const { return form == Form::packed || form == Form::nt; }
  [[nodiscard]] int64_t ldb() const {
    if (form == Form::packed) return shape.k;
    return (b_by_column() ? shape.k : shape.n) + kPadding;
  }
  [[nodiscard]] int64_t ldc() const { return shape.n + kPadding; }

  std::vector<T> a = random_values<T>((form == Form::tn ? shape.k : shape.m) * lda(), 1);
  std::vector<T> b = random_values<T>((b_by_column() ? shape.n : shape.k) * ldb(), 2);
  std::vector<T> bias = random_values<T>(shape.n, 3);
  std::vector<T> start = random_values<T>(shape.m * ldc(), 4);

  [[nodiscard]] double at_a(int64_t i, int64_t kk) const {
    return form == Form::tn ? a[kk * lda() + i] : a[i * lda() + kk];
  }
  [[nodiscard]] double at_b(int64_t kk, int64_t j) const {
    return b_by_column() ? b[j * ldb() + kk] : b[kk * ldb() + j];
  }

  /// Rows [i0, i1) and columns [j0, j1) of C; the rest keeps its start value.
  void run(int64_t i0, int64_t i1, int64_t j0, int64_t j1, std::vector<T>& c) const {
    const GemmKernels<T>& kernels = gemm_kernels<T>(set);
    const T* part_a = a.data() + i0 * (form == Form::tn ? 1 : lda());
    const T* part_b = b.data() + j0 * (b_by_column() ? ldb() : 1);
    const T* part_bias = with_bias ? bias.data() + j0 : nullptr;
    T* part_c = c.data() + i0 * ldc() + j0;
    const int64_t m = i1 - i0;
    const int64_t n = j1 - j0;
    if (form == Form::nt) {
      kernels.row_product({.m = m,
                           .n = n,
                           .k = shape.k,
                           .a = part_a,
                           .lda = lda(),
                           .b = part_b,
                           .ldb = ldb(),
                           .bias = part_bias,
                           .c = part_c,
                           .ldc = ldc()});
      return;
    }
    Product<T> product{.m = m,
                       .n = n,
                       .k = shape.k,
                       .a = part_a,
                       .a_row = lda(),
                       .a_k = 1,
                       .b = part_b,
                       .b_k = ldb(),
                       .b_panel = kernels.panel,
                       .bias = part_bias,
                       .accumulate = accumulate,
                       .c = part_c,
                       .ldc = ldc()};
    if (form == Form::tn) {
      product.a_row = 1;
      product.a_k = lda();
    }
    std::vector<T> packed;
    if (form == Form::packed) {
      packed.resize(packed_size(n, shape.k, kernels.panel));
      pack(part_b, n, shape.k, ldb(), kernels.panel, packed.data());
      product.b = packed.data();
      product.b_k = kernels.panel;
      product.b_panel = kernels.panel * shape.k;
      product.packed = true;
    }
    kernels.product(product);
  }
  [[nodiscard]] std::vector<T> whole() const {
    std::vector<T> c = start;
    run(0, shape.m, 0, shape.n, c);
    return c;
  }
  [[nodiscard]] std::string text() const {
    return std::string(name(set)) + " " + name_of(form) + " m " + std::to_string(shape.m) + " n " +
           std::to_string(shape.n) + " k " + std::to_string(shape.k);
  }
};

template <class T, class Body>
void for_all_cases(Body body) {
  for (const InstructionSet set : available_instruction_sets()) {
    for (const Form form : kForms) {
      for (const Shape shape : kShapes) {
        for (const bool flag : {false, true}) {
          const Case<T> c{set, form, shape, flag && (form == Form::nt || form == Form::packed),
                          flag && form != Form::nt};
          SCOPED_TRACE(c.text());
          body(c);
        }
      }
    }
  }
}

template <class T>
class Gemm : public testing::Test {};
using Scalars = testing::Types<float, double>;
TYPED_TEST_SUITE(Gemm, Scalars);

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

TYPED_TEST(Gemm, AgreesWithTheSumInDouble) {
  using T = TypeParam;
  for_all_cases<T>([](const Case<T>& c) {
    const std::vector<T> got = c.whole();
    const double epsilon = std::numeric_limits<T>::epsilon();
    for (int64_t i = 0; i < c.shape.m; ++i) {
      for (int64_t j = 0; j < c.ldc(); ++j) {
        const int64_t at = i * c.ldc() + j;
        if (j >= c.shape.n) {
          ASSERT_EQ(got[at], c.start[at]) << "padding written at " << i << ", " << j;
          continue;
        }
        double sum = (c.with_bias ? c.bias[j] : 0.0) + (c.accumulate ? c.start[at] : 0.0);
        double magnitude = std::abs(sum) + 1;
        for (int64_t kk = 0; kk < c.shape.k; ++kk) {
          sum += c.at_a(i, kk) * c.at_b(kk, j);
          magnitude += std::abs(c.at_a(i, kk) * c.at_b(kk, j));
        }
        ASSERT_NEAR(got[at], sum, magnitude * epsilon * std::sqrt(c.shape.k + 4.0)) << i << ", " << j;
      }
    }
  });
}

TYPED_TEST(Gemm, RowsDoNotDependOnTheirNumber) {
  using T = TypeParam;
  for_all_cases<T>([](const Case<T>& c) {
    const std::vector<T> whole = c.whole();
    for (const int64_t piece : {int64_t{1}, int64_t{2}, int64_t{5}, int64_t{16}}) {
      std::vector<T> parts = c.start;
      for (int64_t i = 0; i < c.shape.m; i += piece) {
        c.run(i, std::min(i + piece, c.shape.m), 0, c.shape.n, parts);
      }
      ASSERT_TRUE(same_bits(whole, parts)) << "in pieces of " << piece << " rows";
    }
  });
}

TYPED_TEST(Gemm, ColumnsDoNotDependOnTheirNeighbours) {
  using T = TypeParam;
  for_all_cases<T>([](const Case<T>& c) {
    const std::vector<T> whole = c.whole();
    for (const int64_t piece : {int64_t{1}, int64_t{3}, int64_t{23}, int64_t{64}}) {
      std::vector<T> parts = c.start;
      for (int64_t j = 0; j < c.shape.n; j += piece) {
        c.run(0, c.shape.m, j, std::min(j + piece, c.shape.n), parts);
      }
      ASSERT_TRUE(same_bits(whole, parts)) << "in pieces of " << piece << " columns";
    }
  });
}

// A B that outgrows the second cache is read another way, which rows taken one by one don't need.
TYPED_TEST(Gemm, RowsDoNotDependOnTheirNumberBesideALargeMatrix) {
  using T = TypeParam;
  for (const InstructionSet set : available_instruction_sets()) {
    for (const Form form : {Form::nn, Form::tn}) {
      const Case<T> c{set, form, {9, 1031, 300}, false, true};
      SCOPED_TRACE(c.text());
      std::vector<T> parts = c.start;
      for (int64_t i = 0; i < c.shape.m; ++i) c.run(i, i + 1, 0, c.shape.n, parts);
      ASSERT_TRUE(same_bits(c.whole(), parts));
    }
  }
}

// The documented order of the packed form: a program that follows it step by step has the same bits.
TEST(GemmOrder, PackedAddsInAscendingOrderWithFusedMultiplyAdd) {
  for (const InstructionSet set : available_instruction_sets()) {
    if (set == InstructionSet::portable) continue;  // it has no fused multiply-add
    const Case<float> c{set, Form::packed, {19, 45, 77}, true, true};
    const std::vector<float> got = c.whole();
    for (int64_t i = 0; i < c.shape.m; ++i) {
      for (int64_t j = 0; j < c.shape.n; ++j) {
        float sum = c.bias[j] + c.start[i * c.ldc() + j];
        for (int64_t kk = 0; kk < c.shape.k; ++kk) {
          sum = std::fma(c.a[i * c.lda() + kk], c.b[j * c.ldb() + kk], sum);
        }
        ASSERT_EQ(got[i * c.ldc() + j], sum) << name(set) << " " << i << ", " << j;
      }
    }
  }
}

TYPED_TEST(Gemm, PublicFunctionsUseTheActiveSet) {
  using T = TypeParam;
  const Shape shape{17, 37, 41};
  for (const Form form : kForms) {
    Case<T> c{active_instruction_set(), form, shape, form == Form::nt || form == Form::packed,
              form != Form::nt};
    const std::vector<T> expected = c.whole();
    std::vector<T> got = c.start;
    switch (form) {
      case Form::packed: {
        const PackedMatrix<T> packed(c.b.data(), shape.n, shape.k);
        EXPECT_EQ(packed.n(), shape.n);
        EXPECT_EQ(packed.k(), shape.k);
        EXPECT_GE(packed.bytes(), shape.n * shape.k * sizeof(T));
        gemm_packed<T>(shape.m, c.a.data(), c.lda(), packed, c.bias.data(), true, got.data(), c.ldc());
        break;
      }
      case Form::nt:
        gemm_nt<T>(shape.m, shape.n, shape.k, c.a.data(), c.lda(), c.b.data(), c.ldb(), c.bias.data(),
                   got.data(), c.ldc());
        break;
      case Form::nn:
        gemm_nn<T>(shape.m, shape.n, shape.k, c.a.data(), c.lda(), c.b.data(), c.ldb(), true, got.data(),
                   c.ldc());
        break;
      case Form::tn:
        gemm_tn<T>(shape.m, shape.n, shape.k, c.a.data(), c.lda(), c.b.data(), c.ldb(), true, got.data(),
                   c.ldc());
        break;
    }
    EXPECT_TRUE(same_bits(expected, got)) << name_of(form);
    if (form != Form::nt) continue;
    std::vector<const T*> rows;
    for (int64_t i = 0; i < shape.m; ++i) rows.push_back(c.a.data() + i * c.lda());
    std::vector<T> by_pointer = c.start;
    gemm_nt_rows<T>(shape.m, shape.n, shape.k, rows.data(), c.b.data(), c.ldb(), c.bias.data(),
                    by_pointer.data(), c.ldc());
    EXPECT_TRUE(same_bits(expected, by_pointer)) << "rows by pointer";
  }
}

TYPED_TEST(Gemm, BlocksHaveTheBitsOfEachAlone) {
  using T = TypeParam;
  for (const Shape s : {Shape{1, 32, 5}, Shape{10, 77, 41}, Shape{14, 64, 16}, Shape{23, 130, 9}}) {
    for (const int64_t count : {1, 2, 5}) {
      SCOPED_TRACE("m " + std::to_string(s.m) + ", " + std::to_string(count) + " blocks");
      const int64_t rows = s.m + 2;  // of a block and what lies between two
      const std::vector<T> a = random_values<T>(count * rows * s.k, 1);
      const PackedMatrix<T> b(random_values<T>(s.n * s.k, 2).data(), s.n, s.k);
      const std::vector<T> bias = random_values<T>(s.n, 3);
      std::vector<T> expected = random_values<T>(count * rows * s.n, 4);
      std::vector<T> got = expected;
      gemm_packed_blocks<T>({.count = count, .a_stride = rows * s.k, .c_stride = rows * s.n}, s.m, a.data(),
                            s.k, b, bias.data(), got.data(), s.n);
      for (int64_t block = 0; block < count; ++block) {
        gemm_packed<T>(s.m, a.data() + block * rows * s.k, s.k, b, bias.data(), false,
                       expected.data() + block * rows * s.n, s.n);
      }
      EXPECT_TRUE(same_bits(expected, got));
    }
  }
}

TEST(InstructionSets, StartWithThePortableOneAndHoldTheActiveOne) {
  const auto sets = available_instruction_sets();
  ASSERT_FALSE(sets.empty());
  EXPECT_EQ(sets.front(), InstructionSet::portable);
  EXPECT_NE(std::find(sets.begin(), sets.end(), active_instruction_set()), sets.end());
  EXPECT_STREQ(instruction_set(), name(active_instruction_set()));
}

TEST(InstructionSets, AreLoweredByNameNeverRaised) {
  const InstructionSet best = available_instruction_sets().back();
  EXPECT_EQ(choose_instruction_set(nullptr), best);
  EXPECT_EQ(choose_instruction_set(""), best);
  EXPECT_EQ(choose_instruction_set("portable"), InstructionSet::portable);
  EXPECT_EQ(choose_instruction_set("avx512"), best);
  EXPECT_THROW((void)choose_instruction_set("sse9"), UsageError);
}

// Packed from either layout, by any number of threads, a product has the bits of the unpacked one.
TYPED_TEST(Gemm, MatricesPackedFromRowsGiveTheSameBits) {
  using T = TypeParam;
  for (const Shape s : kShapes) {
    const auto a = random_values<T>(s.m * s.k, 1);
    const auto b = random_values<T>(s.k * s.n, 2);
    for (const int threads : {0, 1, 3}) {
      std::optional<ThreadPool> pool;
      if (threads > 0) pool.emplace(threads);
      PackedMatrix<T> packed;
      packed.assign_transposed(b.data(), s.n, s.k, pool ? &*pool : nullptr);
      for (const bool accumulate : {false, true}) {
        std::vector<T> expected = random_values<T>(s.m * s.n, 3);
        std::vector<T> c = expected;
        gemm_nn(s.m, s.n, s.k, a.data(), s.k, b.data(), s.n, accumulate, expected.data(), s.n);
        gemm_packed<T>(s.m, a.data(), s.k, packed, nullptr, accumulate, c.data(), s.n);
        EXPECT_TRUE(same_bits(c, expected)) << s.m << " " << s.n << " " << s.k;
        gemm_tn(s.m, s.n, s.k, a.data(), s.m, b.data(), s.n, accumulate, expected.data(), s.n);
        gemm_packed_tn(s.m, a.data(), s.m, packed, accumulate, c.data(), s.n);
        EXPECT_TRUE(same_bits(c, expected)) << s.m << " " << s.n << " " << s.k;
      }
    }
  }
}

TYPED_TEST(Gemm, PackingIsTheSameForAnyNumberOfThreads) {
  using T = TypeParam;
  for (const int64_t n : {1, 255, 256, 257, 601}) {
    const auto b = random_values<T>(n * 19, 2);
    ThreadPool pool(3);
    PackedMatrix<T> many;
    many.assign(b.data(), n, 19, &pool);
    const PackedMatrix<T> one(b.data(), n, 19);
    ASSERT_EQ(many.bytes(), one.bytes());
    EXPECT_EQ(std::memcmp(many.data(), one.data(), one.bytes()), 0) << n;
  }
}

}  // namespace
}  // namespace hsm::kernels
