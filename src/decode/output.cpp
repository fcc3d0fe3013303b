#include "decode/output.h"

#include <charconv>
#include <utility>

#include "decode/output_formats.h"

namespace hsm {
namespace {

constexpr size_t kPiece = size_t{64} << 10;

}  // namespace

ResultWriter::ResultWriter(const Vocabulary& vocabulary, const OutputOptions& options, WriteText write)
    : vocabulary_(&vocabulary), options_(options), write_(std::move(write)) {}

void ResultWriter::append_number(double value) {
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  append(std::string_view(digits, static_cast<size_t>(end - digits)));
}

void ResultWriter::append_number(int64_t value) {
  append(std::to_string(value));
}

void ResultWriter::append_escaped(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  for (const char character : text) {
    const auto code = static_cast<unsigned char>(character);
    if (character == '"' || character == '\\') {
      append('\\');
      append(character);
    } else if (code < 0x20) {
      append("\\u00");
      append(kHex[code >> 4]);
      append(kHex[code & 15]);
    } else {
      append(character);
    }
  }
}

void ResultWriter::pass_on_when_large() {
  if (buffer_.size() < kPiece) return;
  write_(buffer_, false);
  buffer_.clear();
}

void ResultWriter::end_block() {
  write_(buffer_, true);
  buffer_.clear();
}

std::unique_ptr<ResultSink> make_result_writer(const Vocabulary& vocabulary, const OutputOptions& options,
                                               WriteText write) {
  switch (options.format) {
    case OutputFormat::jsonl:
      return std::make_unique<JsonLinesWriter>(vocabulary, options, std::move(write));
    case OutputFormat::moses:
      return std::make_unique<MosesWriter>(vocabulary, options, std::move(write));
    case OutputFormat::text:
      break;
  }
  return std::make_unique<TextWriter>(vocabulary, options, std::move(write));
}

}  // namespace hsm
