#include "decode/output.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/utf8.h"

namespace hsm {
namespace {

/// Writes into a string, and counts blocks.
struct Writer {
  explicit Writer(OutputOptions options)
      : vocabulary(Vocabulary::from_counts(
            {{"</s>", 9}, {"the", 8}, {"a\"b\\c", 7}, {"naïve", 6}, {"|||", 5}, {"\x01", 4}})),
        sink(make_result_writer(vocabulary, options, [this](std::string_view piece, bool complete) {
          text += piece;
          blocks += complete ? 1 : 0;
          largest_piece = std::max(largest_piece, piece.size());
        })) {}

  [[nodiscard]] std::vector<int32_t> ids(const std::vector<std::string>& words) const {
    std::vector<int32_t> result;
    for (const std::string& word : words) result.push_back(vocabulary.find(word).value());
    return result;
  }
  void block(const Prompt& prompt, const std::vector<std::vector<std::string>>& outputs) {
    sink->begin(prompt, static_cast<int64_t>(outputs.size()));
    double log_prob = -0.1;
    for (const auto& words : outputs) {
      const auto tokens = ids(words);
      const std::vector<double> scores(tokens.size(), log_prob);
      const bool finished = !words.empty() && words.back() == "</s>";
      sink->hypothesis(prompt,
                       {log_prob * static_cast<double>(tokens.size()), log_prob, finished, tokens, scores});
      log_prob -= 1;
    }
    sink->end(prompt);
  }

  Vocabulary vocabulary;
  std::unique_ptr<ResultSink> sink;
  std::string text;
  int64_t blocks = 0;
  size_t largest_piece = 0;
};

Prompt prompt(int64_t number, std::string text, std::vector<std::string> unknown = {}) {
  Prompt prompt;
  prompt.number = number;
  prompt.text = std::move(text);
  prompt.unknown = std::move(unknown);
  return prompt;
}

TEST(TextOutput, IsALineForEachInput) {
  Writer writer({OutputFormat::text, false, false});
  writer.block(prompt(0, "x"), {{"the", "naïve", "</s>"}});
  writer.block(prompt(1, ""), {{"</s>"}});  // an empty sentence
  writer.block(prompt(2, ""), {});          // nothing possible
  writer.block(prompt(3, ""), {{"the"}});   // cut
  EXPECT_EQ(writer.text, "the naïve\n\n\nthe\n");
  EXPECT_EQ(writer.blocks, 4);
}

TEST(TextOutput, NumbersItsLinesWhenABlockHasSeveral) {
  Writer writer({OutputFormat::text, true, true});
  writer.block(prompt(0, "x"), {{"the", "</s>"}, {"naïve"}});
  writer.block(prompt(1, "x"), {});
  EXPECT_EQ(writer.text, "1\t-0.2\t-0.1\tthe\n1\t-1.1\t-1.1\tnaïve\n2\t\t\t\n");
}

TEST(TextOutput, ShowsNextWordsWithTheirProbability) {
  Writer writer({OutputFormat::text, false, true});
  const std::vector<Candidate> words{{std::log(0.5), writer.ids({"the"})[0], 0},
                                     {std::log(0.25), writer.ids({"</s>"})[0], 0}};
  writer.sink->next_words(prompt(0, ""), words);
  writer.sink->next_words(prompt(1, ""), {});
  EXPECT_EQ(writer.text, "1\tthe\t0.5\n1\t</s>\t0.25\n2\t\t\n");
  EXPECT_EQ(writer.blocks, 2);
}

TEST(JsonOutput, IsAnObjectForEachInput) {
  Writer writer({OutputFormat::jsonl, false, true});
  writer.block(prompt(0, "say \"x\"\t\\", {"say", "\"x\""}), {{"a\"b\\c", "\x01", "</s>"}, {"naïve"}});
  writer.block(prompt(1, ""), {});
  const size_t end = writer.text.find('\n');
  const auto first = nlohmann::json::parse(writer.text.substr(0, end));
  EXPECT_EQ(first["prompt"], "say \"x\"\t\\");
  EXPECT_EQ(first["prompt_oov"], (std::vector<std::string>{"say", "\"x\""}));
  ASSERT_EQ(first["hypotheses"].size(), 2);
  const auto& best = first["hypotheses"][0];
  EXPECT_EQ(best["text"], "a\"b\\c \x01");
  EXPECT_EQ(best["tokens"], (std::vector<std::string>{"a\"b\\c", "\x01", "</s>"}));
  EXPECT_EQ(best["logprob"].get<double>(), -0.1 * 3);  // to the bit
  EXPECT_EQ(best["score"].get<double>(), -0.1);
  EXPECT_EQ(best["token_logprobs"], (std::vector<double>{-0.1, -0.1, -0.1}));
  EXPECT_EQ(best["finished"], true);
  EXPECT_EQ(first["hypotheses"][1]["finished"], false);
  EXPECT_EQ(first["hypotheses"][1]["text"], "naïve");
  const auto second = nlohmann::json::parse(writer.text.substr(end + 1));
  EXPECT_TRUE(second["hypotheses"].empty());
}

TEST(JsonOutput, ShowsNextWordsWithTheirProbability) {
  Writer writer({OutputFormat::jsonl, false, true});
  const std::vector<Candidate> words{{-0.75, writer.ids({"the"})[0], 0}};
  writer.sink->next_words(prompt(0, "a"), words);
  const auto object = nlohmann::json::parse(writer.text);
  EXPECT_EQ(object["prompt"], "a");
  EXPECT_EQ(object["next"][0]["word"], "the");
  EXPECT_EQ(object["next"][0]["logprob"].get<double>(), -0.75);
  EXPECT_EQ(object["next"][0]["probability"].get<double>(), std::exp(-0.75));
}

TEST(MosesOutput, CountsFromZeroAndKeepsItsSeparatorApart) {
  Writer writer({OutputFormat::moses, false, true});
  writer.block(prompt(0, ""), {{"the", "|||", "</s>"}, {"</s>"}});
  writer.block(prompt(1, ""), {{"the"}});
  EXPECT_EQ(writer.text,
            "0 ||| the &#124;&#124;&#124; ||| logprob= -0.30000000000000004 ||| -0.1\n"
            "0 |||  ||| logprob= -1.1 ||| -1.1\n"
            "1 ||| the ||| logprob= -0.1 ||| -0.1\n");
}

// A block of any length goes out in pieces.
TEST(Output, LongBlocksDoNotGatherInMemory) {
  for (const OutputFormat format : {OutputFormat::text, OutputFormat::jsonl, OutputFormat::moses}) {
    Writer writer({format, false, false});
    writer.block(prompt(0, ""), {std::vector<std::string>(100'000, "the")});
    EXPECT_GE(writer.text.size(), 400'000);
    EXPECT_LT(writer.largest_piece, 80'000);
    EXPECT_EQ(writer.blocks, 1);
  }
}

TEST(Output, APieceNeverEndsInsideACharacter) {
  for (const OutputFormat format : {OutputFormat::text, OutputFormat::jsonl, OutputFormat::moses}) {
    const Vocabulary vocabulary =
        Vocabulary::from_counts({{"</s>", 9}, {std::string(700, 'x') + "na\u00efve\u20ac\U0001f600", 8}});
    int pieces = 0;
    const auto sink =
        make_result_writer(vocabulary, {format, false, false, false}, [&](std::string_view piece, bool) {
          ++pieces;
          EXPECT_FALSE(find_malformed_utf8(piece));
        });
    const std::vector<int32_t> tokens(500, vocabulary.find("</s>") == 0 ? 1 : 0);
    sink->begin(prompt(0, ""), 1);
    sink->hypothesis(prompt(0, ""), {-1, -1, false, tokens, {}});
    sink->end(prompt(0, ""));
    EXPECT_GT(pieces, 4);
  }
}

/// A network of "the" or "|||", then nothing or "a\"b", and the path that takes the second of each.
Prompt network_prompt() {
  Prompt result = prompt(2, "before");
  result.id = "\"u\"";
  result.network.positions = {{{"the", -1, {1}, 0}, {"|||", -2, {4}, 0}},
                              {{"", -1, {}, 0}, {"a\"b c", -0.5, {0, 0}, 2}}};
  return result;
}
constexpr int32_t kChoices[] = {1, 1};
const NetworkPath kPath{-4.5, -2.5, -2, 3, 2, kChoices};

TEST(Output, APathShowsItsWordsAndChannelAndModelScoresApart) {
  const Prompt prompt = network_prompt();
  const auto written = [&](OutputOptions options) {
    Writer writer(options);
    writer.sink->begin(prompt, 1);
    writer.sink->path(prompt, kPath);
    writer.sink->end(prompt);
    return writer.text;
  };
  EXPECT_EQ(written({OutputFormat::text, false, false, true}), "||| a\"b c\n");
  EXPECT_EQ(written({OutputFormat::text, true, true, true}), "3\t-2.5\t-2\t-4.5\t||| a\"b c\n");
  EXPECT_EQ(written({OutputFormat::moses, false, false, true}),
            "2 ||| &#124;&#124;&#124; a\"b c ||| channel= -2.5 logprob= -2 words= 3 ||| -4.5\n");
  const auto json = nlohmann::json::parse(written({OutputFormat::jsonl, false, false, true}));
  EXPECT_EQ(json["id"], "u");
  const auto& path = json["hypotheses"][0];
  EXPECT_EQ(path["text"], "||| a\"b c");
  EXPECT_EQ(path["channel"], -2.5);
  EXPECT_EQ(path["logprob"], -2);
  EXPECT_EQ(path["score"], -4.5);
  EXPECT_EQ(path["words"], 3);
  EXPECT_EQ(path["oov"], 2);
  EXPECT_EQ(path["choices"], nlohmann::json({1, 1}));
}

TEST(Output, ABadLineHasAnAnswerInItsPlace) {
  Prompt bad = prompt(4, "");
  bad.error = "in:5: \"bad\"";
  const auto written = [&](OutputOptions options) {
    Writer writer(options);
    writer.sink->bad_line(bad);
    EXPECT_EQ(writer.blocks, 1);
    return writer.text;
  };
  EXPECT_EQ(written({OutputFormat::text, false, false, false}), "\n");
  EXPECT_EQ(written({OutputFormat::text, true, true, false}), "5\t\t\t\n");
  EXPECT_EQ(written({OutputFormat::text, true, true, true}), "5\t\t\t\t\n");
  EXPECT_EQ(written({OutputFormat::moses, false, false, false}), "");
  EXPECT_EQ(written({OutputFormat::jsonl, false, false, false}),
            "{\"line\":5,\"error\":\"in:5: \\\"bad\\\"\"}\n");
}

}  // namespace
}  // namespace hsm
