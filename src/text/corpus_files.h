#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/corpus.h"
#include "text/split.h"

namespace hsm {

/// The files of a corpus as they are when reading starts.
class CorpusFiles {
 public:
  /// Expands globs. UsageError when there is no file at all.
  explicit CorpusFiles(const std::vector<std::string>& paths);

  [[nodiscard]] const std::vector<std::string>& paths() const noexcept { return paths_; }
  /// Bytes in all, 0 when one is a stream.
  [[nodiscard]] uint64_t bytes() const noexcept { return has_streams_ ? 0 : bytes_; }
  /// Whether one is standard input, a pipe or another thing that can't be told unchanged by its size and
  /// time.
  [[nodiscard]] bool has_streams() const noexcept { return has_streams_; }
  /// The files for a message: "a.txt", "a.txt and 3 more".
  [[nodiscard]] std::string names() const;
  /// Tells token files apart: of these files as they are now, options that change tokens, and vocabulary.
  [[nodiscard]] uint64_t key(const CorpusOptions& options, const Vocabulary& vocabulary) const;

 private:
  std::vector<std::string> paths_;
  std::vector<std::string> stamps_;
  uint64_t bytes_ = 0;
  bool has_streams_ = false;
};

/// Words of all files, one file after the other, with progress. However long a line is, only a part of it is
/// held.
class WordReader {
 public:
  WordReader(const CorpusFiles& files, const CorpusOptions& options, const ReadProgress& progress);

  /// The next words of a line (there may be none), valid until the next call; false at the end of the last
  /// file. `ends` tells that a sentence ends after them: with the line, unless it is blank and left out.
  bool next(std::vector<std::string_view>& words, bool& ends);

 private:
  bool next_part(bool& last);
  void report(bool last);

  const CorpusFiles& files_;
  const CorpusOptions& options_;
  const ReadProgress& progress_;
  std::unique_ptr<LineReader> reader_;
  size_t file_ = 0;        // index of the next file to open
  uint64_t done_ = 0;      // bytes of the files before this one
  uint64_t reported_ = 0;  // bytes when progress was last told
  std::string part_;
  int64_t bytes_before_ = 0;  // of this line
  EdgeMarkers edges_;         // of this line
};

}  // namespace hsm
