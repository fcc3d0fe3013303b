#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "text/lines.h"
#include "text/token_file.h"

namespace hsm {

/// A folder of its own for every test.
class TextTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::temp_directory_path() /
              ("hsm_text_" + std::string(info->name()) + "_" + std::to_string(::getpid()));
    make_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string write(const std::string& name, std::string_view content) const {
    write_file(folder_ / name, content);
    return path(name);
  }

  std::filesystem::path folder_;
};

inline std::string gzip(std::string_view text) {
  z_stream stream{};
  EXPECT_EQ(::deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string packed(::deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(::deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  ::deflateEnd(&stream);
  return packed;
}

inline std::string zstd(std::string_view text) {
  std::string packed(::ZSTD_compressBound(text.size()), '\0');
  packed.resize(::ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 3));
  return packed;
}

inline std::vector<std::string> read_lines(const std::string& path) {
  LineReader reader(path);
  std::vector<std::string> lines;
  for (std::string line; reader.next(line);) lines.push_back(line);
  EXPECT_EQ(reader.line_number(), static_cast<int64_t>(lines.size()));
  return lines;
}

inline std::vector<int32_t> read_tokens(const TokenFile& file) {
  std::vector<int32_t> tokens(static_cast<size_t>(file.size()));
  file.read(0, tokens);
  return tokens;
}

/// The message of the error that `call` throws, which must be an E.
template <class E, class Call>
std::string message_of(Call&& call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another error than expected: " << error.what();
    return {};
  }
  ADD_FAILURE() << "no error";
  return {};
}

}  // namespace hsm
