#include "cli/build_info.h"

#include "hsm_build.h"

namespace hsm::cli {

BuildInfo build_info() {
  return {HSM_BUILD_VERSION, HSM_BUILD_COMMIT, HSM_BUILD_LIBTORCH, HSM_BUILD_COMPILER};
}

}  // namespace hsm::cli
