#pragma once

namespace hsm::cli {

/// What this program was built from.
struct BuildInfo {
  const char* version;   ///< of the project
  const char* commit;    ///< of the source, with "-dirty" when it had changes; "unknown" outside a repository
  const char* libtorch;  ///< release of LibTorch
  const char* compiler;
};

BuildInfo build_info();

}  // namespace hsm::cli
