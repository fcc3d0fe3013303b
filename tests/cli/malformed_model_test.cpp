#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/file.h"
#include "cli/malformed.h"

namespace hsm::test {
namespace {

constexpr const char* kWeights = "model/model.safetensors";

// One file of the model changed by `change`.
template <class Change>
Malformed model(const std::string& name, const std::string& file, std::vector<std::string> places,
                Change change) {
  return {name,
          3,
          std::move(places),
          {"info", "--model", "@/model"},
          [file, change](const TemporaryFolder& folder) {
            folder.write(file, change(read_file(folder / file)));
          }};
}

Malformed without(const std::string& file) {
  return {
      "without " + file, 3, {file}, {"info", "--model", "@/model"}, [file](const TemporaryFolder& folder) {
        std::filesystem::remove(folder.path() / "model" / file);
      }};
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  if (at == std::string::npos) throw std::logic_error(from + " is not there to be replaced");
  return text.replace(at, from.size(), to);
}

auto replace(const std::string& from, const std::string& to) {
  return [from, to](const std::string& text) { return replaced(text, from, to); };
}

auto only(const std::string& content) {
  return [content](const std::string&) { return content; };
}

TEST(Malformed, Models) {
  Malformed damaged = model("damaged weights", kWeights, {kWeights}, [](std::string bytes) {
    bytes[bytes.size() - 5] = static_cast<char>(bytes[bytes.size() - 5] ^ 1);
    return bytes;
  });
  damaged.arguments.push_back("--verify");
  expect_refusals({
      {"no such folder", 3, {"@/none"}, {"info", "--model", "@/none"}},
      {"a file for a folder", 3, {"@/train.txt"}, {"info", "--model", "@/train.txt"}},
      {"an empty folder",
       3,
       {"@/empty", "model.safetensors"},
       {"info", "--model", "@/empty"},
       [](const TemporaryFolder& folder) { make_directories(folder.path() / "empty"); }},
      without("model.safetensors"),
      without("vocabulary.txt"),
      without("config.json"),
      damaged,
      model("empty weights", kWeights, {kWeights}, only("")),
      model("weights cut short", kWeights, {kWeights},
            [](const std::string& bytes) { return bytes.substr(0, bytes.size() / 2); }),
      model("weights with a tail", kWeights, {kWeights},
            [](const std::string& bytes) { return bytes + "x"; }),
      model("text for weights", kWeights, {kWeights}, only("these are no weights at all, just some text\n")),
      model("header that is no JSON", kWeights, {kWeights}, replace("{\"", "{'")),
      model("tensor of another name", kWeights, {kWeights, "rnn.weight_hh_l1"},
            replace("rnn.weight_hh_l1", "rnn.weight_xx_l1")),
      model("other network in the configuration", "model/config.json", {kWeights, "embedding.weight"},
            replace("\"embedding\": 6", "\"embedding\": 8")),
      model("other cell in the configuration", "model/config.json", {kWeights, "gru"},
            replace("\"lstm\"", "\"gru\"")),
      model("unknown key in the configuration", "model/config.json", {"model/config.json", "model.cel"},
            replace("\"cell\"", "\"cel\"")),
      model("cut configuration", "model/config.json", {"model/config.json:"},
            [](const std::string& text) { return text.substr(0, 100); }),
      model("edited vocabulary", "model/vocabulary.txt", {"model/vocabulary.txt", kWeights},
            replace("garden", "gardens")),
      model("vocabulary out of order", "model/vocabulary.txt", {"model/vocabulary.txt:2"},
            [](const std::string& text) {
              const size_t end = text.find('\n') + 1;
              return text.substr(end, text.find('\n', end) + 1 - end) + text.substr(0, end) +
                     text.substr(text.find('\n', end) + 1);
            }),
      model("word twice in the vocabulary", "model/vocabulary.txt", {"model/vocabulary.txt"},
            replace("garden", "hill")),
      model("count that is no number", "model/vocabulary.txt", {"model/vocabulary.txt:1"},
            replace("\t", "\tx")),
      model("vocabulary that is not UTF-8", "model/vocabulary.txt", {"model/vocabulary.txt"},
            replace("garden", "gard\xe9n")),
      model("empty vocabulary", "model/vocabulary.txt", {"model/vocabulary.txt"}, only("")),
      model("metrics that are none", "model/metrics.jsonl", {"model/metrics.jsonl:2"},
            replace("\"epoch\":1", "\"epoch\":")),
  });
}

}  // namespace
}  // namespace hsm::test
