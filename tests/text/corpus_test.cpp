#include "text/corpus.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>

#include "base/random.h"
#include "text/fixture.h"

namespace hsm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class Corpus : public TextTest {
 protected:
  Vocabulary train(const std::vector<std::string>& paths, const VocabularyOptions& options = {},
                   const CorpusOptions& corpus = {}) const {
    return read_training_text(paths, corpus, options, path("cache/train.tokens"));
  }
  // The training text's tokens, spelled out.
  [[nodiscard]] std::vector<std::string> spell(const Vocabulary& vocabulary,
                                               const std::string& file = "cache/train.tokens") const {
    std::vector<std::string> words;
    for (const int32_t id : read_tokens(TokenFile(path(file)))) words.push_back(vocabulary.word(id));
    return words;
  }
};

TEST_F(Corpus, EveryLineEndsASentenceAndBlankOnesAreEmptySentences) {
  const std::string file = write("text", " \n = Title = \n\n<unk> a\r\n\t\nb a");
  const Vocabulary vocabulary = train({file});
  EXPECT_THAT(spell(vocabulary), ElementsAre("</s>", "=", "Title", "=", "</s>", "</s>", "<unk>", "a", "</s>",
                                             "</s>", "b", "a", "</s>"));
  const TokenFile tokens(path("cache/train.tokens"));
  EXPECT_EQ(tokens.sentences(), 6);
  EXPECT_EQ(tokens.unknown(), 0) << "a literal <unk> is a word of the text";
  EXPECT_EQ(vocabulary.count(vocabulary.unknown()), 1);

  CorpusOptions options;
  options.skip_blank_lines = true;
  const Vocabulary dense = train({file}, {}, options);
  EXPECT_THAT(spell(dense), ElementsAre("=", "Title", "=", "</s>", "<unk>", "a", "</s>", "b", "a", "</s>"));
  EXPECT_EQ(dense.count(dense.end_of_sentence()), 3);
}

TEST_F(Corpus, FilesFollowEachOtherAndEachEndsItsLastLine) {
  const std::vector<std::string> files = {write("b.txt", "one two"), write("a.gz", gzip("three\n")),
                                          write("c", ""),
                                          write("d.zst", zstd("\xEF\xBB\xBF"
                                                              "four\nfive"))};
  EXPECT_THAT(spell(train(files)),
              ElementsAre("one", "two", "</s>", "three", "</s>", "four", "</s>", "five", "</s>"));
}

TEST_F(Corpus, CountsAndIdsAgreeWithAPlainCount) {
  const CounterRandom random(5, Purpose::shuffle);
  std::string text;
  std::map<std::string, int64_t> counts;
  std::vector<std::string> words;
  uint64_t drawn = 0;
  for (uint64_t line = 0; line < 3000; ++line) {
    const uint64_t length = random.below(12, 1, line);
    for (uint64_t i = 0; i < length; ++i) {
      // Squares make some words frequent, with many ties among the rest.
      const uint64_t x = random.below(40, 2, drawn++);
      words.push_back("w" + std::to_string(x * x + random.below(x + 1, 3, drawn)));
      text += words.back() + (i % 2 == 0 ? " " : "  ");
      ++counts[words.back()];
    }
    text += "\n";
    words.emplace_back("</s>");
    ++counts["</s>"];
  }
  const std::string file = write("text", text);
  for (const VocabularyOptions& options : {VocabularyOptions{1, 0, {}}, VocabularyOptions{7, 0, {}},
                                           VocabularyOptions{1, 50, {}}, VocabularyOptions{4, 333, {}}}) {
    std::vector<std::pair<int64_t, std::string>> ranked;  // by falling count and spelling
    for (const auto& [word, count] : counts) {
      if (count >= options.min_count && word != "</s>") ranked.emplace_back(-count, word);
    }
    std::sort(ranked.begin(), ranked.end());
    if (options.max_size > 0 && ranked.size() > static_cast<size_t>(options.max_size) - 2) {
      ranked.resize(static_cast<size_t>(options.max_size) - 2);
    }
    std::map<std::string, int64_t> kept = {{"</s>", counts["</s>"]}};
    for (const auto& [count, word] : ranked) kept[word] = -count;
    int64_t unknown = 0;
    for (const auto& [word, count] : counts) unknown += kept.contains(word) ? 0 : count;
    ranked.emplace_back(-counts["</s>"], "</s>");
    ranked.emplace_back(-unknown, "<unk>");
    std::sort(ranked.begin(), ranked.end());

    const Vocabulary vocabulary = train({file}, options);
    ASSERT_EQ(vocabulary.size(), static_cast<int64_t>(ranked.size()));
    for (size_t i = 0; i < ranked.size(); ++i) {
      ASSERT_EQ(vocabulary.word(static_cast<int32_t>(i)), ranked[i].second);
      ASSERT_EQ(vocabulary.count(static_cast<int32_t>(i)), -ranked[i].first);
    }
    std::vector<std::string> expected;
    for (const std::string& word : words) expected.push_back(kept.contains(word) ? word : "<unk>");
    EXPECT_EQ(spell(vocabulary), expected);
    const TokenFile tokens(path("cache/train.tokens"));
    EXPECT_EQ(tokens.unknown(), unknown);
    EXPECT_EQ(tokens.size(), vocabulary.total_count());
    EXPECT_TRUE(tokens.intact());
  }
}

TEST_F(Corpus, ALineMayBeAsLongAsTheCorpus) {
  std::string line = "<s>";
  std::vector<std::string> expected;
  for (int i = 0; i < 200'000; ++i) {
    expected.push_back("w" + std::to_string(i * 7919 % 1009));
    line += " " + expected.back();
  }
  expected.emplace_back("</s>");
  const std::string file = write("text", line + " </s> ");
  CorpusOptions options;
  options.skip_blank_lines = true;
  const Vocabulary vocabulary = train({file}, {}, options);
  EXPECT_EQ(spell(vocabulary), expected);
  EXPECT_EQ(tokenize({file}, {}, vocabulary, path("again")).size(), static_cast<int64_t>(expected.size()));

  // Places of errors count from the start of the line, whatever part they are in.
  const std::string bad = write("bad", "a\n" + line + " \xFF b\n");
  EXPECT_THAT(message_of<DataError>([&] { train({bad}); }),
              StartsWith(bad + ":2: byte " + std::to_string(line.size() + 2) + " is not well-formed UTF-8"));
  const std::string within = write("bad", line + " </s>" + std::string(400'000, ' ') + "b\n");
  EXPECT_THAT(message_of<DataError>([&] { train({within}); }),
              StartsWith(within + ":1: \"</s>\" within the line"));
}

TEST_F(Corpus, AFileOfWordsIsKeptWhole) {
  const std::string text = write("text", "a b a c\n<unk> d\n");
  const std::string list = write("list", "unseen\nb\na\nc\t100\n");
  VocabularyOptions options;
  options.file = list;
  const Vocabulary vocabulary = train({text}, options);
  EXPECT_THAT(spell(vocabulary), ElementsAre("a", "b", "a", "c", "</s>", "<unk>", "<unk>", "</s>"));
  EXPECT_EQ(vocabulary.size(), 6);
  EXPECT_EQ(vocabulary.count(vocabulary.find("unseen").value()), 0);
  EXPECT_EQ(vocabulary.count(vocabulary.find("c").value()), 1) << "counts are those of the text";
  EXPECT_EQ(TokenFile(path("cache/train.tokens")).unknown(), 1);
  EXPECT_EQ(vocabulary.count(vocabulary.unknown()), 2);
}

TEST_F(Corpus, LowerCasingComesBeforeCounting) {
  CorpusOptions options;
  options.text.lowercase = true;
  const std::string file = write("text", "The the THE \u00C4 \u00E4 <UNK>\n");
  const Vocabulary vocabulary = train({file}, {}, options);
  EXPECT_EQ(vocabulary.count(vocabulary.find("the").value()), 3);
  EXPECT_EQ(vocabulary.count(vocabulary.find("\u00E4").value()), 2);
  EXPECT_EQ(vocabulary.find("The"), std::nullopt);
  EXPECT_EQ(vocabulary.count(vocabulary.unknown()), 1);
}

TEST_F(Corpus, TextsAndOptionsThatCannotMakeAModelAreRefused) {
  const std::string text = write("text", "a b a\n");
  const auto data = [&](const std::string& content) {
    const std::string file = write("bad", content);
    return message_of<DataError>([&] { train({file}); });
  };
  EXPECT_EQ(data(""), path("bad") + ": the training text holds no words");
  EXPECT_EQ(data("\n \n<s> </s>\n"), path("bad") + ": the training text holds no words");
  EXPECT_EQ(data("<unk> <unk>\n"), path("bad") + ": the training text holds no word but <unk>");
  EXPECT_THAT(data("good\nbad \xFE\n"), StartsWith(path("bad") + ":2: byte 5 is not well-formed UTF-8"));
  EXPECT_THAT(data("a </s> b\n"), StartsWith(path("bad") + ":1: \"</s>\" within the line"));
  EXPECT_FALSE(std::filesystem::exists(path("cache/train.tokens")));

  const auto usage = [&](const VocabularyOptions& options) {
    return message_of<UsageError>([&] { train({text}, options); });
  };
  EXPECT_THAT(usage({3, 0, {}}), HasSubstr("vocabulary.min_count: 3 leaves no word, as the most frequent"));
  EXPECT_THAT(usage({0, 0, {}}), HasSubstr("vocabulary.min_count: 0 given"));
  EXPECT_THAT(usage({1, 2, {}}), HasSubstr("vocabulary.max_size: 2 given"));
  EXPECT_THAT(usage({1, -1, {}}), HasSubstr("vocabulary.max_size: -1 given"));
  EXPECT_THAT(usage({2, 0, text}), HasSubstr("vocabulary.file: all its words are kept"));
  EXPECT_THAT(usage({1, 9, text}), HasSubstr("vocabulary.file: all its words are kept"));
  EXPECT_THROW(train({}), UsageError);
  EXPECT_THROW(train({path("missing")}), DataError);
  EXPECT_THROW(train({text}, {1, 0, path("missing")}), DataError);
  EXPECT_THAT(message_of<DataError>([&] {
                train({text}, {1, 0, write("list", "</s>\n")});
              }),
              HasSubstr("holds no word besides reserved symbols"));
}

TEST_F(Corpus, ATextUnderAKnownVocabulary) {
  const Vocabulary vocabulary = train({write("text", "a b\n")});
  const std::string other = write("valid", "b x a\n\n<unk> y b\n");
  const TokenFile tokens = tokenize({other}, {}, vocabulary, path("deep/er/valid.tokens"));
  EXPECT_THAT(spell(vocabulary, "deep/er/valid.tokens"),
              ElementsAre("b", "<unk>", "a", "</s>", "</s>", "<unk>", "<unk>", "b", "</s>"));
  EXPECT_EQ(tokens.unknown(), 2);
  EXPECT_EQ(tokens.sentences(), 3);
  EXPECT_EQ(tokenize({write("empty", "")}, {}, vocabulary, path("empty.tokens")).size(), 0);
}

// Whether the token file of `call` was taken from the cache: a fresh one has another file number.
template <class Call>
bool is_cached(const std::string& cache, Call&& call) {
  struct stat before {};
  struct stat after {};
  EXPECT_EQ(::stat(cache.c_str(), &before), 0);
  call();
  EXPECT_EQ(::stat(cache.c_str(), &after), 0);
  return before.st_ino == after.st_ino && before.st_mtim.tv_nsec == after.st_mtim.tv_nsec;
}

TEST_F(Corpus, ATokenFileIsUsedAgainOnlyForTheSame) {
  const std::string text = write("text", "a b\na\n");
  const std::string cache = path("cache/train.tokens");
  const Vocabulary vocabulary = train({text});
  const auto reused = [&](const CorpusOptions& options = {}) {
    return is_cached(cache, [&] { tokenize({text}, options, vocabulary, cache); });
  };
  EXPECT_TRUE(reused()) << "the one that training made";
  EXPECT_TRUE(is_cached(cache, [&] { tokenize({path("te*t")}, {}, vocabulary, cache); }));

  CorpusOptions lower;
  lower.text.lowercase = true;
  EXPECT_FALSE(reused(lower));
  EXPECT_TRUE(reused(lower));
  CorpusOptions skip;
  skip.skip_blank_lines = true;
  EXPECT_FALSE(reused(skip));
  EXPECT_FALSE(reused());

  const auto time = std::filesystem::last_write_time(text);
  std::filesystem::last_write_time(text, time + std::chrono::seconds(1));
  EXPECT_FALSE(reused()) << "another time of change";
  write("text", "a b\na b\n");
  std::filesystem::last_write_time(text, time + std::chrono::seconds(1));
  EXPECT_FALSE(reused()) << "another size";
  const std::string twin = write("twin", read_file(text));
  std::filesystem::last_write_time(twin, std::filesystem::last_write_time(text));
  EXPECT_FALSE(is_cached(cache, [&] { tokenize({twin}, {}, vocabulary, cache); })) << "another name";

  const Vocabulary larger = Vocabulary::from_counts({{"a", 2}, {"b", 1}, {"c", 1}});
  EXPECT_FALSE(reused());
  EXPECT_FALSE(is_cached(cache, [&] { tokenize({text}, {}, larger, cache); })) << "another vocabulary";
}

TEST_F(Corpus, ADamagedTokenFileIsMadeAnew) {
  const std::string text = write("text", "a b\na\n");
  const std::string cache = path("cache/train.tokens");
  const Vocabulary vocabulary = train({text});
  const std::string good = read_file(cache);
  for (const size_t at : {good.size() - 2, size_t{10}, size_t{0}}) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    write("cache/train.tokens", bad);
    EXPECT_EQ(read_tokens(tokenize({text}, {}, vocabulary, cache)).size(), 5U);
    EXPECT_EQ(read_file(cache), good);
  }
  write("cache/train.tokens", good.substr(0, good.size() - 4));
  EXPECT_EQ(tokenize({text}, {}, vocabulary, cache).size(), 5);
}

TEST_F(Corpus, AStreamIsReadAnewUnlessARunGoesOn) {
  const std::string fifo = path("fifo");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const auto feed = [&](const std::string& content) {
    return std::thread([=] { std::ofstream(fifo) << content; });
  };
  std::thread first = feed("a b\n");
  const Vocabulary vocabulary = train({fifo});
  first.join();
  const std::string cache = path("cache/train.tokens");

  CorpusOptions resume;
  resume.streams_from_cache = true;
  EXPECT_TRUE(is_cached(cache, [&] { tokenize({fifo}, resume, vocabulary, cache); }));
  EXPECT_THAT(message_of<DataError>([&] { tokenize({fifo}, resume, vocabulary, path("other.tokens")); }),
              HasSubstr("a stream can't be read a second time"));
  std::thread second = feed("b a b\n");
  EXPECT_EQ(tokenize({fifo}, {}, vocabulary, cache).size(), 4);
  second.join();
}

TEST_F(Corpus, ProgressCountsBytesOfTheFilesAndMayStopTheRead) {
  std::string text;
  for (int i = 0; i < 400'000; ++i) text += "word" + std::to_string(i % 977) + (i % 10 == 0 ? "\n" : " ");
  const std::string plain = write("plain", text);
  const std::string packed = write("packed", zstd(text));
  const uint64_t total = text.size() + std::filesystem::file_size(packed);
  std::vector<uint64_t> seen;
  const auto progress = [&](uint64_t done, uint64_t of) {
    EXPECT_EQ(of, total);
    EXPECT_TRUE(seen.empty() || done >= seen.back());
    seen.push_back(done);
  };
  read_training_text({plain, packed}, {}, {}, path("tokens"), progress);
  EXPECT_GE(seen.size(), 3U);
  EXPECT_EQ(seen.back(), total);
  const auto stop = [](uint64_t, uint64_t) { throw UsageError("enough"); };
  EXPECT_THROW(read_training_text({plain}, {}, {}, path("stopped"), stop), UsageError);
  EXPECT_FALSE(std::filesystem::exists(path("stopped")));
}

}  // namespace
}  // namespace hsm
