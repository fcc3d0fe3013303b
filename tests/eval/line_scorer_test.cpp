#include "eval/line_scorer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "eval/small_model.h"
#include "eval/token_scorer.h"
#include "model/test_directory.h"
#include "text/token_file.h"

namespace hsm {
namespace {

/// A ScoredLine that outlives the call.
struct KeptLine {
  int64_t number = 0;
  std::vector<std::string> texts;  // `</s>` too
  std::vector<int32_t> ids;
  std::vector<double> log_probs;
  std::vector<bool> oov;
  CorpusScore sums;
  std::string error;
};

KeptLine keep(const ScoredLine& line) {
  KeptLine kept{
      line.number, {}, {line.ids.begin(), line.ids.end()}, {}, {}, line.sums, std::string(line.error)};
  for (size_t place = 0; place < line.ids.size(); ++place) {
    kept.texts.emplace_back(line.text_of(place));
    kept.log_probs.push_back(line.scores[place].log_prob());
    kept.oov.push_back(line.is_oov(place));
  }
  return kept;
}

class LineScorerTest : public ::testing::Test {
 protected:
  std::vector<KeptLine> score(const std::string& text, const LineOptions& options = {}, int threads = 1) {
    write_file(folder_ / "text", text);
    LineReader reader(folder_ / "text");
    ThreadPool pool(threads);
    TokenScorer token_scorer(small_.model, small_.vocabulary.end_of_sentence(), pool);
    LineScorer scorer(token_scorer, small_.vocabulary, options);
    lines_.clear();
    corpus_ = scorer.score(reader, [this](const ScoredLine& line) { lines_.push_back(keep(line)); });
    return lines_;
  }

  [[nodiscard]] std::string spell(std::span<const int32_t> ids) const {
    std::string text;
    for (const int32_t id : ids) text += id == 0 ? "\n" : small_.vocabulary.word(id) + " ";
    return text;
  }

  TestDirectory folder_;
  SmallModel small_{usual_sample(Cell::gru)};
  std::vector<KeptLine> lines_;
  CorpusScore corpus_;
};

TEST_F(LineScorerTest, HandsOverWordsAsWrittenWithTheirScores) {
  const auto lines = score("w2  zebra\tw4 <unk>\n\n<s> w30 </s>\n");
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0].texts, (std::vector<std::string>{"w2", "zebra", "w4", "<unk>", "</s>"}));
  EXPECT_EQ(lines[0].ids, (std::vector<int32_t>{2, 1, 4, 1, 0}));
  EXPECT_EQ(lines[0].oov, (std::vector<bool>{false, true, false, true, false}));
  EXPECT_EQ(lines[0].sums.words, 5);
  EXPECT_EQ(lines[0].sums.oov, 2);
  EXPECT_EQ(lines[1].texts, std::vector<std::string>{"</s>"});
  EXPECT_EQ(lines[2].number, 3);
  EXPECT_EQ(lines[2].ids, (std::vector<int32_t>{30, 0}));
  double sum = 0;
  for (const double log_prob : lines[0].log_probs) sum += log_prob;
  EXPECT_EQ(lines[0].sums.log_prob, sum);
}

TEST_F(LineScorerTest, CorpusIsTheSumOfItsLinesAndOfItsTokenFileToTheBit) {
  const std::vector<int32_t> ids = small_.random_text({7, 0, 31, 2500, 1, 0, 19, 64, 3, 5}, 4);
  TokenFileWriter writer(folder_ / "tokens");
  for (const int32_t id : ids) writer.add(id);
  writer.commit(10, 0, 0);
  const TokenFile tokens(folder_ / "tokens");
  ThreadPool pool(1);
  for (const Context context : {Context::stream, Context::sentence}) {
    LineOptions options;
    options.context = context;
    CorpusScore sum;
    for (const KeptLine& line : score(spell(ids), options)) sum += line.sums;
    EXPECT_EQ(corpus_.log_prob, sum.log_prob);
    EXPECT_EQ(corpus_.words, sum.words);
    EXPECT_EQ(corpus_.sentences, 10);
    const CorpusScore whole = score_corpus(small_.model, small_.vocabulary, tokens, context, pool);
    EXPECT_EQ(corpus_.log_prob, whole.log_prob);
    EXPECT_EQ(corpus_.log_prob_oov, whole.log_prob_oov);
  }
}

TEST_F(LineScorerTest, WindowsAndThreadsChangeNoBit) {
  const std::string text = spell(small_.random_text({7, 0, 31, 200, 1, 0, 19, 64, 3, 10000, 5}, 6));
  for (const Context context : {Context::stream, Context::sentence}) {
    LineOptions options;
    options.context = context;
    options.window_words = 1;
    const auto one_by_one = score(text, options);
    ASSERT_EQ(one_by_one.size(), 11U);
    for (const int64_t window : {60, 100000}) {
      options.window_words = window;
      const auto together = score(text, options, 2);
      ASSERT_EQ(together.size(), one_by_one.size());
      for (size_t i = 0; i < together.size(); ++i) {
        EXPECT_EQ(together[i].log_probs, one_by_one[i].log_probs)
            << "line " << i + 1 << ", window " << window;
      }
    }
  }
}

TEST_F(LineScorerTest, StateGoesFromLineToLineInAStreamAndNotFromTextToText) {
  LineOptions sentence;
  sentence.context = Context::sentence;
  const auto stream = score("w2 w3\nw2 w3\n");
  const auto sentences = score("w2 w3\nw2 w3\n", sentence);
  EXPECT_EQ(stream[0].log_probs, sentences[0].log_probs);
  EXPECT_EQ(sentences[1].log_probs, sentences[0].log_probs);
  EXPECT_NE(stream[1].log_probs, stream[0].log_probs);

  ThreadPool pool(1);
  TokenScorer token_scorer(small_.model, small_.vocabulary.end_of_sentence(), pool);
  LineScorer scorer(token_scorer, small_.vocabulary, {});
  for (int text = 0; text < 2; ++text) {
    LineReader reader(folder_ / "text");
    std::vector<double> first;
    scorer.score(reader, [&](const ScoredLine& line) {
      if (line.number == 1) first = keep(line).log_probs;
    });
    EXPECT_EQ(first, stream[0].log_probs);
  }
}

TEST_F(LineScorerTest, BlankLinesAreEmptySentencesUnlessSkipped) {
  LineOptions options;
  EXPECT_EQ(score("\nw2\n \t\nw3", options).size(), 4U);
  EXPECT_EQ(corpus_.words, 6);
  options.skip_blank_lines = true;
  const auto lines = score("\nw2\n \t\nw3", options);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].number, 2);
  EXPECT_EQ(lines[1].number, 4);
  EXPECT_EQ(corpus_.words, 4);
}

TEST_F(LineScorerTest, TextIsLowerCasedWhereTheModelWasTrainedSo) {
  LineOptions options;
  EXPECT_TRUE(score("W2\n", options)[0].oov[0]);
  options.text.lowercase = true;
  const auto lines = score("W2\n", options);
  EXPECT_FALSE(lines[0].oov[0]);
  EXPECT_EQ(lines[0].texts[0], "w2");
}

TEST_F(LineScorerTest, NoTextHasNoSums) {
  EXPECT_TRUE(score("").empty());
  EXPECT_EQ(corpus_.sentences, 0);
}

TEST_F(LineScorerTest, LinesBeforeAMalformedOneAreHandedOver) {
  try {
    score("w2\nw3 w4\nw5 \xff\nw6\n");
    FAIL() << "malformed UTF-8 was accepted";
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find("text:3:"), std::string::npos) << error.what();
  }
  EXPECT_EQ(lines_.size(), 2U);
}

TEST_F(LineScorerTest, MalformedLinesCanBeReportedAndChangeNothingForTheOthers) {
  for (const Context context : {Context::stream, Context::sentence}) {
    LineOptions options;
    options.context = context;
    const auto good = score("w2 w3\n\nw4 w5 w6\n", options);
    const CorpusScore sums = corpus_;
    options.bad_lines = BadLines::report;
    options.window_words = 3;
    const auto kept = score("w2 w3\n\xff\n\nw2 </s> w3\nw4 w5 w6\nx \xc3\n", options);
    ASSERT_EQ(kept.size(), 6);
    EXPECT_EQ(kept[0].log_probs, good[0].log_probs);
    EXPECT_EQ(kept[2].log_probs, good[1].log_probs);
    EXPECT_EQ(kept[4].log_probs, good[2].log_probs);
    for (const size_t bad : {1U, 3U, 5U}) {
      EXPECT_EQ(kept[bad].number, static_cast<int64_t>(bad) + 1);
      EXPECT_TRUE(kept[bad].ids.empty());
      EXPECT_NE(kept[bad].error.find("text:" + std::to_string(bad + 1) + ": "), std::string::npos);
    }
    EXPECT_EQ(corpus_.log_prob, sums.log_prob);
    EXPECT_EQ(corpus_.sentences, 3);
    EXPECT_EQ(corpus_.malformed, 3);
  }
}

TEST_F(LineScorerTest, MemoryDoesNotGrowWithTheText) {
  std::string text;
  for (int line = 0; line < 40'000; ++line) text += line % 3 == 0 ? "w2 w3 w4 w5\n" : "w7 w8\n";
  write_file(folder_ / "text", text);
  ThreadPool pool(2);
  TokenScorer token_scorer(small_.model, small_.vocabulary.end_of_sentence(), pool);
  LineScorer scorer(token_scorer, small_.vocabulary, {});
  uint64_t early = 0;
  uint64_t late = 0;
  LineReader reader(folder_ / "text");
  scorer.score(reader, [&](const ScoredLine& line) {
    if (line.number == 15'000) early = anonymous_resident_bytes();
    if (line.number == 40'000) late = anonymous_resident_bytes();
  });
  EXPECT_LE(late, early + (uint64_t{1} << 20));
}

TEST_F(LineScorerTest, ALogProbabilityThatIsNotFiniteIsRefused) {
  // NaN in a bias of the root spreads to all words.
  WeightView weights = small_.oracle.weight_view();
  const std::vector<float> damaged(static_cast<size_t>(small_.oracle.shape().clusters),
                                   std::numeric_limits<float>::quiet_NaN());
  weights.tensors.back() = damaged.data();
  small_.model = InferenceModel(small_.oracle.shape(), small_.oracle.layout(), weights);
  try {
    score("w2 w4\n");
    FAIL() << "a sum of NaN was printed";
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find("text:1: the log-probability of \"w2\""), std::string::npos)
        << error.what();
  }
}

/// Two ends of a pipe.
struct Pipe {
  Pipe() {
    if (::pipe(ends.data()) != 0) throw std::runtime_error("no pipe");
  }
  ~Pipe() {
    ::close(ends[0]);
    close_writer();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void close_writer() {
    if (ends[1] >= 0) ::close(std::exchange(ends[1], -1));
  }
  std::array<int, 2> ends{-1, -1};
};

TEST_F(LineScorerTest, ALineFromAPipeIsAnsweredBeforeTheNextIsWritten) {
  Pipe pipe;
  std::mutex mutex;
  std::condition_variable changed;
  int flushed = 0;
  bool in_time = true;
  std::thread writer([&] {
    for (int line = 1; line <= 3 && in_time; ++line) {
      const std::string text = "w2 w" + std::to_string(line) + "\n";
      if (::write(pipe.ends[1], text.data(), text.size()) < 0) break;
      std::unique_lock lock(mutex);
      // Only a scorer that waits for the next line comes near this limit.
      in_time = changed.wait_for(lock, std::chrono::seconds(60), [&] { return flushed >= line; });
    }
    pipe.close_writer();
  });
  LineReader reader("/dev/fd/" + std::to_string(pipe.ends[0]));
  ThreadPool pool(2);
  TokenScorer token_scorer(small_.model, small_.vocabulary.end_of_sentence(), pool);
  LineScorer scorer(token_scorer, small_.vocabulary, {});
  int answered = 0;
  scorer.score(
      reader, [&](const ScoredLine&) { ++answered; },
      [&] {
        const std::scoped_lock lock(mutex);
        flushed = answered;
        changed.notify_one();
      });
  writer.join();
  EXPECT_TRUE(in_time);
  EXPECT_EQ(answered, 3);
}

}  // namespace
}  // namespace hsm
