#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/program.h"
#include "eval/line_scorer.h"
#include "eval/small_model.h"
#include "eval/token_scorer.h"
#include "kernels/cuda_device.h"

namespace hsm {
namespace {

using Json = nlohmann::json;
using test::Outcome;
using test::run_program;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::vector<Json> objects_of(const std::string& text) {
  std::vector<Json> objects;
  for (const std::string& line : lines_of(text)) objects.push_back(Json::parse(line));
  return objects;
}

class Score : public ::testing::Test {
 protected:
  Score() { save_model(small_, folder_ / "model"); }

  [[nodiscard]] Outcome score(std::vector<std::string> arguments, const std::string& input = "") const {
    arguments.insert(arguments.begin(), {"score", "--model", folder_ / "model"});
    return run_program(arguments, input);
  }

  [[nodiscard]] CorpusScore expected(const std::string& path, Context context) const {
    LineReader reader(path);
    ThreadPool pool(1);
    LineOptions options;
    options.context = context;
    TokenScorer scorer(small_.model, small_.vocabulary.end_of_sentence(), pool);
    return LineScorer(scorer, small_.vocabulary, options).score(reader, [](const ScoredLine&) {});
  }

  const std::string text_ = "w2 w3 zebra\n\nw30 w7 w7 <unk> w9\n";
  const SmallModel small_{usual_sample()};
  const test::TemporaryFolder folder_;
  const std::string file_ = folder_.write("text", text_);
};

TEST_F(Score, JsonBySentenceAddsUpToTheCorpus) {
  const Outcome run = score({file_, "--by", "sentence", "--format", "jsonl"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(run.err, "");
  const std::vector<Json> objects = objects_of(run.out);
  ASSERT_EQ(objects.size(), 4U);
  double sum = 0;
  for (int line = 1; line <= 3; ++line) {
    EXPECT_EQ(objects[static_cast<size_t>(line) - 1]["line"], line);
    sum += objects[static_cast<size_t>(line) - 1]["logprob"].get<double>();
  }
  const CorpusScore corpus = expected(file_, Context::stream);
  EXPECT_EQ(objects[3]["logprob"].get<double>(), sum);
  EXPECT_EQ(objects[3]["logprob"].get<double>(), corpus.log_prob);
  EXPECT_EQ(objects[3]["words"], 11);
  EXPECT_EQ(objects[3]["oov"], 2);
  EXPECT_EQ(objects[3]["sentences"], 3);
  EXPECT_EQ(objects[3]["perplexity"].get<double>(), corpus.perplexity());
  EXPECT_EQ(objects[3]["perplexity_without_oov"].get<double>(), corpus.perplexity_without_oov());
}

TEST_F(Score, JsonByWordAddsUpToTheSentences) {
  const std::vector<Json> sentences = objects_of(score({file_, "--by", "sentence", "--format", "jsonl"}).out);
  const std::vector<Json> words = objects_of(score({file_, "--by", "word", "--format", "jsonl"}).out);
  ASSERT_EQ(words.size(), 4U);
  EXPECT_EQ(words[0]["tokens"], Json({"w2", "w3", "zebra", "</s>"}));
  for (size_t line = 0; line < 3; ++line) {
    double sum = 0;
    for (const Json& log_prob : words[line]["logprobs"]) sum += log_prob.get<double>();
    EXPECT_EQ(sum, sentences[line]["logprob"].get<double>());
  }
  EXPECT_EQ(words[3], sentences[3]);
}

TEST_F(Score, FilesStandardInputAndThreadsGiveTheSame) {
  const std::string of_file = score({file_, "--by", "word", "--format", "jsonl", "--threads", "1"}).out;
  EXPECT_EQ(score({"--by", "word", "--format", "jsonl", "--threads", "2"}, text_).out, of_file);
  EXPECT_EQ(score({"-", "--by", "word", "--format", "jsonl"}, text_).out, of_file);
  const Outcome to_file = score({file_, "--by", "word", "--format", "jsonl", "--output", folder_ / "out"});
  EXPECT_EQ(to_file.out, "");
  EXPECT_EQ(read_file(folder_ / "out"), of_file);
}

TEST_F(Score, TextEndsWithSrilmsSummary) {
  const Outcome run = score({file_});
  ASSERT_EQ(run.code, 0) << run.err;
  const std::vector<std::string> lines = lines_of(run.out);
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines[0], "# log base 10, context stream");
  EXPECT_EQ(lines[1], "file " + file_ + ": 3 sentences, 8 words, 2 OOVs");
  EXPECT_THAT(lines[2], StartsWith("0 zeroprobs, logprob= -"));
  EXPECT_THAT(lines[3], EndsWith(" over 9 predictions"));
  EXPECT_THAT(score({"--log-base", "2"}, text_).out, StartsWith("# log base 2, "));
}

TEST_F(Score, SeveralFilesAreSummedUp) {
  const std::string other = folder_.write("other", "w4\n");
  const std::vector<Json> objects = objects_of(score({file_, other, "--format", "jsonl"}).out);
  ASSERT_EQ(objects.size(), 3U);
  EXPECT_EQ(objects[0]["file"], file_);
  EXPECT_EQ(objects[1]["file"], other);
  EXPECT_EQ(objects[1]["logprob"].get<double>(), expected(other, Context::stream).log_prob)
      << "a file's score depends on the one before it";
  EXPECT_FALSE(objects[2].contains("file"));
  EXPECT_EQ(objects[2]["words"], 13);
}

TEST_F(Score, ContextIsThatOfTrainingUnlessAskedOtherwise) {
  Config config;
  config.train.context = "sentence";
  save_model(small_, folder_ / "by_sentence", config);
  const auto log_prob = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"score", file_, "--format", "jsonl"});
    return objects_of(run_program(arguments).out).at(0)["logprob"].get<double>();
  };
  const double stream = expected(file_, Context::stream).log_prob;
  const double sentence = expected(file_, Context::sentence).log_prob;
  ASSERT_NE(stream, sentence);
  EXPECT_EQ(log_prob({"--model", folder_ / "model"}), stream);
  EXPECT_EQ(log_prob({"--model", folder_ / "model", "--context", "sentence"}), sentence);
  EXPECT_EQ(log_prob({"--model", folder_ / "by_sentence"}), sentence);
  EXPECT_EQ(log_prob({"--model", folder_ / "by_sentence", "--context", "stream"}), stream);
}

TEST_F(Score, TextIsReadAsInTraining) {
  Config config;
  config.data.lowercase = true;
  config.data.skip_blank_lines = true;
  save_model(small_, folder_ / "other_text", config);
  const auto run = [&](const std::string& input) {
    return run_program({"score", "--model", folder_ / "other_text", "--format", "jsonl"}, input);
  };
  const Json sums = objects_of(run("W2\n\nW3\n").out).at(0);
  EXPECT_EQ(sums["words"], 4);
  EXPECT_EQ(sums["oov"], 0);
  const Outcome blank = run("\n \n");
  EXPECT_EQ(blank.code, 3);
  EXPECT_THAT(blank.err, HasSubstr("standard input: nothing to score"));
  EXPECT_THAT(blank.err, HasSubstr("skips blank lines"));
}

TEST_F(Score, NothingToScoreIsAnError) {
  const Outcome run = score({});
  EXPECT_EQ(run.code, 3);
  EXPECT_EQ(run.err, "hsm: standard input: nothing to score, there is no line\n");
}

TEST_F(Score, LinesBeforeAMalformedOneAreAnswered) {
  const Outcome run = score({"--by", "sentence", "--format", "jsonl"}, "w2\nw3 \xff\nw4\n");
  EXPECT_EQ(run.code, 3);
  EXPECT_EQ(objects_of(run.out).size(), 1U);
  EXPECT_THAT(run.err, HasSubstr("standard input:2: byte 4"));
}

TEST_F(Score, MalformedLinesCanBeReportedInTheirPlace) {
  const std::string input = "w2 w3\nbad \xff\nw4 </s> w5\n\nw6\n";
  const Outcome json = score({"--on-bad-line", "report", "--by", "sentence", "--format", "jsonl"}, input);
  ASSERT_EQ(json.code, 0) << json.err;
  const auto objects = objects_of(json.out);
  ASSERT_EQ(objects.size(), 6U);  // five lines and the corpus
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(objects[i]["line"], i + 1);
    EXPECT_EQ(objects[i].contains("error"), i == 1 || i == 2);
    EXPECT_EQ(objects[i].contains("logprob"), i != 1 && i != 2);
  }
  EXPECT_EQ(objects[5]["sentences"], 3);
  EXPECT_EQ(objects[5]["malformed"], 2);
  EXPECT_THAT(json.err, HasSubstr("standard input:2: "));

  for (const char* unit : {"sentence", "word"}) {
    const Outcome text = score({"--on-bad-line", "report", "--by", unit}, input);
    size_t tabs = 0;
    for (const std::string& line : lines_of(text.out)) {
      if (line.starts_with("# line")) tabs = static_cast<size_t>(std::count(line.begin(), line.end(), '\t'));
      if (line.starts_with("2\t")) {
        EXPECT_EQ(line, "2" + std::string(tabs, '\t'));
      }
    }
    EXPECT_THAT(text.out, EndsWith("without 2 malformed lines\n"));
  }
}

TEST_F(Score, RescoresNbestListsWithTheScoresOfSentences) {
  const std::string texts = "w2 w3\nw2 w3 zebra\n\nw7\n";
  std::vector<double> expected;
  for (const Json& object :
       objects_of(score({"--by", "sentence", "--format", "jsonl", "--context", "sentence"}, texts).out)) {
    expected.push_back(object["logprob"].get<double>());
  }
  const std::string kaldi = "a-1 w2 w3\na-2 w2 w3 zebra\nb-1\nb-2 w7\n";
  const std::string costs = folder_.write("costs", "a-1 1\na-2 2\nb-1 3\nb-2 4\n");
  const Outcome json = score({"--nbest", "kaldi", "--format", "jsonl", "--channel-costs", costs,
                              "--lm-weight", "2", "--word-bonus", "0.5", "--oov-penalty", "3"},
                             kaldi);
  ASSERT_EQ(json.code, 0) << json.err;
  const auto lists = objects_of(json.out);
  ASSERT_EQ(lists.size(), 2U);
  for (size_t list = 0; list < 2; ++list) {
    for (const Json& hypothesis : lists[list]["hypotheses"]) {
      const size_t line = 2 * list + hypothesis["place"].get<size_t>();
      EXPECT_EQ(hypothesis["logprob"].get<double>(), expected[line]);
      EXPECT_EQ(hypothesis["channel"].get<double>(), -1.0 - static_cast<double>(line));
      EXPECT_DOUBLE_EQ(hypothesis["score"].get<double>(),
                       -1.0 - static_cast<double>(line) + 2 * expected[line] +
                           0.5 * hypothesis["words"].get<double>() - 3 * hypothesis["oov"].get<double>());
    }
  }
  std::istringstream cost_lines(
      score({"--nbest", "kaldi", "--format", "costs", "--threads", "3"}, kaldi).out);
  for (size_t line = 0; line < 4; ++line) {
    std::string key;
    double cost = 0;
    cost_lines >> key >> cost;
    EXPECT_EQ(cost, -expected[line]) << key;
  }
  EXPECT_EQ(lines_of(score({"--nbest", "kaldi"}, kaldi).out).size(), 4U);
}

TEST_F(Score, WrongOptionsAreRefused) {
  EXPECT_EQ(score({file_, "--by", "letter"}).code, 2);
  EXPECT_EQ(score({file_, "--log-base", "3"}).code, 2);
  EXPECT_EQ(score({file_, "--context", "page"}).code, 2);
  EXPECT_EQ(run_program({"score", file_}).code, 2) << "no model";
  EXPECT_EQ(score({folder_ / "missing"}).code, 3);
  EXPECT_EQ(run_program({"score", "--model", folder_ / "missing", file_}).code, 3);
}

// The loader tells of every library that is looked for.
TEST_F(Score, LooksForNoGpuUnlessOneIsAskedFor) {
  const auto libraries = [&](std::vector<std::string> device) {
    std::vector<std::string> arguments{"score", "--model", folder_ / "model", "-"};
    arguments.insert(arguments.end(), device.begin(), device.end());
    return run_program(test::Invocation{arguments, text_, {}, {{"LD_DEBUG", "libs"}}}).err;
  };
  for (const auto& device : {std::vector<std::string>{}, {"--device", "auto"}, {"--device", "cpu"}}) {
    const std::string opened = libraries(device);
    EXPECT_THAT(opened, HasSubstr("libstdc++"));
    EXPECT_THAT(opened, Not(HasSubstr("libcuda")));
    EXPECT_THAT(opened, Not(HasSubstr("libhsm_cuda")));
  }
  if (*kernels::cuda_compiler_version() != '\0') {
    EXPECT_THAT(libraries({"--device", "cuda"}), HasSubstr("libcuda"));
  }
}

/// hsm with pipes to its standard input and from its standard output.
class Conversation {
 public:
  explicit Conversation(std::vector<std::string> arguments) {
    std::array<int, 2> in{};
    std::array<int, 2> out{};
    if (::pipe2(in.data(), O_CLOEXEC) != 0 || ::pipe2(out.data(), O_CLOEXEC) != 0)
      throw std::runtime_error("pipe");
    posix_spawn_file_actions_t actions{};
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    arguments.insert(arguments.begin(), HSM_PROGRAM);
    std::vector<char*> pointers;
    pointers.reserve(arguments.size() + 1);
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    const int failed = ::posix_spawn(&child_, HSM_PROGRAM, &actions, nullptr, pointers.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    ::close(in[0]);
    ::close(out[1]);
    to_ = in[1];
    from_ = ::fdopen(out[0], "r");
    if (failed != 0) throw std::runtime_error("hsm can't be started");
  }
  ~Conversation() {
    end_input();
    std::fclose(from_);
    ::waitpid(child_, nullptr, 0);
  }
  Conversation(const Conversation&) = delete;
  Conversation& operator=(const Conversation&) = delete;

  void say(const std::string& line) const {
    if (::write(to_, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
      throw std::runtime_error("write");
  }
  void end_input() {
    if (to_ >= 0) ::close(std::exchange(to_, -1));
  }
  /// Waits for a line; empty at the end.
  [[nodiscard]] std::string hear() const {
    std::string line;
    for (int c = std::fgetc(from_); c != EOF && c != '\n'; c = std::fgetc(from_))
      line += static_cast<char>(c);
    return line;
  }

 private:
  pid_t child_ = 0;
  int to_ = -1;
  std::FILE* from_ = nullptr;
};

// Waits for ever, until the test's time limit, if an answer stays in a buffer.
TEST_F(Score, EachLineOfAPipeIsAnsweredBeforeTheNextIsSent) {
  Conversation hsm({"score", "--model", folder_ / "model", "--by", "sentence", "--format", "jsonl"});
  for (int line = 1; line <= 3; ++line) {
    hsm.say("w2 w5\n");
    EXPECT_EQ(Json::parse(hsm.hear())["line"], line);
  }
  hsm.end_input();
  EXPECT_EQ(Json::parse(hsm.hear())["sentences"], 3);
  EXPECT_EQ(hsm.hear(), "");
}

}  // namespace
}  // namespace hsm
