#pragma once
#include <string>

namespace hsm {

/// Lower-cases well-formed UTF-8 in place by Unicode's simple mapping (one character for one, whatever the
/// language and the locale of the process). The length in bytes may change.
void lowercase(std::string& text);

}  // namespace hsm
