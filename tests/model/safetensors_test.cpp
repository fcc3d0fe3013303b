#include "model/safetensors.h"

#include <gmock/gmock.h>

#include <array>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "base/error.h"
#include "model/test_directory.h"

namespace hsm {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

/// A file from its parts, the header padded so that the data are aligned; its true length stands before it
/// unless another is given.
std::string file_of(std::string header, size_t data_bytes, int64_t length = -1) {
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const auto written = length < 0 ? header.size() : static_cast<uint64_t>(length);
  std::string file(8, '\0');
  for (size_t i = 0; i < 8; ++i) file[i] = static_cast<char>((written >> (8 * i)) & 0xFF);
  return file + header + std::string(data_bytes, '\x01');
}

std::string message_of(auto&& action) {
  try {
    action();
  } catch (const DataError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(Safetensors, ReadsBackWhatWasWritten) {
  const TestDirectory folder;
  const std::vector<float> floats{1.5F, -0.0F, std::numeric_limits<float>::infinity(), 1e-42F, 3, 4};
  const std::vector<uint8_t> bytes{7, 8, 9};
  const std::vector<int64_t> wide{std::numeric_limits<int64_t>::min(), 5};
  const std::vector<int32_t> narrow{-3};
  const double scalar = 0.1;
  const std::vector<TensorRef> tensors{{"bytes", DType::u8, {3}, bytes.data()},
                                       {"floats", DType::f32, {2, 3}, floats.data()},
                                       {"none", DType::f32, {0, 5}, nullptr},
                                       {"wide", DType::i64, {2}, wide.data()},
                                       {"narrow \"ß\"", DType::i32, {1, 1, 1}, narrow.data()},
                                       {"scalar", DType::f64, {}, &scalar}};
  write_safetensors(folder / "x.safetensors", tensors, {{"note", "a\nb"}});

  const SafetensorsFile file(folder / "x.safetensors");
  EXPECT_EQ(file.tensors().size(), tensors.size());
  for (const TensorRef& written : tensors) {
    const TensorRef& read = file.expect(written.name, written.dtype, written.shape);
    EXPECT_EQ(read.count(), written.count());
    if (written.bytes() > 0) {
      EXPECT_EQ(std::memcmp(read.data, written.data, written.bytes()), 0) << written.name;
      EXPECT_EQ(reinterpret_cast<uintptr_t>(read.data) % (read.bytes() / static_cast<size_t>(read.count())),
                0U);
    }
  }
  EXPECT_EQ(file.metadata().at("note"), "a\nb");
  EXPECT_NO_THROW(verify_checksum(file));
  EXPECT_EQ(file.find("absent"), nullptr);
}

TEST(Safetensors, DataStartAtAMultipleOf64Bytes) {
  const TestDirectory folder;
  const std::array<float, 1> value{1};
  for (size_t length = 1; length < 130; length += 7) {
    const std::vector<TensorRef> tensors{{std::string(length, 'n'), DType::f32, {1}, value.data()}};
    write_safetensors(folder / "x", tensors, {});
    EXPECT_EQ((read_file(folder / "x").size() - sizeof(float)) % 64, 0U) << length;
  }
}

TEST(Safetensors, NoticesDamagedData) {
  const TestDirectory folder;
  const std::vector<float> values(100, 2.5F);
  write_safetensors(folder / "x", std::vector<TensorRef>{{"a", DType::f32, {100}, values.data()}}, {});
  std::string content = read_file(folder / "x");
  content[content.size() - 7] = static_cast<char>(content[content.size() - 7] ^ 1);
  put_file(folder / "y", content);
  EXPECT_THAT(message_of([&] { verify_checksum(SafetensorsFile(folder / "y")); }),
              AllOf(HasSubstr((folder / "y").string()), HasSubstr("damaged")));

  put_file(folder / "foreign", file_of("{}", 0));
  EXPECT_THAT(message_of([&] { verify_checksum(SafetensorsFile(folder / "foreign")); }),
              HasSubstr("carries no checksum"));
}

TEST(Safetensors, TellsWhatItExpected) {
  const TestDirectory folder;
  const std::vector<float> values(6, 1);
  write_safetensors(folder / "x", std::vector<TensorRef>{{"a", DType::f32, {2, 3}, values.data()}}, {});
  const SafetensorsFile file(folder / "x");
  const std::vector<int64_t> shape{2, 3};
  const std::vector<int64_t> turned{3, 2};
  EXPECT_THAT(message_of([&] { file.expect("b", DType::f32, shape); }),
              AllOf(HasSubstr((folder / "x").string()), HasSubstr("\"b\" is missing")));
  EXPECT_THAT(message_of([&] { file.expect("a", DType::i64, shape); }),
              HasSubstr("has type F32, expected I64"));
  EXPECT_THAT(message_of([&] { file.expect("a", DType::f32, turned); }),
              HasSubstr("has shape [2, 3], expected [3, 2]"));
}

TEST(Safetensors, RefusesToWriteTwoTensorsOfOneName) {
  const TestDirectory folder;
  const std::array<float, 1> value{1};
  const std::vector<TensorRef> tensors{{"a", DType::f32, {1}, value.data()},
                                       {"a", DType::f32, {1}, value.data()}};
  EXPECT_THROW(write_safetensors(folder / "x", tensors, {}), std::invalid_argument);
  EXPECT_FALSE(std::filesystem::exists(folder / "x"));
}

struct Malformed {
  const char* name;
  std::string content;
  const char* message;
};

std::string entry(const std::string& name, const std::string& shape, int begin, int end,
                  const std::string& dtype = "F32") {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":[" +
         std::to_string(begin) + "," + std::to_string(end) + "]}";
}

std::vector<Malformed> malformed_files() {
  const std::string good = "{" + entry("a", "[2]", 0, 8) + "}";
  return {
      {"empty", "", "only 0 bytes, not a safetensors file"},
      {"stub", std::string(7, '\0'), "only 7 bytes"},
      {"text", "this is a line of text, not a model", "header length"},
      {"huge_header", file_of(good, 8, 100'000'001), "expected at most 100000000"},
      {"negative_header", std::string(8, '\xFF') + good, "header length 18446744073709551615"},
      {"cut_header", file_of(good, 0, 1000), "bytes follow: the file is cut short"},
      {"no_header", file_of("", 8), "doesn't begin with '{'"},
      {"list_header", file_of("[]", 0), "doesn't begin with '{'"},
      {"leading_space", file_of(" " + good, 8), "doesn't begin with '{'"},
      {"not_json", file_of("{\"a\":", 0), "byte 16: the header isn't valid JSON"},
      {"trailing_text", file_of(good + "x", 8), "isn't valid JSON"},
      {"bad_utf8", file_of("{\"\xFF\":1}", 0), "isn't valid JSON"},
      {"number_too_large", file_of(R"({"a":1e999})", 0), "isn't valid JSON: a number"},
      {"deep", file_of("{\"a\":" + std::string(100'000, '['), 0), "nested too deeply"},
      {"metadata_list", file_of(R"({"__metadata__":[]})", 0), "__metadata__ isn't an object"},
      {"metadata_number", file_of(R"({"__metadata__":{"k":1}})", 0), "\"k\" isn't a string"},
      {"entry_number", file_of(R"({"a":1})", 0), "\"a\": its entry isn't an object"},
      {"no_dtype", file_of(R"({"a":{"shape":[],"data_offsets":[0,4]}})", 4), "dtype is missing"},
      {"dtype_number", file_of(R"({"a":{"dtype":1,"shape":[],"data_offsets":[0,4]}})", 4),
       "dtype is missing or"},
      {"dtype_unknown", file_of("{" + entry("a", "[2]", 0, 4, "BF16") + "}", 4),
       "dtype \"BF16\", expected one of F32"},
      {"no_shape", file_of(R"({"a":{"dtype":"F32","data_offsets":[0,4]}})", 4), "shape is missing"},
      {"no_offsets", file_of(R"({"a":{"dtype":"F32","shape":[1]}})", 4), "data_offsets is missing"},
      {"unknown_key", file_of(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"strides":[1]}})", 4),
       "unknown key \"strides\""},
      {"one_offset", file_of(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})", 4),
       "holds 1 numbers"},
      {"negative_extent", file_of("{" + entry("a", "[-2]", 0, 8) + "}", 8), "shape holds -2"},
      {"fraction", file_of("{" + entry("a", "[2.5]", 0, 8) + "}", 8), "shape holds 2.5"},
      {"text_extent", file_of("{" + entry("a", "[\"2\"]", 0, 8) + "}", 8), "shape holds \"2\""},
      {"overflow", file_of("{" + entry("a", "[4294967296,4294967296]", 0, 0) + "}", 0),
       "product of its shape overflows"},
      {"overflow_to_small", file_of("{" + entry("a", "[4611686018427387905]", 0, 4) + "}", 4), "overflows"},
      {"overflow_after_zero", file_of("{" + entry("a", "[0,18446744073709551615]", 0, 0) + "}", 0),
       "overflows"},
      {"wrong_size", file_of("{" + entry("a", "[3]", 0, 8) + "}", 8),
       "8 bytes, but F32 of shape [3] takes 12"},
      {"reversed", file_of("{" + entry("a", "[0]", 8, 0) + "}", 8), "the end lies before the start"},
      {"cut_data", file_of(good, 7), "beyond the file's 7 bytes of data"},
      {"extra_data", file_of(good, 9), "end at byte 8 of the data, but there are 9"},
      {"data_without_tensors", file_of("{}", 4), "end at byte 0 of the data, but there are 4"},
      {"hole", file_of("{" + entry("a", "[1]", 0, 4) + "," + entry("b", "[1]", 8, 12) + "}", 12),
       "leaving a hole after 4"},
      {"hole_at_start", file_of("{" + entry("a", "[1]", 4, 8) + "}", 8), "leaving a hole after 0"},
      {"overlap", file_of("{" + entry("a", "[2]", 0, 8) + "," + entry("b", "[1]", 4, 8) + "}", 8),
       "overlapping"},
      {"same_place", file_of("{" + entry("a", "[1]", 0, 4) + "," + entry("b", "[1]", 0, 4) + "}", 4),
       "overlapping"},
      {"unaligned", file_of("{" + entry("a", "[3]", 0, 3, "U8") + "," + entry("b", "[1]", 3, 7) + "}", 7),
       "isn't a multiple of the size of F32"},
      {"same_name", file_of("{" + entry("a", "[1]", 0, 4) + "," + entry("a", "[1]", 4, 8) + "}", 8),
       "\"a\" is given twice"},
      {"same_key", file_of(R"({"a":{"dtype":"F32","dtype":"I32","shape":[1],"data_offsets":[0,4]}})", 4),
       "\"dtype\" is given twice"},
      {"same_metadata", file_of(R"({"__metadata__":{"k":"1","k":"2"}})", 0), "\"k\" is given twice"},
  };
}

TEST(Safetensors, RefusesMalformedFilesAndNamesThem) {
  const TestDirectory folder;
  for (const Malformed& file : malformed_files()) {
    put_file(folder / file.name, file.content);
    EXPECT_THAT(message_of([&] { SafetensorsFile{folder / file.name}; }),
                AllOf(HasSubstr((folder / file.name).string()), HasSubstr(file.message)))
        << file.name;
  }
  EXPECT_THAT(message_of([&] { SafetensorsFile{folder / "absent"}; }), HasSubstr("absent"));
}

TEST(Safetensors, ReadsOrRefusesWhateverTheBytes) {
  const TestDirectory folder;
  const std::vector<float> values(4, 1);
  write_safetensors(
      folder / "x",
      std::vector<TensorRef>{{"a", DType::f32, {2}, values.data()}, {"b", DType::f32, {2}, values.data()}},
      {{"k", "v"}});
  const std::string good = read_file(folder / "x");
  uint64_t random = 1;
  const auto next = [&] { return (random = random * 6364136223846793005U + 1442695040888963407U) >> 33; };
  int refused = 0;
  for (int trial = 0; trial < 500; ++trial) {
    std::string content = good;
    for (uint64_t change = next() % 3 + 1; change > 0; --change) {
      content[next() % (good.size() - 16)] = static_cast<char>(next());
    }
    if (next() % 4 == 0) content.resize(next() % content.size());
    put_file(folder / "y", content);
    try {
      const SafetensorsFile file(folder / "y");
      for (const TensorRef& tensor : file.tensors()) EXPECT_LE(tensor.bytes(), content.size());
    } catch (const DataError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 250);
}

}  // namespace
}  // namespace hsm
