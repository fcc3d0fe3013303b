#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <unordered_set>

#include "base/error.h"
#include "text/lines.h"

namespace hsm {
namespace {

bool exists(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0;
}

bool is_folder(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

// Files that match, sorted byte by byte whatever the locale; folders that match are passed over.
std::vector<std::string> expand_glob(const std::string& pattern) {
  glob_t found{};
  const int status = ::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found);
  std::vector<std::string> files;
  for (size_t i = 0; i < found.gl_pathc; ++i) {
    if (!is_folder(found.gl_pathv[i])) files.emplace_back(found.gl_pathv[i]);
  }
  ::globfree(&found);
  if (status == GLOB_NOSPACE) throw ResourceError(pattern + ": out of memory while looking for files");
  if (files.empty()) throw UsageError(pattern + ": no file matches");
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<std::string> expand(const std::string& pattern) {
  if (pattern.empty()) throw UsageError("an empty path given, expected a file, a glob or \"-\"");
  if (pattern == "-") return {pattern};
  // A file may have a name that looks like a glob.
  if (!exists(pattern) && pattern.find_first_of("*?[") != std::string::npos) return expand_glob(pattern);
  if (!exists(pattern)) throw DataError(pattern + ": no such file");
  if (is_folder(pattern))
    throw DataError(pattern + ": is a folder, expected a file (or a glob such as " + pattern + "/*.txt)");
  return {pattern};
}

}  // namespace

std::vector<std::string> expand_paths(const std::vector<std::string>& patterns) {
  std::vector<std::string> files;
  std::unordered_set<std::string> seen;
  for (const std::string& pattern : patterns) {
    for (std::string& file : expand(pattern)) {
      if (seen.insert(file).second) files.push_back(std::move(file));
    }
  }
  return files;
}

}  // namespace hsm
