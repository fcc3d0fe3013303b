#include "decode/prompt_reader.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "base/error.h"

namespace hsm {
namespace {

class PromptReading : public ::testing::Test {
 protected:
  PromptReading()
      : vocabulary_(Vocabulary::from_counts({{"</s>", 9}, {"the", 8}, {"cat", 7}, {"<unk>", 6}})),
        path_(::testing::TempDir() + "prompts." + std::to_string(::getpid())) {}
  ~PromptReading() override { std::remove(path_.c_str()); }

  void write(const std::string& text) const { std::ofstream(path_) << text; }
  [[nodiscard]] int32_t id(const char* word) const { return vocabulary_.find(word).value(); }

  Vocabulary vocabulary_;
  std::string path_;
};

TEST_F(PromptReading, ReadsALineAsAPrompt) {
  write("the cat\n\n<s> the </s>\nthe  dog <unk>");
  PromptReader reader(path_, {}, vocabulary_);
  Prompt prompt;
  ASSERT_EQ(reader.take(prompt, true), PromptFeed::Status::ready);
  EXPECT_EQ(prompt.number, 0);
  EXPECT_EQ(prompt.text, "the cat");
  EXPECT_EQ(prompt.tokens, (std::vector<int32_t>{id("the"), id("cat")}));
  ASSERT_EQ(reader.take(prompt, true), PromptFeed::Status::ready);
  EXPECT_TRUE(prompt.tokens.empty());
  ASSERT_EQ(reader.take(prompt, true), PromptFeed::Status::ready);
  EXPECT_EQ(prompt.tokens, (std::vector<int32_t>{id("the")}));
  ASSERT_EQ(reader.take(prompt, true), PromptFeed::Status::ready);  // a last line without its end
  EXPECT_EQ(prompt.text, "the  dog <unk>");
  EXPECT_EQ(prompt.tokens, (std::vector<int32_t>{id("the"), id("<unk>"), id("<unk>")}));
  EXPECT_EQ(prompt.unknown, (std::vector<std::string>{"dog"}));  // a literal <unk> is a word
  EXPECT_EQ(reader.take(prompt, true), PromptFeed::Status::end);
  EXPECT_EQ(reader.lines().line_number(), 4);
}

TEST_F(PromptReading, LowerCasesAsTheModelsTextWas) {
  write("The CAT\n");
  PromptReader reader(path_, {true}, vocabulary_);
  Prompt prompt;
  ASSERT_EQ(reader.take(prompt, true), PromptFeed::Status::ready);
  EXPECT_EQ(prompt.text, "The CAT");
  EXPECT_EQ(prompt.tokens, (std::vector<int32_t>{id("the"), id("cat")}));
}

TEST_F(PromptReading, NamesTheLineOfAnError) {
  for (const char* bad : {"the </s> cat", "the \xff"}) {
    write(std::string("the\n") + bad + "\n");
    PromptReader reader(path_, {}, vocabulary_);
    Prompt prompt;
    reader.take(prompt, true);
    try {
      reader.take(prompt, true);
      FAIL();
    } catch (const DataError& error) {
      EXPECT_NE(std::string(error.what()).find(path_ + ":2"), std::string::npos) << error.what();
    }
  }
}

TEST_F(PromptReading, ReportsABadPromptAndGoesOn) {
  write("the\nthe </s> cat\ncat\n");
  PromptReader reader(path_, {}, vocabulary_, BadLines::report);
  PromptList list({"the", "the </s> cat", "cat"}, {}, vocabulary_, BadLines::report);
  for (PromptFeed* feed : {static_cast<PromptFeed*>(&reader), static_cast<PromptFeed*>(&list)}) {
    Prompt prompt;
    for (const bool bad : {false, true, false}) {
      ASSERT_EQ(feed->take(prompt, true), PromptFeed::Status::ready);
      EXPECT_EQ(prompt.error.empty(), !bad);
    }
    EXPECT_EQ(prompt.tokens, (std::vector<int32_t>{id("cat")}));
    EXPECT_EQ(feed->take(prompt, true), PromptFeed::Status::end);
  }
}

TEST_F(PromptReading, TakesPromptsFromTheCommandLine) {
  PromptList list({"the cat", "dog"}, {}, vocabulary_);
  Prompt prompt;
  ASSERT_EQ(list.take(prompt, false), PromptFeed::Status::ready);
  EXPECT_EQ(prompt.tokens.size(), 2);
  ASSERT_EQ(list.take(prompt, false), PromptFeed::Status::ready);
  EXPECT_EQ(prompt.number, 1);
  EXPECT_EQ(prompt.unknown.size(), 1);
  EXPECT_EQ(list.take(prompt, false), PromptFeed::Status::end);
}

}  // namespace
}  // namespace hsm
