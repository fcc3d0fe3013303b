#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels/device/cuda_decode_kernels.h"
#include "kernels/device/cuda_kernels.h"

namespace hsm::test {

/// Where a test body runs the device's kernels: in host memory, or on the first GPU, in memory that both
/// sides reach.
class Place {
 public:
  virtual ~Place() = default;
  [[nodiscard]] virtual kernels::device::DeviceKernels& kernels() = 0;
  [[nodiscard]] virtual kernels::device::DecodeKernels& decode_kernels() = 0;
  /// Until all that was launched is done.
  virtual void wait() = 0;

  /// A copy of `values`, freed with the place.
  template <class T>
  T* copy(const std::vector<T>& values) {
    return copy(values.data(), static_cast<int64_t>(values.size()));
  }
  template <class T>
  std::remove_const_t<T>* copy(T* values, int64_t count) {
    auto* memory = static_cast<std::remove_const_t<T>*>(allocate(count * static_cast<int64_t>(sizeof(T))));
    std::copy_n(values, count, memory);
    return memory;
  }
  /// Memory in which every byte is 0xFF, a float not a number.
  template <class T>
  T* poisoned(int64_t count) {
    return static_cast<T*>(allocate(count * static_cast<int64_t>(sizeof(T))));
  }

 protected:
  virtual void* allocate(int64_t bytes) = 0;
};

enum class PlaceKind { host, gpu };
std::ostream& operator<<(std::ostream& out, PlaceKind kind);

/// Null when there is no such place on this machine, and why.
std::unique_ptr<Place> make_place(PlaceKind kind, kernels::device::Precision precision, std::string& why);

}  // namespace hsm::test
