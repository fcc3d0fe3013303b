#include "base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <string>

#include "base/error.h"

namespace hsm {

void set_up_logging(std::string_view level) {
  const auto parsed = spdlog::level::from_str(std::string(level));
  if (parsed == spdlog::level::off && level != "off") {
    throw UsageError("--log-level: \"" + std::string(level) +
                     "\" given, expected trace, debug, info, warning, error or off");
  }
  auto logger =
      std::make_shared<spdlog::logger>("hsm", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
  logger->set_pattern("%^[%l]%$ %v");
  logger->set_level(parsed);
  logger->flush_on(spdlog::level::trace);
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace hsm
