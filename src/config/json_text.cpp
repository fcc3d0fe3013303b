#include "config/json_text.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/utf8.h"

namespace hsm {
namespace {

constexpr int kDeepest = 32;
constexpr size_t kShownBytes = 60;

// Follows nlohmann's parser through its events to know the path of each key.
class DuplicateFinder {
 public:
  explicit DuplicateFinder(std::vector<std::string>& duplicates) : duplicates_(duplicates) {}

  void follow(Json::parse_event_t event, const Json& parsed) {
    switch (event) {
      case Json::parse_event_t::object_start:
      case Json::parse_event_t::array_start:
        levels_.push_back({path(), {}, {}, event == Json::parse_event_t::array_start, 0});
        if (levels_.size() > kDeepest) {
          throw UsageError("nested more than " + std::to_string(kDeepest) + " levels deep");
        }
        break;
      case Json::parse_event_t::object_end:
      case Json::parse_event_t::array_end:
        levels_.pop_back();
        next_element();
        break;
      case Json::parse_event_t::key: {
        Level& level = levels_.back();
        level.key = parsed.get<std::string>();
        if (!level.keys.insert(level.key).second) duplicates_.push_back(path());
        break;
      }
      case Json::parse_event_t::value:
        next_element();
        break;
    }
  }

 private:
  struct Level {
    std::string path;
    std::set<std::string> keys;
    std::string key;
    bool is_array;
    size_t index;
  };

  [[nodiscard]] std::string path() const {
    if (levels_.empty()) return "";
    const Level& level = levels_.back();
    return level.is_array ? level.path + "[" + std::to_string(level.index) + "]"
                          : join_path(level.path, level.key);
  }
  void next_element() {
    if (!levels_.empty() && levels_.back().is_array) ++levels_.back().index;
  }

  std::vector<Level> levels_;
  std::vector<std::string>& duplicates_;
};

// "LINE:COLUMN" (from 1, in bytes) of a byte counted from 1, as nlohmann counts them.
std::string line_and_column(std::string_view text, size_t byte) {
  const std::string_view before = text.substr(0, byte == 0 ? 0 : std::min(byte - 1, text.size()));
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const size_t start = before.rfind('\n');
  const size_t column = before.size() - (start == std::string_view::npos ? 0 : start + 1) + 1;
  return std::to_string(line) + ":" + std::to_string(column);
}

// nlohmann's message without its number and place: "… syntax error while parsing value - unexpected …".
std::string plain_message(std::string_view message) {
  const size_t start = message.find("syntax error");
  if (start != std::string_view::npos) return std::string(message.substr(start));
  const size_t bracket = message.find("] ");
  return std::string(bracket == std::string_view::npos ? message : message.substr(bracket + 2));
}

}  // namespace

JsonText parse_json_text(std::string_view text, std::string_view name) {
  if (const auto malformed = find_malformed_utf8(text)) {
    throw UsageError(std::string(name) + ":" + line_and_column(text, *malformed + 1) +
                     ": malformed UTF-8 at byte " + std::to_string(*malformed));
  }
  JsonText result;
  DuplicateFinder finder(result.duplicates);
  const auto follow = [&](int, Json::parse_event_t event, const Json& parsed) {
    finder.follow(event, parsed);
    return true;
  };
  try {
    result.value = Json::parse(text, follow, true, true);
  } catch (const Json::parse_error& error) {
    throw UsageError(std::string(name) + ":" + line_and_column(text, error.byte) + ": " +
                     plain_message(error.what()));
  } catch (const Json::exception& error) {
    throw UsageError(std::string(name) + ": " + plain_message(error.what()));
  } catch (const UsageError& error) {
    throw UsageError(std::string(name) + ": " + error.what());
  }
  return result;
}

std::string show_json(const Json& value) {
  if (value.is_object()) return "an object";
  const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  if (value.is_string()) return quote(text, kShownBytes);
  return text.size() <= kShownBytes ? text : text.substr(0, kShownBytes) + "…";
}

std::string join_path(std::string_view section, std::string_view key) {
  return section.empty() ? std::string(key) : std::string(section) + "." + std::string(key);
}

}  // namespace hsm
