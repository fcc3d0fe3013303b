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

SentenceReader::SentenceReader(const CorpusFiles& files, const CorpusOptions& options,
                               const ReadProgress& progress)
    : files_(files), options_(options), progress_(progress) {}

bool SentenceReader::next(std::vector<std::string_view>& tokens) {
  do {
    if (!next_line()) return false;
    split_line(line_, options_.text, reader_->name(), reader_->line_number(), tokens);
  } while (options_.skip_blank_lines && tokens.empty());
  return true;
}

bool SentenceReader::next_line() {
  while (true) {
    if (!reader_) {
      if (file_ == files_.paths().size()) return false;
      reader_ = std::make_unique<LineReader>(files_.paths()[file_++]);
    }
    if (reader_->next(line_)) break;
    done_ += reader_->bytes_read();
    reader_.reset();
    if (file_ == files_.paths().size()) report(true);
  }
  report(false);
  return true;
}

void SentenceReader::report(bool last) {
  if (!progress_) return;
  const uint64_t done = done_ + (reader_ ? reader_->bytes_read() : 0);
  if (!last && done < reported_ + kReportBytes) return;
  reported_ = done;
  progress_(done, files_.bytes());
}

}  // namespace hsm
