#pragma once
#include <cuda_runtime.h>

#include "kernels/device/context.h"
#include "kernels/device/ptx_layout.h"

namespace hsm::kernels::device {

/// The execution context on a GPU: each call is the instruction it stands for. Needs dynamic shared memory,
/// sm_80 or later.
class CudaContext {
 public:
  template <class V>
  struct Shared {
    using Value = V;
    V* p;
  };

  __device__ __forceinline__ explicit CudaContext(unsigned char* memory) : memory_(memory) {}

  __device__ __forceinline__ int block() const { return static_cast<int>(blockIdx.x); }
  __device__ __forceinline__ int blocks() const { return static_cast<int>(gridDim.x); }
  __device__ __forceinline__ int thread() const { return static_cast<int>(threadIdx.x); }
  __device__ __forceinline__ int threads() const { return static_cast<int>(blockDim.x); }
  __device__ __forceinline__ int lane() const { return static_cast<int>(threadIdx.x & 31U); }
  __device__ __forceinline__ int warp() const { return static_cast<int>(threadIdx.x >> 5U); }

  __device__ __forceinline__ void sync(int) { __syncthreads(); }
  __device__ __forceinline__ void syncwarp(int) { __syncwarp(); }
  __device__ __forceinline__ bool guard(int, bool inside) const { return inside; }

  template <class T>
  __device__ __forceinline__ Shared<T> shared(int count) {
    unsigned char* const here = memory_;
    memory_ += (static_cast<unsigned>(count) * sizeof(T) + 127U) / 128U * 128U;
    return {reinterpret_cast<T*>(here)};
  }

  template <class T>
  __device__ __forceinline__ T get(View<const T> view, int64_t i) const {
    return view.p[i];
  }
  template <class T>
  __device__ __forceinline__ T get(View<T> view, int64_t i) const {
    return view.p[i];
  }
  template <class T>
  __device__ __forceinline__ void put(View<T> view, int64_t i, T value) const {
    view.p[i] = value;
  }
  template <class T>
  __device__ __forceinline__ T get(Shared<T> memory, int i) const {
    return memory.p[i];
  }
  template <class T>
  __device__ __forceinline__ void put(Shared<T> memory, int i, T value) const {
    memory.p[i] = value;
  }

  template <class T>
  __device__ __forceinline__ void copy16(Shared<T> to, int at, View<const T> from, int64_t i,
                                         bool inside) const {
    const T* source = inside ? from.p + i : from.p;
    const unsigned bytes = inside ? 16U : 0U;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(address(to.p + at)), "l"(source),
                 "r"(bytes)
                 : "memory");
  }
  __device__ __forceinline__ void commit() const { asm volatile("cp.async.commit_group;\n" ::: "memory"); }
  template <int Left>
  __device__ __forceinline__ void wait() const {
    asm volatile("cp.async.wait_group %0;\n" ::"n"(Left) : "memory");
  }

  template <class T>
  __device__ __forceinline__ T shfl_xor(T value, int mask) const {
    return exchange(value, [mask](unsigned word) { return __shfl_xor_sync(~0U, word, mask); });
  }
  template <class T>
  __device__ __forceinline__ T shfl(T value, int lane) const {
    return exchange(value, [lane](unsigned word) { return __shfl_sync(~0U, word, lane); });
  }
  __device__ __forceinline__ uint32_t match(int key) const { return __match_any_sync(~0U, key); }

  // ---- tile products ----

  template <class P>
  struct FragA {
    uint32_t r[4];
  };
  template <class P>
  struct FragB {
    uint32_t r[4];
  };
  template <class S>
  struct FragA<Fma<S>> {
    S v[2][Fma<S>::kDepth];
  };
  template <class S>
  struct FragB<Fma<S>> {
    S v[4][Fma<S>::kDepth];
  };
  template <class P>
  struct Acc {
    typename P::Sum v[8];
  };
  template <class V>
  struct Rows {
    V v[2];
  };

  template <class P, class M>
  __device__ __forceinline__ FragA<P> load_a(const M& tile, int row, int k) const {
    return LoadA<P>::load(*this, tile, row, k);
  }
  template <class P, class M>
  __device__ __forceinline__ FragB<P> load_b(const M& tile, int col, int k) const {
    return LoadB<P>::load(*this, tile, col, k);
  }
  template <class P, class M>
  __device__ __forceinline__ FragB<P> load_bt(const M& tile, int k, int col) const {
    return LoadBt<P>::load(*this, tile, k, col);
  }

  template <class P>
  __device__ __forceinline__ void mma(Acc<P>& acc, const FragA<P>& a, const FragB<P>& b) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float* c = acc.v + 4 * half;
      asm volatile("mma.sync.aligned.%10 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
                   : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                   : "r"(a.r[0]), "r"(a.r[1]), "r"(a.r[2]), "r"(a.r[3]), "r"(b.r[2 * half]),
                     "r"(b.r[2 * half + 1]), "C"(MmaOf<P>::kName));
    }
  }
  template <class S>
  __device__ __forceinline__ void mma(Acc<Fma<S>>& acc, const FragA<Fma<S>>& a,
                                      const FragB<Fma<S>>& b) const {
#pragma unroll
    for (int k = 0; k < Fma<S>::kDepth; ++k) {
#pragma unroll
      for (int i = 0; i < 8; ++i) acc.v[i] += a.v[ptx::acc_slot(i)][k] * b.v[(i / 4) * 2 + i % 2][k];
    }
  }

  template <class P>
  __device__ __forceinline__ void clear(Acc<P>& acc) const {
#pragma unroll
    for (int i = 0; i < 8; ++i) acc.v[i] = 0;
  }
  template <class P, class F>
  __device__ __forceinline__ void each(Acc<P>& acc, F f) const {
#pragma unroll
    for (int i = 0; i < 8; ++i) f(ptx::acc_row(lane(), i), ptx::acc_column(lane(), i), acc.v[i]);
  }
  template <class P, class V, class F>
  __device__ __forceinline__ void each(Acc<P>& acc, Rows<V>& rows, F f) const {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      f(ptx::acc_row(lane(), i), ptx::acc_column(lane(), i), acc.v[i], rows.v[ptx::acc_slot(i)]);
    }
  }
  template <class V, class F>
  __device__ __forceinline__ void each_held_row(Rows<V>& rows, F f) const {
    f(ptx::acc_row(lane(), 0), rows.v[0]);
    f(ptx::acc_row(lane(), 2), rows.v[1]);
  }
  template <class V, class Op>
  __device__ __forceinline__ void row_reduce(Rows<V>& rows, Op op) const {
#pragma unroll
    for (int mask = 1; mask < 4; mask *= 2) {
#pragma unroll
      for (int slot = 0; slot < 2; ++slot) rows.v[slot] = op(rows.v[slot], shfl_xor(rows.v[slot], mask));
    }
  }
  template <class V, class F>
  __device__ __forceinline__ void each_row(Rows<V>& rows, F f) const {
    if (lane() % 4 == 0) each_held_row(rows, f);
  }

 private:
  /// The instruction's shape and types, as PTX writes them.
  template <class P>
  struct MmaOf;

  static __device__ __forceinline__ unsigned address(const void* p) {
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
  }
  static __device__ __forceinline__ void load_matrices(uint32_t (&r)[4], const void* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\n"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address(row))
                 : "memory");
  }
  static __device__ __forceinline__ void load_transposed(uint32_t (&r)[4], const void* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];\n"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address(row))
                 : "memory");
  }
  static __device__ __forceinline__ void round_tf32(uint32_t (&r)[4]) {
#pragma unroll
    for (uint32_t& word : r) asm("cvt.rna.tf32.f32 %0, %1;\n" : "=r"(word) : "f"(__uint_as_float(word)));
  }
  template <class P>
  static constexpr bool kIsTf32 = sizeof(typename P::T) == 4;

  template <class P>
  struct LoadA {
    template <class M>
    static __device__ __forceinline__ FragA<P> load(const CudaContext& ctx, const M& tile, int row, int k) {
      const ptx::Address at = ptx::a_address(ctx.lane());
      FragA<P> a;
      load_matrices(a.r, tile.memory.p + tile.place(row + at.line, k + at.piece * M::kPiece));
      if constexpr (kIsTf32<P>) round_tf32(a.r);
      return a;
    }
  };
  template <class P>
  struct LoadB {
    template <class M>
    static __device__ __forceinline__ FragB<P> load(const CudaContext& ctx, const M& tile, int col, int k) {
      const ptx::Address at = ptx::b_address(ctx.lane());
      FragB<P> b;
      load_matrices(b.r, tile.memory.p + tile.place(col + at.line, k + at.piece * M::kPiece));
      if constexpr (kIsTf32<P>) round_tf32(b.r);
      return b;
    }
  };
  template <class P>
  struct LoadBt {
    template <class M>
    static __device__ __forceinline__ FragB<P> load(const CudaContext& ctx, const M& tile, int k, int col) {
      FragB<P> b;
      if constexpr (kIsTf32<P>) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          b.r[i] = __float_as_uint(tile.memory.p[tile.place(k + ptx::bt32_line(ctx.lane(), i % 2),
                                                            col + ptx::bt32_column(ctx.lane(), i / 2))]);
        }
        round_tf32(b.r);
      } else {
        const ptx::Address at = ptx::bt_address(ctx.lane());
        load_transposed(b.r, tile.memory.p + tile.place(k + at.line, col + at.piece * M::kPiece));
      }
      return b;
    }
  };
  template <class S>
  struct LoadA<Fma<S>> {
    template <class M>
    static __device__ __forceinline__ FragA<Fma<S>> load(const CudaContext& ctx, const M& tile, int row,
                                                         int k) {
      FragA<Fma<S>> a;
#pragma unroll
      for (int slot = 0; slot < 2; ++slot) {
        load_piece(a.v[slot], tile.memory.p + tile.place(row + ptx::acc_row(ctx.lane(), 2 * slot), k));
      }
      return a;
    }
  };
  template <class S>
  struct LoadB<Fma<S>> {
    template <class M>
    static __device__ __forceinline__ FragB<Fma<S>> load(const CudaContext& ctx, const M& tile, int col,
                                                         int k) {
      FragB<Fma<S>> b;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        load_piece(b.v[i], tile.memory.p + tile.place(col + column(ctx.lane(), i), k));
      }
      return b;
    }
  };
  template <class S>
  struct LoadBt<Fma<S>> {
    template <class M>
    static __device__ __forceinline__ FragB<Fma<S>> load(const CudaContext& ctx, const M& tile, int k,
                                                         int col) {
      FragB<Fma<S>> b;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int d = 0; d < Fma<S>::kDepth; ++d) {
          b.v[i][d] = tile.memory.p[tile.place(k + d, col + column(ctx.lane(), i))];
        }
      }
      return b;
    }
  };
  /// The four columns of a lane's elements.
  static __device__ __forceinline__ int column(int lane, int i) {
    return ptx::acc_column(lane, (i / 2) * 4 + i % 2);
  }
  template <class S, int N>
  static __device__ __forceinline__ void load_piece(S (&to)[N], const S* from) {
    *reinterpret_cast<int4*>(to) = *reinterpret_cast<const int4*>(from);
  }

  template <class T, class F>
  static __device__ __forceinline__ T exchange(T value, F f) {
    static_assert(sizeof(T) % 4 == 0, "whole words");
    unsigned words[sizeof(T) / 4];
    memcpy(words, &value, sizeof(T));
#pragma unroll
    for (unsigned& word : words) word = f(word);
    memcpy(&value, words, sizeof(T));
    return value;
  }

  unsigned char* memory_;
};

template <>
struct CudaContext::MmaOf<Bf16> {
  static constexpr char kName[] = "m16n8k16.row.col.f32.bf16.bf16.f32";
};
template <>
struct CudaContext::MmaOf<Fp16> {
  static constexpr char kName[] = "m16n8k16.row.col.f32.f16.f16.f32";
};
template <>
struct CudaContext::MmaOf<Tf32> {
  static constexpr char kName[] = "m16n8k8.row.col.f32.tf32.tf32.f32";
};

/// Runs Body::run(context, args) in each lane of the grid.
template <class Body>
__global__ void __launch_bounds__(Body::kThreads, 1)
    run_body(const __grid_constant__ typename Body::Args args) {
  extern __shared__ __align__(128) unsigned char memory[];
  CudaContext context(memory);
  Body::run(context, args);
}

}  // namespace hsm::kernels::device
