#include "train/resume_settings.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>

#include "base/error.h"
#include "config/config_file.h"

namespace hsm {
namespace {

enum class Effect { none, result, kept, incompatible };

struct Rule {
  std::string_view prefix;  ///< of a JSON pointer
  Effect effect;
};

// The first rule that fits decides; what none fits is incompatible.
constexpr std::array kRules{
    Rule{"/data/train", Effect::none},  // the tokens themselves are compared, wherever they lie
    Rule{"/data/cache", Effect::none},
    Rule{"/data/test", Effect::none},
    Rule{"/data/valid", Effect::result},
    Rule{"/vocabulary/file", Effect::kept},
    Rule{"/classes/file", Effect::kept},
    Rule{"/runtime", Effect::none},
    Rule{"/decode", Effect::none},
    Rule{"/output", Effect::none},
    Rule{"/train/epochs", Effect::none},
    Rule{"/train/max_steps", Effect::none},
    Rule{"/train/max_time", Effect::none},
    Rule{"/train/early_stopping", Effect::none},
    Rule{"/train/checkpoint_every", Effect::none},
    Rule{"/train/keep_checkpoints", Effect::none},
    Rule{"/train/validate_every", Effect::result},
    Rule{"/train/calibrate", Effect::result},
    Rule{"/train/clip_norm", Effect::result},
    Rule{"/train/precision", Effect::result},
    Rule{"/train/micro_batches", Effect::result},
    Rule{"/train/head_chunk", Effect::result},
    Rule{"/train/schedule", Effect::result},
    Rule{"/train/optimizer/name", Effect::incompatible},
    Rule{"/train/optimizer", Effect::result},
    Rule{"/model/dropout", Effect::result},
    Rule{"/model/regularization", Effect::result},
};

Effect effect_of(std::string_view pointer) {
  const auto* rule = std::find_if(kRules.begin(), kRules.end(), [&](const Rule& candidate) {
    return pointer.starts_with(candidate.prefix);
  });
  return rule == kRules.end() ? Effect::incompatible : rule->effect;
}

std::string dotted(std::string_view pointer) {
  std::string path(pointer.substr(1));
  std::replace(path.begin(), path.end(), '/', '.');
  return path;
}

}  // namespace

std::vector<std::string> check_resume_settings(const Config& before, const Config& now,
                                               const std::filesystem::path& file) {
  const auto old_values = nlohmann::json::parse(dump_config(before)).flatten();
  const auto new_values = nlohmann::json::parse(dump_config(now)).flatten();
  std::set<std::string> pointers;
  for (const auto& item : old_values.items()) pointers.insert(item.key());
  for (const auto& item : new_values.items()) pointers.insert(item.key());

  std::vector<std::string> warnings;
  std::string refused;
  for (const std::string& pointer : pointers) {
    const auto old_value = old_values.value(pointer, nlohmann::json());
    const auto new_value = new_values.value(pointer, nlohmann::json());
    if (old_value == new_value) continue;
    const std::string change =
        dotted(pointer) + ": " + old_value.dump() + " before, " + new_value.dump() + " now";
    switch (effect_of(pointer)) {
      case Effect::none:
        break;
      case Effect::result:
        warnings.push_back(change +
                           "; the run goes on with the new value and will differ from an "
                           "uninterrupted one");
        break;
      case Effect::kept:
        warnings.push_back(change + "; the run goes on with the words and classes that it began with");
        break;
      case Effect::incompatible:
        refused += "\n  " + change;
        break;
    }
  }
  if (refused.empty()) return warnings;
  throw UsageError(file.string() + ": these settings can't change in a run that is resumed:" + refused +
                   "\nChange them back, or train into another output.directory");
}

}  // namespace hsm
