#include "model/safetensors_header.h"

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <stdexcept>
#include <tuple>

#include "base/error.h"

namespace hsm {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kLengthBytes = 8;
constexpr uint64_t kLargestHeader = 100'000'000;
constexpr uint64_t kAlignment = 64;
constexpr std::string_view kMetadata = "__metadata__";

constexpr std::array<DTypeInfo, 5> kDTypes{{
    {DType::f32, "F32", 4},
    {DType::f64, "F64", 8},
    {DType::i32, "I32", 4},
    {DType::i64, "I64", 8},
    {DType::u8, "U8", 1},
}};

/// A product of sizes, or nothing when it leaves 63 bits.
std::optional<uint64_t> bounded_product(uint64_t a, uint64_t b) {
  constexpr uint64_t kLimit = std::numeric_limits<int64_t>::max();
  if (a != 0 && b > kLimit / a) return std::nullopt;
  return a * b;
}

/// Checks a header and turns its entries into tensors. Every complaint names the file and the place.
class HeaderReader {
 public:
  HeaderReader(std::string file, std::span<const std::byte> bytes) : file_(std::move(file)), bytes_(bytes) {}

  SafetensorsHeader read() && {
    const std::string_view text = header();
    data_ = bytes_.subspan(kLengthBytes + text.size());
    const Json json = parse(text);
    for (const auto& [name, entry] : json.items()) {
      if (name == kMetadata) {
        read_metadata(entry);
      } else {
        read_tensor(name, entry);
      }
    }
    check_layout();
    return {std::move(tensors_), std::move(metadata_)};
  }

 private:
  struct Range {
    uint64_t begin = 0;
    uint64_t end = 0;
    size_t tensor = 0;
  };

  [[noreturn]] void fail(const std::string& what) const { throw DataError(file_ + ": " + what); }
  [[noreturn]] void fail_tensor(const std::string& name, const std::string& what) const {
    fail("tensor \"" + name + "\": " + what);
  }

  std::string_view header() const {
    if (bytes_.size() < kLengthBytes) {
      fail("only " + std::to_string(bytes_.size()) +
           " bytes, not a safetensors file: expected 8 bytes of header length at its start");
    }
    uint64_t length = 0;
    for (size_t i = 0; i < kLengthBytes; ++i) length |= std::to_integer<uint64_t>(bytes_[i]) << (8 * i);
    if (length > kLargestHeader) {
      fail("byte 0: header length " + std::to_string(length) + ", not a safetensors file: expected at most " +
           std::to_string(kLargestHeader));
    }
    if (length > bytes_.size() - kLengthBytes) {
      fail("byte 0: header length " + std::to_string(length) + ", but only " +
           std::to_string(bytes_.size() - kLengthBytes) + " bytes follow: the file is cut short");
    }
    const auto* text = reinterpret_cast<const char*>(bytes_.data() + kLengthBytes);
    if (length == 0 || text[0] != '{') {
      fail("byte 8: the header doesn't begin with '{', not a safetensors file");
    }
    return {text, length};
  }

  Json parse(std::string_view text) const {
    // The parser keeps the last of several equal keys, so they are caught here.
    std::vector<std::set<std::string>> keys;
    const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
      if (depth > 3) fail("header: values nested too deeply");
      if (event == Json::parse_event_t::object_start) keys.emplace_back();
      if (event == Json::parse_event_t::object_end) keys.pop_back();
      if (event == Json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second) {
        fail("header: \"" + parsed.get<std::string>() + "\" is given twice");
      }
      return true;
    };
    try {
      return Json::parse(text, watch);
    } catch (const Json::parse_error& error) {
      fail("byte " + std::to_string(kLengthBytes + error.byte - 1) + ": the header isn't valid JSON");
    } catch (const Json::exception&) {
      fail("the header isn't valid JSON: a number is too large");
    }
  }

  void read_metadata(const Json& entry) {
    if (!entry.is_object()) fail("header: __metadata__ isn't an object");
    for (const auto& [key, value] : entry.items()) {
      if (!value.is_string()) fail("header: __metadata__ \"" + key + "\" isn't a string");
      metadata_.emplace(key, value.get<std::string>());
    }
  }

  void read_tensor(const std::string& name, const Json& entry) {
    if (!entry.is_object()) fail_tensor(name, "its entry isn't an object");
    for (const auto& [key, value] : entry.items()) {
      if (key != "dtype" && key != "shape" && key != "data_offsets") {
        fail_tensor(name, "unknown key \"" + key + "\"");
      }
    }
    TensorRef tensor;
    tensor.name = name;
    tensor.dtype = read_dtype(name, entry);
    uint64_t size = dtype_info(tensor.dtype).bytes;
    for (const uint64_t extent : read_sizes(name, entry, "shape")) {
      const auto product = bounded_product(size, extent);
      if (!product || extent > uint64_t{std::numeric_limits<int64_t>::max()}) {
        fail_tensor(name, "the product of its shape overflows");
      }
      size = *product;
      tensor.shape.push_back(static_cast<int64_t>(extent));
    }
    const std::vector<uint64_t> offsets = read_sizes(name, entry, "data_offsets");
    if (offsets.size() != 2) {
      fail_tensor(name, "data_offsets holds " + std::to_string(offsets.size()) + " numbers, expected 2");
    }
    place(tensor, offsets[0], offsets[1], size);
    tensors_.push_back(std::move(tensor));
  }

  DType read_dtype(const std::string& name, const Json& entry) const {
    const auto found = entry.find("dtype");
    if (found == entry.end() || !found->is_string()) fail_tensor(name, "dtype is missing or not a string");
    const auto& text = found->get_ref<const std::string&>();
    std::string known;
    for (const DTypeInfo& candidate : kDTypes) {
      if (text == candidate.name) return candidate.dtype;
      known += (known.empty() ? "" : ", ") + std::string(candidate.name);
    }
    fail_tensor(name, "dtype \"" + text + "\", expected one of " + known);
  }

  std::vector<uint64_t> read_sizes(const std::string& name, const Json& entry, const char* key) const {
    const auto found = entry.find(key);
    std::vector<uint64_t> sizes;
    if (found == entry.end() || !found->is_array()) {
      fail_tensor(name, std::string(key) + " is missing or not a list");
    }
    for (const Json& value : *found) {
      if (!value.is_number_unsigned()) {
        fail_tensor(name, std::string(key) + " holds " +
                              value.dump(-1, ' ', false, Json::error_handler_t::replace) +
                              ", expected a whole number from 0 to 2^64 - 1");
      }
      sizes.push_back(value.get<uint64_t>());
    }
    return sizes;
  }

  void place(TensorRef& tensor, uint64_t begin, uint64_t end, uint64_t size) {
    const std::string range = "data_offsets [" + std::to_string(begin) + ", " + std::to_string(end) + "]";
    if (begin > end) fail_tensor(tensor.name, range + ": the end lies before the start");
    if (end > data_.size()) {
      fail_tensor(tensor.name, range + ": beyond the file's " + std::to_string(data_.size()) +
                                   " bytes of data: the file is cut short, or the offsets are wrong");
    }
    if (end - begin != size) {
      fail_tensor(tensor.name, range + ": " + std::to_string(end - begin) + " bytes, but " +
                                   std::string(dtype_info(tensor.dtype).name) + " of shape " +
                                   shape_text(tensor.shape) + " takes " + std::to_string(size));
    }
    const std::byte* data = data_.data() + begin;
    const auto place_in_file = static_cast<uint64_t>(data - bytes_.data());
    if (place_in_file % dtype_info(tensor.dtype).bytes != 0) {
      fail_tensor(tensor.name, range + ": byte " + std::to_string(place_in_file) +
                                   " of the file isn't a multiple of the size of " +
                                   std::string(dtype_info(tensor.dtype).name));
    }
    tensor.data = data;
    ranges_.push_back({begin, end, tensors_.size()});
  }

  /// Data must follow each other from the first byte to the last; tensors are then put in that order.
  void check_layout() {
    std::ranges::sort(ranges_, {},
                      [](const Range& range) { return std::tuple(range.begin, range.end, range.tensor); });
    std::vector<TensorRef> ordered;
    uint64_t reached = 0;
    for (const Range& range : ranges_) {
      TensorRef& tensor = tensors_[range.tensor];
      if (range.begin != reached) {
        fail_tensor(tensor.name, "its data start at " + std::to_string(range.begin) +
                                     (range.begin < reached ? ", overlapping another's, which end at "
                                                            : ", leaving a hole after ") +
                                     std::to_string(reached));
      }
      reached = range.end;
      ordered.push_back(std::move(tensor));
    }
    if (reached != data_.size()) {
      fail("the tensors end at byte " + std::to_string(reached) + " of the data, but there are " +
           std::to_string(data_.size()) + " bytes");
    }
    tensors_ = std::move(ordered);
  }

  std::string file_;
  std::span<const std::byte> bytes_;
  std::span<const std::byte> data_;
  std::vector<TensorRef> tensors_;
  std::vector<Range> ranges_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace

const DTypeInfo& dtype_info(DType dtype) {
  return kDTypes[static_cast<size_t>(dtype)];
}

std::string shape_text(std::span<const int64_t> shape) {
  std::string text = "[";
  for (const int64_t extent : shape) text += (text.size() == 1 ? "" : ", ") + std::to_string(extent);
  return text + "]";
}

SafetensorsHeader read_safetensors_header(std::span<const std::byte> bytes, const std::string& file) {
  return HeaderReader(file, bytes).read();
}

std::string make_safetensors_header(std::span<const TensorRef> tensors,
                                    const std::map<std::string, std::string>& metadata) {
  Json json = Json::object();
  json[std::string(kMetadata)] = metadata;
  uint64_t offset = 0;
  for (const TensorRef& tensor : tensors) {
    if (json.contains(tensor.name)) {
      throw std::invalid_argument("safetensors: two tensors named " + tensor.name);
    }
    const uint64_t end = offset + tensor.bytes();
    json[tensor.name] = {
        {"dtype", dtype_info(tensor.dtype).name}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  const uint64_t unpadded = kLengthBytes + text.size();
  text.append((kAlignment - unpadded % kAlignment) % kAlignment, ' ');
  std::string header;
  for (size_t i = 0; i < kLengthBytes; ++i) {
    header.push_back(static_cast<char>((text.size() >> (8 * i)) & 0xFF));
  }
  return header + text;
}

}  // namespace hsm
