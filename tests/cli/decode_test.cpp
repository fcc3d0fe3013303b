#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "cli/program.h"
#include "cli/sample_model.h"

namespace hsm {
namespace {

using test::Outcome;
using test::run_program;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using Json = nlohmann::json;

class Decode : public testing::Test {
 protected:
  Decode() { test::write_sample_model(folder_.path() / "model"); }

  [[nodiscard]] Outcome run(std::vector<std::string> more, const std::string& input = "") const {
    std::vector<std::string> arguments{"decode", "--model", folder_ / "model", "--threads", "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_program(arguments, input);
  }
  [[nodiscard]] std::vector<std::string> lines(std::vector<std::string> more,
                                               const std::string& input = "") const {
    const Outcome outcome = run(std::move(more), input);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return split(outcome.out);
  }
  [[nodiscard]] std::vector<Json> objects(std::vector<std::string> more,
                                          const std::string& input = "") const {
    more.insert(more.end(), {"--format", "jsonl"});
    std::vector<Json> result;
    for (const std::string& line : lines(std::move(more), input)) result.push_back(Json::parse(line));
    return result;
  }
  /// What hsm score says of each line, by word.
  [[nodiscard]] std::vector<Json> scored(const std::string& text) const {
    const Outcome outcome = run_program(
        {"score", "--model", folder_ / "model", "--by", "word", "--format", "jsonl", "--context", "sentence"},
        text);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    std::vector<Json> result;
    for (const std::string& line : split(outcome.out)) result.push_back(Json::parse(line));
    result.pop_back();  // the corpus
    return result;
  }
  static std::vector<std::string> split(const std::string& text) {
    std::vector<std::string> result;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) result.push_back(line);
    return result;
  }

  test::TemporaryFolder folder_;
};

TEST_F(Decode, AnswersEveryLineInOrder) {
  const std::string prompts = "the cat\n\nmy dog sees\nthe river\nthe";  // the last without its line end
  const auto all = lines({"--beam", "3"}, prompts);
  ASSERT_EQ(all.size(), 5);
  EXPECT_EQ(lines({"--beam", "3", "--batch", "1"}, prompts), all);
  EXPECT_EQ(lines({"--beam", "3", "--prompt", "my dog sees"}), std::vector<std::string>{all[2]});
  EXPECT_EQ(lines({"--beam", "3", "--input", folder_.write("prompts", prompts)}), all);
  EXPECT_EQ(lines({"--beam", "3", "--prompt", "the", "--prompt", ""}),
            (std::vector<std::string>{all[4], all[1]}));
}

TEST_F(Decode, GivesTheLogProbabilitiesThatScoreGivesToTheBit) {
  const auto decoded =
      objects({"--beam", "5", "--nbest", "5", "--max-length", "12"}, "\nthe old man\nmy dog\n");
  ASSERT_EQ(decoded.size(), 3);
  int64_t finished = 0;
  for (const Json& block : decoded) {
    for (const Json& hypothesis : block["hypotheses"]) {
      const std::string prompt = block["prompt"];
      const Json line = scored(prompt + " " + std::string(hypothesis["text"]) + "\n").at(0);
      auto tokens = line["tokens"].get<std::vector<std::string>>();
      auto log_probs = line["logprobs"].get<std::vector<double>>();
      std::istringstream words(prompt);
      for (std::string word; words >> word;) {
        tokens.erase(tokens.begin());
        log_probs.erase(log_probs.begin());
      }
      if (!hypothesis["finished"]) {  // score adds the end
        tokens.pop_back();
        log_probs.pop_back();
      }
      EXPECT_EQ(hypothesis["tokens"], tokens);
      EXPECT_EQ(hypothesis["token_logprobs"].get<std::vector<double>>(), log_probs);
      double sum = 0;
      for (const double value : log_probs) sum += value;
      EXPECT_EQ(hypothesis["logprob"].get<double>(), sum);
      finished += hypothesis["finished"].get<bool>() ? 1 : 0;
    }
  }
  EXPECT_GT(finished, 0);
}

TEST_F(Decode, PenaltyAndLengthsAreHeeded) {
  const auto block = objects({"--beam", "4", "--nbest", "4", "--length-penalty", "1.5", "--min-length", "2",
                              "--max-length", "7"},
                             "the\n")
                         .at(0);
  ASSERT_EQ(block["hypotheses"].size(), 4);
  double last = 0;
  for (const Json& hypothesis : block["hypotheses"]) {
    const auto length = hypothesis["tokens"].size();
    EXPECT_GE(length, hypothesis["finished"].get<bool>() ? 3 : 7);
    EXPECT_LE(length, 7);
    EXPECT_DOUBLE_EQ(
        hypothesis["score"].get<double>(),
        hypothesis["logprob"].get<double>() / std::pow((5.0 + static_cast<double>(length)) / 6, 1.5));
    EXPECT_LE(hypothesis["score"].get<double>(), last == 0 ? 0 : last);
    last = hypothesis["score"];
  }
}

TEST_F(Decode, TakesDefaultsFromTheModelsConfiguration) {
  const auto given = objects({"--beam", "8", "--nbest", "1", "--max-length", "100"}, "the\n");
  EXPECT_EQ(objects({}, "the\n"), given);
}

TEST_F(Decode, FindsTheModelByItsConfiguration) {
  const std::string config =
      folder_.write("recipe.json", R"({"data": {"train": "none.txt"}, "output": {"directory": ")" +
                                       (folder_ / "model") + "\"}}");
  const Outcome outcome = run_program({"decode", "--config", config, "--beam", "2"}, "the\n");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(split(outcome.out), lines({"--beam", "2"}, "the\n"));
}

TEST_F(Decode, NextWordsArePartOfADistribution) {
  const auto all = objects({"--next", "1000", "--suppress", ""}, "the cat\n").at(0)["next"];
  double sum = 0;
  std::set<std::string> words;
  for (const Json& word : all) {
    sum += word["probability"].get<double>();
    words.insert(word["word"]);
    EXPECT_EQ(std::exp(word["logprob"].get<double>()), word["probability"].get<double>());
  }
  EXPECT_NEAR(sum, 1, 1e-5);
  EXPECT_EQ(words.size(), all.size());
  EXPECT_TRUE(words.contains("</s>") && words.contains("<unk>"));
  EXPECT_EQ(objects({"--next", "1000"}, "the cat\n").at(0)["next"].size(), all.size() - 1);  // without <unk>

  for (const Json& word : objects({"--next", "1000", "--prefix", "s"}, "the cat\n").at(0)["next"]) {
    EXPECT_EQ(std::string(word["word"]).substr(0, 1), "s");
  }
  for (const Json& word : objects({"--next", "1000", "--exclude-seen"}, "the cat\n").at(0)["next"]) {
    EXPECT_THAT(std::string(word["word"]), Not(testing::AnyOf("the", "cat")));
  }
  const auto text = lines({"--next", "2"}, "the cat\nmy\n");
  ASSERT_EQ(text.size(), 4);
  EXPECT_THAT(text[0], testing::MatchesRegex("1\t[^\t]+\t0\\.[0-9]+"));
  EXPECT_THAT(text[3], testing::StartsWith("2\t"));
}

TEST_F(Decode, SamplesRepeatWithTheirSeed) {
  const std::vector<std::string> options{"--sample", "4", "--temperature", "1.3",
                                         "--top-k",  "9", "--top-p",       "0.95"};
  const auto with_seed = [&](const std::string& seed) {
    auto all = options;
    all.insert(all.end(), {"--seed", seed});
    return lines(all, "the\nmy dog\n");
  };
  EXPECT_EQ(with_seed("7"), with_seed("7"));
  EXPECT_NE(with_seed("7"), with_seed("8"));
  EXPECT_EQ(with_seed("7").size(), 8);
}

TEST_F(Decode, SuppressedWordsDoNotAppear) {
  const auto decoded = objects(
      {"--beam", "6", "--nbest", "6", "--suppress", "the a", "--suppress", "</s>", "--max-length", "6"},
      "\n");
  for (const Json& hypothesis : decoded.at(0)["hypotheses"]) {
    EXPECT_EQ(hypothesis["tokens"].size(), 6);
    EXPECT_THAT(hypothesis["tokens"].get<std::vector<std::string>>(),
                Not(testing::Contains(testing::AnyOf("the", "a", "</s>"))));
  }
}

TEST_F(Decode, SaysWhichWordsItDoesNotKnow) {
  const Outcome outcome = run({"--beam", "2", "--format", "jsonl"}, "the zebra\n");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("zebra"));
  EXPECT_THAT(outcome.err, HasSubstr("standard input:1"));
  const Json block = Json::parse(outcome.out);
  EXPECT_THAT(block["prompt_oov"].get<std::vector<std::string>>(), ElementsAre("zebra"));
  Json known = objects({"--beam", "2"}, "the <unk>\n").at(0);
  EXPECT_EQ(block["hypotheses"], known["hypotheses"]);
  EXPECT_TRUE(known["prompt_oov"].empty());
}

TEST_F(Decode, WritesMosesLines) {
  const auto all = lines({"--beam", "2", "--nbest", "2", "--format", "moses"}, "the\nmy\n");
  ASSERT_EQ(all.size(), 4);
  EXPECT_THAT(all[0], testing::MatchesRegex("0 \\|\\|\\| .* \\|\\|\\| logprob= -[0-9.]+ \\|\\|\\| -[0-9.]+"));
  EXPECT_THAT(all[3], testing::StartsWith("1 ||| "));
}

TEST_F(Decode, PrintsScoresInColumns) {
  const auto plain = lines({"--beam", "3", "--nbest", "2"}, "the\n");
  const auto with_scores = lines({"--beam", "3", "--nbest", "2", "--scores"}, "the\n");
  ASSERT_EQ(plain.size(), 2);
  ASSERT_EQ(with_scores.size(), 2);
  const std::string text = plain[0].substr(plain[0].find('\t') + 1);
  EXPECT_THAT(with_scores[0], testing::MatchesRegex("1\t-[0-9.]+\t-[0-9.]+\t.*"));
  EXPECT_THAT(with_scores[0], testing::EndsWith("\t" + text));
}

TEST_F(Decode, ABudgetThatIsTooSmallIsExitCode4AndNamesTheOneThatIsNot) {
  const Outcome refused = run({"--beam", "16", "--memory-budget", "1KiB"}, "the\n");
  EXPECT_EQ(refused.code, 4);
  EXPECT_THAT(refused.out, IsEmpty());
  EXPECT_THAT(refused.err, HasSubstr("states"));
  const std::string before = "at least ";
  const std::string least =
      std::to_string(std::stoull(refused.err.substr(refused.err.find(before) + before.size())));
  const Outcome done = run({"--beam", "16", "--memory-budget", least, "--stats"}, "the\n");
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_EQ(done.out, run({"--beam", "16"}, "the\n").out);
  EXPECT_THAT(done.err, HasSubstr("search memory"));
  EXPECT_THAT(done.err, HasSubstr("model memory"));
  EXPECT_EQ(run({"--beam", "16", "--memory-budget", std::to_string(std::stoull(least) - 1)}, "the\n").code,
            4);
}

TEST_F(Decode, StatsTellPlanPeakModelExpansionsAndSpeed) {
  const Outcome outcome = run({"--stats", "--beam", "4", "--memory-budget", "2MiB"}, "the\n\n");
  ASSERT_EQ(outcome.code, 0);
  for (const char* fact :
       {"inputs           2, up to ", "steps            ", "tokens           ", " steps/s",
        "clusters x hypotheses", "search memory    ", " of a budget of 2.0 MiB: ", "states ",
        "hypothesis pool ", "model memory     ", "together         ", "process peak     "}) {
    EXPECT_THAT(outcome.err, HasSubstr(fact));
  }
}

TEST_F(Decode, EverySubcommandWorksWithTheSameModel) {
  for (const std::vector<std::string>& command : {std::vector<std::string>{"info"},
                                                  {"score", "--by", "word"},
                                                  {"score", "--nbest", "moses"},
                                                  {"decode", "--beam", "3"},
                                                  {"decode", "--sample", "2"},
                                                  {"decode", "--next", "3"}}) {
    std::vector<std::string> arguments = command;
    arguments.insert(arguments.end(), {"--model", folder_ / "model"});
    const Outcome outcome = run_program(arguments, command[0] == "info" ? "" : "0 ||| the\n");
    EXPECT_EQ(outcome.code, 0) << command[0] << outcome.err;
    EXPECT_NE(outcome.out, "") << command[0];
  }
}

TEST_F(Decode, AMalformedLineIsExitCode3AfterTheAnswersBeforeIt) {
  const Outcome outcome = run({"--beam", "2"}, "the\nmy dog\nthe </s> cat\nthe\n");
  EXPECT_EQ(outcome.code, 3);
  EXPECT_EQ(split(outcome.out).size(), 2);
  EXPECT_THAT(outcome.err, HasSubstr("standard input:3"));
}

TEST_F(Decode, ABadLineCanBeReportedAndTheOthersAnswered) {
  const std::string input = "the\nbad \xff line\nthe </s> cat\n\n";
  const Outcome outcome = run({"--on-bad-line", "report", "--format", "jsonl"}, input);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto answers = split(outcome.out);
  ASSERT_EQ(answers.size(), 4);
  EXPECT_EQ(Json::parse(answers[0])["prompt"], "the");
  EXPECT_EQ(Json::parse(answers[1])["line"], 2);
  EXPECT_THAT(Json::parse(answers[1])["error"].get<std::string>(), HasSubstr("standard input:2: "));
  EXPECT_THAT(Json::parse(answers[2])["error"].get<std::string>(), HasSubstr("</s>"));
  EXPECT_EQ(Json::parse(answers[3])["prompt"], "");
  EXPECT_THAT(outcome.err, HasSubstr("standard input:3: "));
  EXPECT_EQ(split(run({"--on-bad-line", "report"}, input).out).size(), 4);
}

TEST_F(Decode, ChoosesAmongCandidatesWithTheScoresThatScoreGives) {
  const std::string input =
      R"({"id":"u1","positions":[[{"text":"the","score":-0.5},{"text":"a","score":-1}],[{"text":"","score":-2},{"text":"cat sat","score":-1},"zebra"]]})"
      "\n"
      R"({"positions":[]})"
      "\n";
  const auto blocks = objects(
      {"--candidates", "-", "--beam", "9", "--nbest", "9", "--lm-weight", "0.5", "--word-bonus", "0.1"},
      input);
  ASSERT_EQ(blocks.size(), 2);
  EXPECT_EQ(blocks[0]["id"], "u1");
  ASSERT_EQ(blocks[0]["hypotheses"].size(), 6);
  std::string texts;
  for (const Json& path : blocks[0]["hypotheses"]) texts += path["text"].get<std::string>() + "\n";
  const auto scores = scored(texts);
  for (size_t i = 0; i < 6; ++i) {
    const Json& path = blocks[0]["hypotheses"][i];
    double sum = 0;
    for (const Json& log_prob : scores[i]["logprobs"]) sum += log_prob.get<double>();
    EXPECT_EQ(path["logprob"].get<double>(), sum) << path;
    EXPECT_EQ(path["oov"], scores[i]["oov"].size());
    EXPECT_DOUBLE_EQ(path["score"].get<double>(),
                     path["channel"].get<double>() + 0.5 * sum + 0.1 * path["words"].get<double>());
    EXPECT_LE(path["score"], blocks[0]["hypotheses"][i == 0 ? 0 : i - 1]["score"]);
  }
  ASSERT_EQ(blocks[1]["hypotheses"].size(), 1);
  EXPECT_EQ(blocks[1]["hypotheses"][0]["text"], "");
  EXPECT_EQ(lines({"--candidates", "-", "--scores"}, input).size(), 2);
}

TEST_F(Decode, NoInputIsNoOutputAndAWarning) {
  const Outcome outcome = run({"--beam", "2"}, "");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.out, IsEmpty());
  EXPECT_THAT(outcome.err, HasSubstr("no line"));
}

TEST_F(Decode, WrongOptionsAreExitCode2) {
  struct Wrong {
    std::vector<std::string> options;
    std::string named;  ///< what the message must hold
  };
  const std::vector<Wrong> table{
      {{"--beam", "0"}, "--beam"},
      {{"--beam", "two"}, "--beam"},
      {{"--beam", "2", "--nbest", "3"}, "--nbest 3: expected 1 to 2"},
      {{"--min-length", "9", "--max-length", "8"}, "--min-length 9: expected 0 to 8"},
      {{"--length-penalty", "inf"}, "--length-penalty inf"},
      {{"--temperature", "0.5"}, "--sample"},
      {{"--sample", "2", "--temperature", "0"}, "--temperature 0"},
      {{"--sample", "2", "--top-p", "1.5"}, "--top-p 1.5"},
      {{"--sample", "2", "--top-k", "-1"}, "--top-k -1"},
      {{"--sample", "2", "--beam", "2"}, "--beam"},
      {{"--sample", "2", "--next", "2"}, "--next"},
      {{"--next", "2", "--max-length", "3"}, "--max-length"},
      {{"--next", "2", "--format", "moses"}, "--format moses"},
      {{"--next", "2", "--prefix", "\xff"}, "--prefix"},
      {{"--prefix", "a"}, "--next"},
      {{"--exclude-seen"}, "--next"},
      {{"--suppress", "zebra"}, "zebra"},
      {{"--prompt", "the", "--input", "-"}, "--input"},
      {{"--format", "xml"}, "xml"},
      {{"--memory-budget", "much"}, "--memory-budget"},
      {{"--batch", "100000"}, "--batch"},
      {{"--device", "cuda:97"}, "device \"cuda:97\""},
      {{"--beam", "1000000", "--max-length", "1000000"}, "--max-length"},
  };
  for (const Wrong& wrong : table) {
    const Outcome outcome = run(wrong.options, "the\n");
    EXPECT_EQ(outcome.code, 2) << testing::PrintToString(wrong.options) << outcome.err;
    EXPECT_THAT(outcome.out, IsEmpty());
    EXPECT_THAT(outcome.err, HasSubstr(wrong.named));
  }
  EXPECT_EQ(run_program({"decode"}).code, 2);
  EXPECT_EQ(run_program({"decode", "--model", folder_ / "nothing"}).code, 3);
  EXPECT_EQ(run({"--input", folder_ / "nothing"}).code, 3);
}

// Two pipes: the next line is written only when the answer to the one before has been read. An answer that
// were kept back would make this wait for ever.
TEST_F(Decode, AnswersALineBeforeTheNextIsWritten) {
  const std::string in = folder_ / "in";
  const std::string out = folder_ / "out";
  ASSERT_EQ(mkfifo(in.c_str(), 0600), 0);
  ASSERT_EQ(mkfifo(out.c_str(), 0600), 0);
  Outcome outcome;
  std::thread program([&] { outcome = run({"--beam", "2", "--input", in, "--output", out}); });
  {
    std::ofstream prompts(in);
    std::ifstream answers(out);
    std::string answer;
    for (const char* line : {"the", "", "my dog"}) {
      prompts << line << std::endl;
      EXPECT_TRUE(std::getline(answers, answer)) << line;
    }
    prompts.close();
    EXPECT_FALSE(std::getline(answers, answer));
  }
  program.join();
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

}  // namespace
}  // namespace hsm
