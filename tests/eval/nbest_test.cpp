#include "eval/nbest.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "eval/small_model.h"
#include "model/test_directory.h"

namespace hsm {
namespace {

class Nbest : public ::testing::Test {
 protected:
  std::vector<NbestList> read(NbestFormat format, const std::string& text, const std::string& costs = "",
                              BadLines bad_lines = BadLines::error) {
    write_file(folder_ / "lists", text);
    NbestReaderOptions options;
    options.format = format;
    options.bad_lines = bad_lines;
    if (!costs.empty()) {
      write_file(folder_ / "costs", costs);
      options.channel_costs = folder_ / "costs";
    }
    NbestReader reader(folder_ / "lists", options, vocabulary_,
                       [this](const std::string& error) { errors_.push_back(error); });
    std::vector<NbestList> lists;
    while (reader.read(lists, 1)) {
    }
    return lists;
  }

  std::string error_of(NbestFormat format, const std::string& text, const std::string& costs = "") {
    try {
      read(format, text, costs);
    } catch (const DataError& error) {
      return error.what();
    }
    return "no error";
  }

  TestDirectory folder_;
  const Vocabulary vocabulary_ = numbered_vocabulary(9);
  std::vector<std::string> errors_;
};

TEST_F(Nbest, ReadsKaldiListsWithTheirCosts) {
  const auto lists =
      read(NbestFormat::kaldi, "a-b-1 w2  w3\na-b-2 zebra\na-c-1\n", "a-b-1 12.5\na-b-2\t-3\na-c-1 0\n");
  ASSERT_EQ(lists.size(), 2);
  EXPECT_EQ(lists[0].id, "a-b");
  EXPECT_EQ(lists[0].json_id, "\"a-b\"");
  ASSERT_EQ(lists[0].hypotheses.size(), 2);
  const NbestHypothesis& first = lists[0].hypotheses[0];
  EXPECT_EQ(first.text, "w2 w3");
  EXPECT_EQ(first.channel, -12.5);  // a cost is a score with the sign turned
  EXPECT_EQ(first.ids, (std::vector<int32_t>{2, 3, kEnd}));
  EXPECT_EQ(lists[0].hypotheses[1].ids, (std::vector<int32_t>{kUnknown, kEnd}));
  EXPECT_EQ(lists[0].hypotheses[1].unknown, 1);
  EXPECT_EQ(lists[1].hypotheses[0].ids, (std::vector<int32_t>{kEnd}));
  EXPECT_EQ(lists[1].line, 3);
}

TEST_F(Nbest, ReadsMosesLists) {
  const auto lists =
      read(NbestFormat::moses,
           "0 ||| w2 a&#124;b ||| tm= -1 ||| -2.5 ||| 0-0 1-1\n0 ||| w3 ||| ||| -3\n1 ||| w4\n");
  ASSERT_EQ(lists.size(), 2);
  const NbestHypothesis& first = lists[0].hypotheses[0];
  EXPECT_EQ(first.text, "w2 a|b");
  EXPECT_EQ(first.channel, -2.5);
  EXPECT_EQ(first.features, "tm= -1");
  EXPECT_EQ(first.rest, " ||| 0-0 1-1");
  EXPECT_EQ(lists[0].hypotheses[1].channel, -3);
  EXPECT_EQ(lists[1].hypotheses[0].channel, 0);
}

TEST_F(Nbest, ReadsJsonLists) {
  const auto lists =
      read(NbestFormat::jsonl, R"({"id":"u","hypotheses":[{"text":"w2 w3","score":-1.5},"w4"]})"
                               "\n{\"hypotheses\":[]}\n");
  ASSERT_EQ(lists.size(), 2);
  EXPECT_EQ(lists[0].json_id, "\"u\"");
  EXPECT_EQ(lists[0].hypotheses[0].channel, -1.5);
  EXPECT_EQ(lists[0].hypotheses[1].text, "w4");
  EXPECT_TRUE(lists[1].hypotheses.empty());
}

NbestList rescored() {
  NbestList list;
  list.id = "7";
  list.json_id = "7";
  for (int64_t place = 0; place < 3; ++place) {
    NbestHypothesis hypothesis;
    hypothesis.place = place;
    hypothesis.key = "7-" + std::to_string(place + 1);
    hypothesis.text = place == 0 ? "one |||" : "one two";
    hypothesis.ids.resize(place == 0 ? 2 : 3);
    hypothesis.unknown = place == 2 ? 1 : 0;
    hypothesis.channel = place == 0 ? -1 : -2;
    hypothesis.log_prob = place == 0 ? -8 : -4;
    list.hypotheses.push_back(std::move(hypothesis));
  }
  rescore(list, {0.5, 0.25, 2});
  return list;
}

TEST_F(Nbest, OrdersByTheWeightedSum) {
  const NbestList list = rescored();
  EXPECT_EQ(list.hypotheses[0].place, 1);
  EXPECT_EQ(list.hypotheses[0].score, -2 + 0.5 * -4 + 0.25 * 2);
  EXPECT_EQ(list.hypotheses[1].place, 0);
  EXPECT_EQ(list.hypotheses[1].score, -1 + 0.5 * -8 + 0.25 * 1);
  EXPECT_EQ(list.hypotheses[2].score, -2 + 0.5 * -4 + 0.25 * 2 - 2);

  NbestList equal = rescored();
  rescore(equal, {0, 0, 0});
  EXPECT_EQ(equal.hypotheses[1].place, 1);  // equal to the next: it keeps its place before it
}

TEST_F(Nbest, WritesListsInTheirOrderAndCostsInTheOrderOfTheInput) {
  const NbestList list = rescored();
  EXPECT_EQ(format_nbest(list, NbestOutput::kaldi), "7-2 one two\n7-1 one |||\n7-3 one two\n");
  EXPECT_EQ(format_nbest(list, NbestOutput::costs), "7-1 8\n7-2 4\n7-3 4\n");
  const std::string moses = format_nbest(list, NbestOutput::moses);
  EXPECT_EQ(moses.substr(0, moses.find('\n')), "7 ||| one two ||| channel= -2 logprob= -4 words= 2 ||| -3.5");
  EXPECT_NE(moses.find("one &#124;&#124;&#124; |||"), std::string::npos);
  const auto json = nlohmann::json::parse(format_nbest(list, NbestOutput::jsonl));
  EXPECT_EQ(json["id"], 7);
  EXPECT_EQ(json["hypotheses"][1]["text"], "one |||");
  EXPECT_EQ(json["hypotheses"][1]["place"], 0);
  EXPECT_EQ(json["hypotheses"][1]["channel"], -1);
}

TEST_F(Nbest, MosesListsReadBackWithTheirScores) {
  const NbestList list = rescored();
  const auto again = read(NbestFormat::moses, format_nbest(list, NbestOutput::moses));
  ASSERT_EQ(again.size(), 1);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(again[0].hypotheses[i].text, list.hypotheses[i].text);
    EXPECT_EQ(again[0].hypotheses[i].channel, list.hypotheses[i].score);
  }
}

TEST_F(Nbest, NamesThePlaceOfWhatIsWrong) {
  const auto expect = [&](NbestFormat format, const std::string& text, const std::string& what,
                          const std::string& costs = "") {
    const std::string message = error_of(format, text, costs);
    EXPECT_NE(message.find(what), std::string::npos) << text << "\n" << message;
  };
  expect(NbestFormat::kaldi, "u-1 w2\nu w3\n", "lists:2: the key \"u\" given, expected UTTERANCE-NUMBER");
  expect(NbestFormat::kaldi, "u-1 \xff\n", "lists:1: byte");
  expect(NbestFormat::kaldi, "u-1 a </s> b\n", "lists:1: \"</s>\"");
  expect(NbestFormat::kaldi, "u-1 a\nu-2 b\n", "costs: ends before \"u-2\"", "u-1 1\n");
  expect(NbestFormat::kaldi, "u-1 a\nu-2 b\n", "costs:2: the key \"u-3\" given, expected \"u-2\"",
         "u-1 1\nu-3 1\n");
  expect(NbestFormat::kaldi, "u-1 a\n", "costs:1: \"much\" given, expected a cost", "u-1 much\n");
  expect(NbestFormat::moses, "0 ||| a\nb\n", "lists:2: expected NUMBER ||| WORDS");
  expect(NbestFormat::moses, "0 ||| a ||| f ||| high\n", "lists:1: the score \"high\" given");
  expect(NbestFormat::moses, " ||| a\n", "lists:1: the number");
  expect(NbestFormat::jsonl, "{\"hypotheses\":[]}\n{}\n", "lists:2: hypotheses: missing");
  expect(NbestFormat::jsonl, "{\"hypotheses\":[\"a\",{\"text\":\"b\"}]}\n",
         "lists:1: hypotheses[1].score: missing");
  expect(NbestFormat::jsonl, "{\"hypotheses\":[7]}\n", "lists:1: hypotheses[0]: 7 given");
  expect(NbestFormat::jsonl, "a\n", "lists:1: byte 1: not well-formed JSON");
}

TEST_F(Nbest, BadLinesCanBeReported) {
  const auto json = read(NbestFormat::jsonl, "{\"hypotheses\":[\"w2\"]}\nbad\n{\"hypotheses\":[\"w3\"]}\n",
                         "", BadLines::report);
  ASSERT_EQ(json.size(), 3);
  EXPECT_NE(format_nbest(json[1], NbestOutput::jsonl).find("\"line\":2"), std::string::npos);
  EXPECT_EQ(json[2].hypotheses[0].text, "w3");

  // A hypothesis is left out; the costs of the others stay theirs.
  const auto kaldi =
      read(NbestFormat::kaldi, "u-1 w2\nu-2 \xff\nu-3 w4\n", "u-1 1\nu-2 2\nu-3 3\n", BadLines::report);
  ASSERT_EQ(kaldi.size(), 1);
  ASSERT_EQ(kaldi[0].hypotheses.size(), 2);
  EXPECT_EQ(kaldi[0].hypotheses[1].channel, -3);
  EXPECT_EQ(errors_.size(), 2);
}

}  // namespace
}  // namespace hsm
