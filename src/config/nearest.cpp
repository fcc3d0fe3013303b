#include "config/nearest.h"

#include <algorithm>
#include <vector>

namespace hsm {

size_t edit_distance(std::string_view a, std::string_view b) {
  // Rows of the table for i − 2, i − 1 and i characters of a.
  std::vector<size_t> before(b.size() + 1);
  std::vector<size_t> last(b.size() + 1);
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

std::optional<std::string> nearest_name(std::string_view name, std::span<const std::string> known) {
  // A third of the letters may be wrong, two in short names; a longer typo is no typo.
  constexpr size_t kLongest = 64;
  const size_t limit = std::max<size_t>(2, name.size() / 3);
  std::optional<std::string> nearest;
  size_t least = limit + 1;
  if (name.size() > kLongest) return nearest;
  for (const std::string& candidate : known) {
    const bool abbreviated = name.size() >= 3 && candidate.starts_with(name);
    const size_t distance = abbreviated ? 1 : edit_distance(name, candidate);
    if (distance >= least || distance >= candidate.size()) continue;
    least = distance;
    nearest = candidate;
  }
  return nearest;
}

}  // namespace hsm
