#include "decode/network_reader.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/error.h"

namespace hsm {
namespace {

class NetworkReading : public ::testing::Test {
 protected:
  NetworkReading()
      : vocabulary_(Vocabulary::from_counts({{"</s>", 9}, {"the", 8}, {"cat", 7}, {"a", 6}, {"lot", 5}})),
        path_(std::filesystem::temp_directory_path() / ("networks." + std::to_string(::getpid()))) {}
  ~NetworkReading() override { std::filesystem::remove(path_); }

  void write(const std::string& text) const { std::ofstream(path_, std::ios::binary) << text; }
  [[nodiscard]] int32_t id(const std::string& word) const { return vocabulary_.find(word).value(); }
  [[nodiscard]] std::vector<Prompt> read(const std::string& text, const NetworkReaderOptions& limits = {},
                                         const TextOptions& options = {}) const {
    write(text);
    NetworkReader reader(path_, options, vocabulary_, limits);
    std::vector<Prompt> prompts(1);
    while (reader.take(prompts.back(), true) == PromptFeed::Status::ready) prompts.emplace_back();
    prompts.pop_back();
    return prompts;
  }
  [[nodiscard]] std::string error_of(const std::string& line, const NetworkReaderOptions& limits = {}) const {
    try {
      static_cast<void>(read("{\"positions\":[]}\n" + line + "\n", limits));
    } catch (const DataError& error) {
      return error.what();
    }
    return "no error";
  }

  Vocabulary vocabulary_;
  std::string path_;
};

TEST_F(NetworkReading, ReadsPositionsWithTheirAlternatives) {
  const auto prompts = read(
      R"({"id":"u1","prompt":"the cat","positions":[[{"text":"the","score":-0.5},"a  lot",{"text":"","score":-3}],["Zebra"]],"more":1})"
      "\n{\"positions\":[],\"id\":7}");
  ASSERT_EQ(prompts.size(), 2);
  EXPECT_EQ(prompts[0].id, "\"u1\"");
  EXPECT_EQ(prompts[0].tokens, (std::vector<int32_t>{id("the"), id("cat")}));
  const auto& positions = prompts[0].network.positions;
  ASSERT_EQ(positions.size(), 2);
  ASSERT_EQ(positions[0].size(), 3);
  EXPECT_EQ(positions[0][0].text, "the");
  EXPECT_EQ(positions[0][0].score, -0.5);
  EXPECT_EQ(positions[0][1].text, "a lot");
  EXPECT_EQ(positions[0][1].score, 0);
  EXPECT_EQ(positions[0][1].tokens, (std::vector<int32_t>{id("a"), id("lot")}));
  EXPECT_TRUE(positions[0][2].tokens.empty());
  EXPECT_EQ(positions[1][0].tokens, (std::vector<int32_t>{id("<unk>")}));
  EXPECT_EQ(positions[1][0].text, "Zebra");
  EXPECT_EQ(positions[1][0].unknown, 1);
  EXPECT_EQ(prompts[1].id, "7");
  EXPECT_EQ(prompts[1].number, 1);
}

TEST_F(NetworkReading, AModelOfLowerCaseReadsCapitalsAndTheTextKeepsThem) {
  const auto prompts = read(R"({"positions":[["The"]]})", {}, {true});
  EXPECT_EQ(prompts[0].network.positions[0][0].text, "The");
  EXPECT_EQ(prompts[0].network.positions[0][0].tokens, (std::vector<int32_t>{id("the")}));
}

TEST_F(NetworkReading, NamesLineAndPlaceOfWhatIsWrong) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "not well-formed JSON"},
      {"{\"positions\":[}", "byte 15"},
      {"[]", "expected a JSON object"},
      {"{}", "positions: missing"},
      {"{\"positions\":3}", "positions: 3 given, expected a list"},
      {"{\"positions\":[[]]}", "positions[0]: no alternative"},
      {"{\"positions\":[[\"a\"],\"b\"]}", "positions[1]: \"b\" given, expected a list"},
      {"{\"positions\":[[\"a\",4]]}", "positions[0][1]: 4 given"},
      {"{\"positions\":[[{\"text\":\"a\"}]]}", "positions[0][0].score: missing"},
      {"{\"positions\":[[{\"score\":1}]]}", "positions[0][0].text: missing"},
      {"{\"positions\":[[{\"text\":\"a\",\"score\":\"b\"}]]}", "positions[0][0].score: \"b\" given"},
      {"{\"positions\":[[{\"text\":1,\"score\":1}]]}", "positions[0][0].text: 1 given"},
      {"{\"positions\":[[{\"text\":\"a\",\"score\":1e999}]]}", "can't be read"},
      {"{\"positions\":[[\"a </s> b\"]]}", "</s>"},
      {"{\"positions\":[[\"\xff\"]]}", "not well-formed JSON"},
      {"{\"positions\":[],\"id\":[1]}", "id: [1] given"},
      {"{\"positions\":[],\"prompt\":1}", "prompt: 1 given"},
      {"{\"positions\":[[\"a\"],[\"a\"],[\"a\"]]}", "at most 2 (--max-positions)"},
  };
  for (const auto& [line, expected] : cases) {
    const std::string message = error_of(line, {2, BadLines::error});
    EXPECT_NE(message.find(path_ + ":2: "), std::string::npos) << line << "\n" << message;
    EXPECT_NE(message.find(expected), std::string::npos) << line << "\n" << message;
  }
}

TEST_F(NetworkReading, ReportsABadLineAndGoesOn) {
  const auto prompts =
      read("{\"positions\":[]}\nnothing\n{\"positions\":[[\"the\"]]}\n", {10, BadLines::report});
  ASSERT_EQ(prompts.size(), 3);
  EXPECT_EQ(prompts[0].error, "");
  EXPECT_NE(prompts[1].error.find(":2: "), std::string::npos) << prompts[1].error;
  EXPECT_EQ(prompts[2].error, "");
  EXPECT_EQ(prompts[2].network.positions.size(), 1);
}

}  // namespace
}  // namespace hsm
