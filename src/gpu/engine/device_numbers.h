#pragma once
#include <ATen/core/Tensor.h>

#include "gpu/engine/window_rows.h"

namespace hsm {

/// WindowRows::numbers on the device.
struct DeviceNumbers {
  at::Tensor values;  ///< int32

  /// The numbers of a range; T: what their bits stand for.
  template <class T>
  [[nodiscard]] const T* pointer(NumberRange range) const {
    return reinterpret_cast<const T*>(values.const_data_ptr<int32_t>() + range.first);
  }
};

}  // namespace hsm
