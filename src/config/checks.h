#pragma once
#include <map>
#include <string>

#include "config/config.h"
#include "config/config_file.h"
#include "config/json_text.h"
#include "config/problems.h"

namespace hsm {

/// Where each value came from: JSON path → source and what stood there.
struct GivenValue {
  std::string source;
  Json value;
};
using GivenValues = std::map<std::string, GivenValue>;

/// Checks that take more than one value. `name` is the source of values that nobody gave.
void check_config(const Config& config, const GivenValues& given, const std::string& name, ConfigUse use,
                  Problems& problems);

}  // namespace hsm
