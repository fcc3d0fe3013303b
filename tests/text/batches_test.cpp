#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "text/batch_parts.h"
#include "text/batch_source.h"
#include "text/fixture.h"

namespace hsm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int32_t kWords = 40;

// Ids by falling count: `</s>` 0, w1 … w29 seen often, w30 … w37 once, `<unk>` and w39 never.
Vocabulary make_vocabulary() {
  std::vector<Vocabulary::Entry> entries = {{"</s>", 1000}, {"<unk>", 0}, {"x39", 0}};
  for (int32_t i = 1; i < 38; ++i) entries.push_back({"w" + std::to_string(100 + i), i < 30 ? 100 - i : 1});
  return Vocabulary::from_counts(std::move(entries));
}

class Batches : public TextTest {
 protected:
  // A text of lines of random words and lengths, the longest `longest` (without `</s>`).
  void make_corpus(int64_t lines, int64_t longest) {
    const CounterRandom random(17, Purpose::shuffle);
    lines_.clear();
    corpus_.clear();
    uint64_t drawn = 0;
    for (int64_t i = 0; i < lines; ++i) {
      const uint64_t length = random.below(static_cast<uint64_t>(longest + 1), 0, static_cast<uint64_t>(i));
      std::vector<int32_t> line;
      for (uint64_t k = 0; k < length; ++k)
        line.push_back(1 + static_cast<int32_t>(random.below(kWords - 1, 1, drawn++)));
      line.push_back(0);
      corpus_.insert(corpus_.end(), line.begin(), line.end());
      lines_.push_back(std::move(line));
    }
    write_tokens();
  }
  void write_tokens() {
    TokenFileWriter writer(path("tokens"));
    for (const int32_t token : corpus_) writer.add(token);
    writer.commit(std::count(corpus_.begin(), corpus_.end(), 0), 0, 0);
    tokens_ = std::make_unique<TokenFile>(path("tokens"));
  }

  const Vocabulary vocabulary_ = make_vocabulary();
  std::vector<std::vector<int32_t>> lines_;  // `</s>` at the end of each
  std::vector<int32_t> corpus_;
  std::unique_ptr<TokenFile> tokens_;
};

void expect_equal(const Batch& a, const Batch& b) {
  EXPECT_EQ(a.steps, b.steps);
  EXPECT_EQ(a.streams, b.streams);
  EXPECT_EQ(a.inputs, b.inputs);
  EXPECT_EQ(a.targets, b.targets);
  EXPECT_EQ(a.target_count, b.target_count);
  EXPECT_EQ(a.starts, b.starts);
}

void expect_well_formed(const Batch& batch) {
  const auto size = static_cast<size_t>(batch.steps * batch.streams);
  ASSERT_GT(size, 0U);
  ASSERT_EQ(batch.inputs.size(), size);
  ASSERT_EQ(batch.targets.size(), size);
  EXPECT_EQ(
      std::count_if(batch.targets.begin(), batch.targets.end(), [](int32_t t) { return t != kNoTarget; }),
      batch.target_count);
  for (const int32_t input : batch.inputs) ASSERT_TRUE(input >= 0 && input < kWords);
}

// Inputs and targets of each stream, padding left out, joined over windows [first, last).
struct Joined {
  std::vector<std::vector<int32_t>> inputs;
  std::vector<std::vector<int32_t>> targets;
};
Joined join(const BatchSource& source, int64_t epoch, int64_t first, int64_t last) {
  Joined joined;
  for (int64_t window = first; window < last; ++window) {
    const Batch batch = source.window(epoch, window);
    expect_well_formed(batch);
    joined.inputs.resize(static_cast<size_t>(batch.streams));
    joined.targets.resize(static_cast<size_t>(batch.streams));
    for (size_t i = 0; i < batch.inputs.size(); ++i) {
      if (batch.targets[i] == kNoTarget) continue;
      const size_t stream = i % static_cast<size_t>(batch.streams);
      joined.inputs[stream].push_back(batch.inputs[i]);
      joined.targets[stream].push_back(batch.targets[i]);
    }
  }
  return joined;
}

TEST_F(Batches, StreamsCutTheCorpusIntoEqualPieces) {
  make_corpus(211, 13);
  const auto size = static_cast<int64_t>(corpus_.size());
  for (const auto& [streams, bptt] : std::vector<std::pair<int64_t, int64_t>>{
           {1, 1}, {1, 5000}, {7, 10}, {20, 35}, {size, 3}, {13, 1}, {size / 2 + 1, 2}}) {
    BatchOptions options;
    options.streams = streams;
    options.bptt = bptt;
    const auto source = make_stream_batches(*tokens_, vocabulary_, options);
    const int64_t length = size / streams;
    ASSERT_EQ(source->windows(0), (length + bptt - 1) / bptt);
    EXPECT_EQ(source->targets(0), length * streams);
    for (int64_t window = 0; window < source->windows(0); ++window) {
      const Batch batch = source->window(3, window);
      ASSERT_EQ(batch.steps, std::min(bptt, length - window * bptt));
      ASSERT_EQ(batch.streams, streams);
      EXPECT_EQ(batch.starts, window == 0);
    }
    const Joined joined = join(*source, 3, 0, source->windows(3));
    for (int64_t stream = 0; stream < streams; ++stream) {
      const auto first = corpus_.begin() + stream * length;
      const std::vector<int32_t> expected(first, first + length);
      ASSERT_EQ(joined.targets[static_cast<size_t>(stream)], expected);
      std::vector<int32_t> inputs = {stream == 0 ? 0 : *(first - 1)};
      inputs.insert(inputs.end(), expected.begin(), expected.end() - 1);
      ASSERT_EQ(joined.inputs[static_cast<size_t>(stream)], inputs);
    }
  }
}

TEST_F(Batches, JitterChangesTheLengthsAndNothingElse) {
  make_corpus(400, 20);
  BatchOptions options;
  options.streams = 3;
  options.bptt = 10;
  options.bptt_jitter = 0.5;
  const auto jittered = make_stream_batches(*tokens_, vocabulary_, options);
  const auto same = make_stream_batches(*tokens_, vocabulary_, options);
  options.bptt_jitter = 0;
  const auto fixed = make_stream_batches(*tokens_, vocabulary_, options);
  std::vector<std::vector<int64_t>> lengths(2);
  for (int64_t epoch = 0; epoch < 2; ++epoch) {
    const int64_t windows = jittered->windows(epoch);
    for (int64_t window = windows - 1; window >= 0; --window) {
      const Batch batch = jittered->window(epoch, window);
      EXPECT_LE(batch.steps, 15);
      EXPECT_GE(batch.steps, window + 1 < windows ? 5 : 1);
      lengths[static_cast<size_t>(epoch)].push_back(batch.steps);
      expect_equal(batch, same->window(epoch, window));
    }
    const Joined a = join(*jittered, epoch, 0, windows);
    const Joined b = join(*fixed, epoch, 0, fixed->windows(epoch));
    EXPECT_EQ(a.inputs, b.inputs);
    EXPECT_EQ(a.targets, b.targets);
    const std::set<int64_t> seen(lengths[static_cast<size_t>(epoch)].begin(),
                                 lengths[static_cast<size_t>(epoch)].end());
    EXPECT_GE(seen.size(), 9U) << "nearly all of 5 to 15 should come up";
  }
  EXPECT_NE(lengths[0], lengths[1]) << "epochs draw their own lengths";
  options.bptt_jitter = 0.5;
  options.seed = 2;
  const auto other = make_stream_batches(*tokens_, vocabulary_, options);
  EXPECT_NE(
      other->window(0, 0).steps * 1000 + other->window(0, 1).steps * 30 + other->window(0, 2).steps,
      jittered->window(0, 0).steps * 1000 + jittered->window(0, 1).steps * 30 + jittered->window(0, 2).steps);
}

TEST_F(Batches, LengthsWithJitterAreTheWholeNumbersWithinItsBounds) {
  make_corpus(400, 20);
  for (const auto& [bptt, jitter, shortest, longest] :
       std::vector<std::tuple<int64_t, double, int64_t, int64_t>>{
           {10, 0.3, 7, 13}, {7, 0.5, 4, 10}, {5, 0.15, 5, 5}, {3, 0.99, 1, 5}, {10, 0.15, 9, 11}}) {
    BatchOptions options;
    options.bptt = bptt;
    options.bptt_jitter = jitter;
    const auto batches = make_stream_batches(*tokens_, vocabulary_, options);
    std::set<int64_t> seen;
    for (int64_t window = 0; window + 1 < batches->windows(0); ++window) {
      seen.insert(batches->window(0, window).steps);
    }
    EXPECT_EQ(*seen.begin(), shortest) << bptt << " ± " << jitter;
    EXPECT_EQ(*seen.rbegin(), longest) << bptt << " ± " << jitter;
  }
}

TEST_F(Batches, ACorpusShorterThanItsStreamsIsRefused) {
  corpus_ = {1, 2, 0};
  write_tokens();
  BatchOptions options;
  options.streams = 4;
  EXPECT_THAT(message_of<DataError>([&] { make_stream_batches(*tokens_, vocabulary_, options); }),
              HasSubstr("has 3 tokens, expected at least one for each of the 4 streams"));
  EXPECT_EQ(make_sentence_batches(*tokens_, vocabulary_, options)->window(0, 0).streams, 1);
  corpus_ = {};
  write_tokens();
  options.streams = 1;
  EXPECT_THROW(make_stream_batches(*tokens_, vocabulary_, options), DataError);
  EXPECT_THROW(make_sentence_batches(*tokens_, vocabulary_, options), DataError);
}

TEST_F(Batches, OptionsOutOfRangeAreRefused) {
  make_corpus(50, 5);
  const auto refusal = [&](const BatchOptions& options) {
    const std::string message =
        message_of<UsageError>([&] { make_stream_batches(*tokens_, vocabulary_, options); });
    EXPECT_EQ(message_of<UsageError>([&] { make_sentence_batches(*tokens_, vocabulary_, options); }),
              message);
    return message;
  };
  BatchOptions options;
  options.streams = 0;
  EXPECT_THAT(refusal(options), HasSubstr("train.batch: 0 given"));
  options = {};
  options.bptt = 0;
  EXPECT_THAT(refusal(options), HasSubstr("train.bptt: 0 given"));
  for (const double jitter : {-0.1, 1.0, std::nan("")}) {
    options = {};
    options.bptt_jitter = jitter;
    EXPECT_THAT(refusal(options), HasSubstr("train.bptt_jitter"));
  }
}

// Lines of an epoch as the windows give them, in the order of their batches.
std::vector<std::vector<int32_t>> lines_of_epoch(const BatchSource& source, int64_t epoch) {
  std::vector<std::vector<int32_t>> lines;
  const int64_t windows = source.windows(epoch);
  for (int64_t first = 0; first < windows;) {
    EXPECT_TRUE(source.window(epoch, first).starts);
    int64_t last = first + 1;
    while (last < windows && !source.window(epoch, last).starts) ++last;
    const Joined joined = join(source, epoch, first, last);
    for (size_t line = 0; line < joined.targets.size(); ++line) {
      std::vector<int32_t> shifted = joined.targets[line];
      shifted.insert(shifted.begin(), 0);
      shifted.pop_back();
      EXPECT_EQ(joined.inputs[line], shifted) << "inputs are `</s>` and all but the last target";
      lines.push_back(joined.targets[line]);
    }
    first = last;
  }
  return lines;
}

TEST_F(Batches, EachEpochHoldsEveryLineOnce) {
  make_corpus(307, 17);
  auto sorted = lines_;
  std::sort(sorted.begin(), sorted.end());
  for (const auto& [streams, bptt, jitter] : std::vector<std::tuple<int64_t, int64_t, double>>{
           {1, 1, 0}, {7, 5, 0}, {7, 5, 0.6}, {20, 100, 0}, {400, 6, 0.2}}) {
    BatchOptions options;
    options.streams = streams;
    options.bptt = bptt;
    options.bptt_jitter = jitter;
    const auto source = make_sentence_batches(*tokens_, vocabulary_, options);
    EXPECT_EQ(source->targets(0), static_cast<int64_t>(corpus_.size()));
    for (int64_t epoch = 0; epoch < 2; ++epoch) {
      auto lines = lines_of_epoch(*source, epoch);
      std::sort(lines.begin(), lines.end());
      ASSERT_EQ(lines, sorted);
    }
  }
}

TEST_F(Batches, LinesOfLikeLengthStandTogether) {
  make_corpus(307, 17);
  std::vector<int64_t> lengths;
  for (const auto& line : lines_) lengths.push_back(static_cast<int64_t>(line.size()));
  std::sort(lengths.begin(), lengths.end());
  BatchOptions options;
  options.streams = 10;
  options.bptt = 6;
  // Cut from the sorted lengths: the fewest steps there can be.
  int64_t windows = 0;
  int64_t steps = 0;
  for (size_t first = 0; first < lengths.size(); first += 10) {
    const int64_t longest = lengths[std::min(first + 9, lengths.size() - 1)];
    windows += (longest + 5) / 6;
    steps += longest;
  }
  const auto source = make_sentence_batches(*tokens_, vocabulary_, options);
  ASSERT_EQ(source->windows(0), windows);
  int64_t seen = 0;
  int64_t narrow = 0;
  for (int64_t window = 0; window < windows; ++window) {
    const Batch batch = source->window(0, window);
    seen += batch.steps;
    if (batch.starts && batch.streams < 10) ++narrow;
    EXPECT_LE(batch.steps, 6);
  }
  EXPECT_EQ(seen, steps);
  EXPECT_EQ(narrow, 1) << "307 lines leave one batch of 7";
}

TEST_F(Batches, TheOrderChangesWithEpochAndSeed) {
  make_corpus(200, 9);
  BatchOptions options;
  options.streams = 4;
  options.bptt = 50;
  const auto source = make_sentence_batches(*tokens_, vocabulary_, options);
  const auto first = lines_of_epoch(*source, 0);
  EXPECT_NE(lines_of_epoch(*source, 1), first);
  EXPECT_EQ(lines_of_epoch(*source, 0), first) << "asking for another epoch between changes nothing";
  options.seed = 2;
  EXPECT_NE(lines_of_epoch(*make_sentence_batches(*tokens_, vocabulary_, options), 0), first);
  // Batches come in no order of length, and lines of equal length change company.
  std::vector<size_t> lengths;
  for (size_t i = 0; i < first.size(); i += 4) lengths.push_back(first[i].size());
  EXPECT_FALSE(std::is_sorted(lengths.begin(), lengths.end()));
  const auto company = [&](int64_t epoch) {
    std::set<std::vector<std::vector<int32_t>>> groups;
    const auto lines = lines_of_epoch(*source, epoch);
    for (size_t i = 0; i + 4 <= lines.size(); i += 4) {
      std::vector<std::vector<int32_t>> group(lines.begin() + static_cast<int64_t>(i),
                                              lines.begin() + static_cast<int64_t>(i) + 4);
      std::sort(group.begin(), group.end());
      groups.insert(group);
    }
    return groups;
  };
  EXPECT_NE(company(0), company(1));
}

TEST_F(Batches, SingletonsAreUnknownHalfOfTheTime) {
  make_corpus(3000, 20);
  const int32_t unknown = vocabulary_.unknown();
  BatchOptions options;
  options.streams = 3;
  options.unk_singletons = true;
  for (const bool by_sentence : {false, true}) {
    const auto source = by_sentence ? make_sentence_batches(*tokens_, vocabulary_, options)
                                    : make_stream_batches(*tokens_, vocabulary_, options);
    std::vector<std::vector<int32_t>> epochs;
    for (int64_t epoch = 0; epoch < 2; ++epoch) {
      std::map<int32_t, int64_t> counts;
      if (by_sentence) {
        // lines_of_epoch checks that inputs agree with targets.
        for (const auto& line : lines_of_epoch(*source, epoch)) {
          for (const int32_t token : line) ++counts[token];
        }
      } else {
        const Joined joined = join(*source, epoch, 0, source->windows(epoch));
        std::vector<int32_t> flat;
        for (size_t stream = 0; stream < 3; ++stream) {
          flat.insert(flat.end(), joined.targets[stream].begin(), joined.targets[stream].end());
          ASSERT_TRUE(std::equal(joined.targets[stream].begin(), joined.targets[stream].end() - 1,
                                 joined.inputs[stream].begin() + 1));
          if (stream > 0) {
            ASSERT_EQ(joined.inputs[stream][0], joined.targets[stream - 1].back());
          }
        }
        for (size_t i = 0; i < flat.size(); ++i) {
          const bool once = vocabulary_.count(corpus_[i]) == 1;
          ASSERT_TRUE(flat[i] == corpus_[i] || (once && flat[i] == unknown));
          ++counts[flat[i]];
        }
        epochs.push_back(flat);
      }
      int64_t singletons = 0;
      int64_t kept = 0;
      for (int32_t id = 0; id < kWords; ++id) {
        const int64_t before = std::count(corpus_.begin(), corpus_.end(), id);
        if (vocabulary_.count(id) == 1) {
          singletons += before;
          kept += counts[id];
        } else if (id != unknown && by_sentence) {
          EXPECT_EQ(counts[id], before) << vocabulary_.word(id);
        }
      }
      // Of some 6,000 draws; six standard deviations are below 240.
      EXPECT_NEAR(static_cast<double>(kept), static_cast<double>(singletons) / 2, 240);
    }
    if (!by_sentence) {
      EXPECT_NE(epochs[0], epochs[1]) << "each epoch draws anew";
    }
  }
}

TEST_F(Batches, AReservedSymbolSeenOnceStaysItself) {
  const Vocabulary vocabulary = Vocabulary::from_counts({{"</s>", 1}, {"a", 1}, {"b", 1}});
  BatchOptions options;
  options.streams = 1;
  options.unk_singletons = true;
  corpus_ = {vocabulary.find("a").value(), vocabulary.find("b").value(), vocabulary.end_of_sentence()};
  write_tokens();
  const auto source = make_stream_batches(*tokens_, vocabulary, options);
  for (int64_t epoch = 0; epoch < 20; ++epoch) {
    EXPECT_EQ(source->window(epoch, 0).targets[2], vocabulary.end_of_sentence());
  }
}

TEST(RandomOrder, IsAPermutationForEverySize) {
  for (const int64_t size : {1, 2, 3, 4, 5, 15, 16, 17, 64, 65, 1000, 4099}) {
    const RandomOrder order(size, 0x123456789ABCDEF0);
    std::vector<int64_t> values(static_cast<size_t>(size));
    for (int64_t i = 0; i < size; ++i) values[static_cast<size_t>(i)] = order(i);
    const bool in_order = std::is_sorted(values.begin(), values.end());
    EXPECT_EQ(in_order, size == 1) << "this key happens to mix every size";
    std::sort(values.begin(), values.end());
    for (int64_t i = 0; i < size; ++i) ASSERT_EQ(values[static_cast<size_t>(i)], i);
  }
}

TEST(RandomOrder, EveryOrderIsAboutEquallyLikely) {
  std::map<std::vector<int64_t>, int> seen;
  const CounterRandom random(1, Purpose::shuffle);
  for (uint64_t key = 0; key < 2400; ++key) {
    const RandomOrder order(4, random.bits(0, key));
    ++seen[{order(0), order(1), order(2), order(3)}];
  }
  EXPECT_EQ(seen.size(), 24U);
  for (const auto& [order, count] : seen) EXPECT_NEAR(count, 100, 60);
  // In a larger one every element goes everywhere.
  std::vector<int> first(10);
  for (uint64_t key = 0; key < 2000; ++key)
    ++first[static_cast<size_t>(RandomOrder(10, random.bits(1, key))(3))];
  for (const int count : first) EXPECT_NEAR(count, 200, 80);
}

}  // namespace
}  // namespace hsm
