#include "kernels/optimizer_loops.h"

namespace hsm::kernels {

UpdateFunction update_function_portable() {
  return update_any;
}

}  // namespace hsm::kernels
