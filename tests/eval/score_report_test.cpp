#include "eval/score_report.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

namespace hsm {
namespace {

using Json = nlohmann::json;

/// "the zebra </s>" with scores that are exact in every base asked for below.
struct Example {
  Example() {
    line.number = 7;
    line.words = words;
    line.ids = ids;
    line.scores = scores;
    line.unknown = 1;
    ScoreSum sum(0, 1);
    for (size_t place = 0; place < ids.size(); ++place) sum.add(ids[place], scores[place]);
    line.sums = sum.sentence();
  }
  std::array<std::string_view, 2> words{"the", "zebra"};
  std::array<int32_t, 3> ids{4, 1, 0};
  std::array<TokenScore, 3> scores{{{-0.5F, -1.5F}, {-3, -0.0F}, {-1, 0}}};
  ScoredLine line;
};

ScoreReport report(ScoreUnit by, ScoreFormat format, LogBase base = LogBase::e, bool several = false) {
  return ScoreReport({by, format, base, Context::sentence, several});
}

TEST(ScoreReport, HeadersNameTheLogBase) {
  EXPECT_EQ(report(ScoreUnit::corpus, ScoreFormat::text, LogBase::ten).header(),
            "# log base 10, context sentence\n");
  EXPECT_EQ(report(ScoreUnit::sentence, ScoreFormat::text).header(),
            "# log base e, context sentence\n# line\twords\toovs\tlogprob\tppl\n");
  EXPECT_EQ(report(ScoreUnit::word, ScoreFormat::text, LogBase::two, true).header(),
            "# log base 2, context sentence\n# file\tline\tword\tlogprob\troot\tleaf\toov\n");
  EXPECT_EQ(report(ScoreUnit::word, ScoreFormat::jsonl).header(), "");
}

TEST(ScoreReport, TextBySentence) {
  const Example example;
  EXPECT_EQ(report(ScoreUnit::sentence, ScoreFormat::text).line("a.txt", example.line),
            "7\t2\t1\t-6.000000\t7.389056\n");
  EXPECT_EQ(report(ScoreUnit::sentence, ScoreFormat::text, LogBase::two, true).line("a.txt", example.line),
            "a.txt\t7\t2\t1\t-8.656170\t7.389056\n");
  EXPECT_EQ(report(ScoreUnit::corpus, ScoreFormat::text).line("a.txt", example.line), "");
}

TEST(ScoreReport, TextByWordShowsBothParts) {
  const Example example;
  EXPECT_EQ(report(ScoreUnit::word, ScoreFormat::text).line("a.txt", example.line),
            "7\tthe\t-2.000000\t-0.500000\t-1.500000\t0\n"
            "7\tzebra\t-3.000000\t-3.000000\t0.000000\t1\n"
            "7\t</s>\t-1.000000\t-1.000000\t0.000000\t0\n");
}

TEST(ScoreReport, SummaryReadsLikeSrilms) {
  const Example example;
  EXPECT_EQ(report(ScoreUnit::corpus, ScoreFormat::text).summary("a.txt", example.line.sums),
            "file a.txt: 1 sentences, 2 words, 1 OOVs\n"
            "0 zeroprobs, logprob= -6.000000 ppl= 7.389056 ppl1= 20.08554\n"
            "without OOVs: logprob= -3.000000 ppl= 4.481689 over 2 predictions\n");
  const std::string decimal =
      report(ScoreUnit::corpus, ScoreFormat::text, LogBase::ten).summary("a.txt", example.line.sums);
  EXPECT_NE(decimal.find("logprob= -2.605767 ppl= 7.389056"), std::string::npos) << decimal;
}

TEST(ScoreReport, PerplexityOfEmptySentencesPerWordIsUndefined) {
  CorpusScore empty;
  empty.sentences = 2;
  empty.words = 2;
  empty.log_prob = -2;
  const std::string text = report(ScoreUnit::corpus, ScoreFormat::text).summary("a.txt", empty);
  EXPECT_NE(text.find("ppl1= undefined\n"), std::string::npos) << text;
}

TEST(ScoreReport, TotalStandsUnderSeveralFilesOnly) {
  const Example example;
  EXPECT_EQ(report(ScoreUnit::corpus, ScoreFormat::text).total(example.line.sums), "");
  const ScoreReport several = report(ScoreUnit::corpus, ScoreFormat::text, LogBase::e, true);
  EXPECT_TRUE(several.total(example.line.sums).starts_with("total: 1 sentences, 2 words, 1 OOVs\n"));
}

TEST(ScoreReport, JsonBySentenceAndCorpus) {
  const Example example;
  EXPECT_EQ(report(ScoreUnit::sentence, ScoreFormat::jsonl).line("a.txt", example.line),
            "{\"line\":7,\"words\":3,\"oov\":1,\"logprob\":-6.0}\n");
  const std::string summary =
      report(ScoreUnit::sentence, ScoreFormat::jsonl).summary("a.txt", example.line.sums);
  const Json object = Json::parse(summary);
  EXPECT_EQ(object.size(), 6U) << summary;
  EXPECT_EQ(object["words"], 3);
  EXPECT_EQ(object["oov"], 1);
  EXPECT_EQ(object["sentences"], 1);
  EXPECT_EQ(object["logprob"], -6.0);
  EXPECT_EQ(object["perplexity"], std::exp(2.0));
  EXPECT_EQ(object["perplexity_without_oov"], std::exp(1.5));
}

TEST(ScoreReport, JsonByWordEndsWithTheEndOfTheSentence) {
  const Example example;
  EXPECT_EQ(report(ScoreUnit::word, ScoreFormat::jsonl).line("a.txt", example.line),
            "{\"line\":7,\"tokens\":[\"the\",\"zebra\",\"</s>\"],\"logprobs\":[-2.0,-3.0,-1.0],"
            "\"root_logprobs\":[-0.5,-3.0,-1.0],\"oov\":[1]}\n");
}

TEST(ScoreReport, JsonNamesFileAndBaseWhereTheyAreNotObvious) {
  const Example example;
  const ScoreReport several = report(ScoreUnit::sentence, ScoreFormat::jsonl, LogBase::ten, true);
  const Json line = Json::parse(several.line("a.txt", example.line));
  EXPECT_EQ(line["file"], "a.txt");
  EXPECT_EQ(line["log_base"], "10");
  EXPECT_DOUBLE_EQ(line["logprob"], -6 / std::log(10));
  EXPECT_EQ(Json::parse(several.summary("a.txt", example.line.sums))["file"], "a.txt");
  EXPECT_FALSE(Json::parse(several.total(example.line.sums)).contains("file"));
}

}  // namespace
}  // namespace hsm
