#include "text/corpus_files.h"

#include <sys/stat.h>

#include <filesystem>

#include "base/error.h"
#include "base/hash.h"

namespace hsm {
namespace {

constexpr uint64_t kReportBytes = uint64_t{1} << 20;

}  // namespace

CorpusFiles::CorpusFiles(const std::vector<std::string>& paths) : paths_(expand_paths(paths)) {
  if (paths_.empty()) throw UsageError("no text given, expected at least one file");
  for (const std::string& path : paths_) {
    struct stat status {};
    if (path == "-" || ::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) {
      has_streams_ = true;
      stamps_.push_back("stream " + path);
      continue;
    }
    bytes_ += static_cast<uint64_t>(status.st_size);
    stamps_.push_back(std::filesystem::absolute(path).lexically_normal().string() + "\n" +
                      std::to_string(status.st_size) + " " + std::to_string(status.st_mtim.tv_sec) + "." +
                      std::to_string(status.st_mtim.tv_nsec));
  }
}

std::string CorpusFiles::names() const {
  const std::string first = paths_.front() == "-" ? "standard input" : paths_.front();
  return paths_.size() == 1 ? first : first + " and " + std::to_string(paths_.size() - 1) + " more";
}

uint64_t CorpusFiles::key(const CorpusOptions& options, const Vocabulary& vocabulary) const {
  Hasher hasher;
  hasher.add("text conventions 1\n");  // raised when the same text would give other tokens
  hasher.add(options.text.lowercase ? "lower-cased\n" : "as is\n");
  hasher.add(options.skip_blank_lines ? "without blank lines\n" : "with blank lines\n");
  hasher.add(vocabulary.hash());
  for (const std::string& stamp : stamps_) hasher.add("\n" + stamp + "\n");
  return hasher.value();
}

WordReader::WordReader(const CorpusFiles& files, const CorpusOptions& options, const ReadProgress& progress)
    : files_(files), options_(options), progress_(progress) {}

bool WordReader::next(std::vector<std::string_view>& words, bool& ends) {
  bool last = false;
  if (!next_part(last)) return false;
  const TextPlace place{reader_->name(), reader_->line_number(), bytes_before_};
  bytes_before_ += static_cast<int64_t>(part_.size());
  split_words(part_, options_.text, place, words);
  edges_.filter(words, place);
  ends = last && (edges_.any_words() || !options_.skip_blank_lines);
  if (last) {
    bytes_before_ = 0;
    edges_ = {};
  }
  return true;
}

bool WordReader::next_part(bool& last) {
  while (true) {
    if (!reader_) {
      if (file_ == files_.paths().size()) return false;
      reader_ = std::make_unique<LineReader>(files_.paths()[file_++]);
    }
    if (reader_->next_part(part_, last)) break;
    done_ += reader_->bytes_read();
    reader_.reset();
    if (file_ == files_.paths().size()) report(true);
  }
  report(false);
  return true;
}

void WordReader::report(bool last) {
  if (!progress_) return;
  const uint64_t done = done_ + (reader_ ? reader_->bytes_read() : 0);
  if (!last && done < reported_ + kReportBytes) return;
  reported_ = done;
  progress_(done, files_.bytes());
}

}  // namespace hsm
