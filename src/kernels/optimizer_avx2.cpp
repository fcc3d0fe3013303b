#include "kernels/optimizer_loops.h"

namespace hsm::kernels {

UpdateFunction update_function_avx2() {
  return update_any;
}

}  // namespace hsm::kernels
