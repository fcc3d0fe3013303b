#pragma once
#include <string_view>

namespace hsm {

/// Sends log messages of `level` (trace, debug, info, warning, error or off) and above to standard error.
/// UsageError when there is no such level.
void set_up_logging(std::string_view level);

}  // namespace hsm
