#include "text/lines.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cstdio>
#include <thread>

#include "base/random.h"
#include "text/fixture.h"
#include "text/lowercase.h"

namespace hsm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

using Lines = TextTest;

TEST_F(Lines, LineEndsAreTakenOffAndTheLastLineNeedsNone) {
  EXPECT_THAT(read_lines(write("unix", "a b\nc\n")), ElementsAre("a b", "c"));
  EXPECT_THAT(read_lines(write("dos", "a b\r\nc\r\n")), ElementsAre("a b", "c"));
  EXPECT_THAT(read_lines(write("unfinished", "a b\nc")), ElementsAre("a b", "c"));
  EXPECT_THAT(read_lines(write("blank", "\n\na\n\n")), ElementsAre("", "", "a", ""));
  EXPECT_THAT(read_lines(write("empty", "")), IsEmpty());
  EXPECT_THAT(read_lines(write("mark", "\xEF\xBB\xBFhead\n\xEF\xBB\xBFtail\n")),
              ElementsAre("head", "\xEF\xBB\xBFtail"));
}

TEST_F(Lines, ArchivesAreToldByContentWhateverTheName) {
  const std::string text = "first\nsecond\r\nthird";
  for (const std::string& packed : {gzip(text), zstd(text), text}) {
    EXPECT_THAT(read_lines(write("text.txt", packed)), ElementsAre("first", "second", "third"));
  }
  // A text that starts like an archive but is none.
  EXPECT_THAT(read_lines(write("short", "(")), ElementsAre("("));
  EXPECT_THAT(read_lines(write("bracket", "(a)\n")), ElementsAre("(a)"));
  EXPECT_THAT(read_lines(write("none.gz", "plain\n")), ElementsAre("plain"));
}

TEST_F(Lines, ArchivesOfSeveralMembersAreReadToTheEnd) {
  const std::string skippable = std::string("\x53\x2A\x4D\x18\x03\x00\x00\x00", 8) + "xyz";
  EXPECT_THAT(read_lines(write("gz", gzip("a\nb") + gzip("c\n") + gzip("") + gzip("d\n"))),
              ElementsAre("a", "bc", "d"));
  EXPECT_THAT(read_lines(write("padded", gzip("a\n") + std::string(700, '\0'))), ElementsAre("a"));
  EXPECT_THAT(read_lines(write("zst", zstd("a\nb") + skippable + zstd("c\n"))), ElementsAre("a", "bc"));
  EXPECT_THAT(read_lines(write("skip", skippable + zstd("c\n"))), ElementsAre("c"));
}

TEST_F(Lines, TruncatedAndDamagedArchivesAreRefusedByName) {
  std::string text;
  for (int i = 0; i < 20000; ++i) text += std::to_string(i * 7919) + (i % 9 == 0 ? "\n" : " ");
  for (const std::string& packed : {gzip(text), zstd(text)}) {
    for (const size_t length : {packed.size() - 1, packed.size() / 2, size_t{11}}) {
      const std::string file = write("cut", packed.substr(0, length));
      const std::string message = message_of<DataError>([&] { read_lines(file); });
      EXPECT_THAT(message, HasSubstr(file));
      EXPECT_THAT(message, HasSubstr("truncated")) << length;
    }
    std::string damaged = packed;
    for (size_t i = 0; i < 8; ++i)
      damaged[damaged.size() / 2 + i] = static_cast<char>(~damaged[damaged.size() / 2 + i]);
    const std::string file = write("damaged", damaged);
    EXPECT_THAT(message_of<DataError>([&] { read_lines(file); }),
                StartsWith(file + ": the archive can't be unpacked near byte "));
  }
  const std::string file = write("tail", gzip("a\n") + "garbage");
  EXPECT_THAT(message_of<DataError>([&] { read_lines(file); }),
              StartsWith(file + ": the archive can't be unpacked near byte "));
}

TEST_F(Lines, BigTextsAndHugeLinesComeThroughWhole) {
  std::string text;
  std::vector<std::string> expected;
  for (const size_t length :
       {size_t{3} << 20, size_t{0}, (size_t{1} << 18) - 1, size_t{1} << 18, size_t{262145}}) {
    expected.emplace_back(length, static_cast<char>('a' + expected.size()));
    text += expected.back() + "\n";
  }
  EXPECT_EQ(read_lines(write("plain", text)), expected);
  EXPECT_EQ(read_lines(write("gz", gzip(text))), expected);
  EXPECT_EQ(read_lines(write("zst", zstd(text))), expected);
}

TEST_F(Lines, TellsHowMuchOfTheFileTheLinesTook) {
  std::string text;
  for (int line = 0; line < 100; ++line) text += "a line of text\n";
  for (const std::string& packed : {text, gzip(text)}) {
    LineReader reader(write("text", packed));
    EXPECT_EQ(reader.bytes_passed(), 0);
    std::string line;
    for (int read = 0; read < 25; ++read) reader.next(line);
    EXPECT_NEAR(static_cast<double>(reader.bytes_passed()), 0.25 * static_cast<double>(packed.size()), 2);
    while (reader.next(line)) {
    }
    EXPECT_EQ(reader.bytes_passed(), packed.size());
  }
}

TEST_F(Lines, PartsOfALineEndAtWhiteSpaceAndAreSmall) {
  const CounterRandom random(1, Purpose::shuffle);
  std::string text = "short line\r\n\n";
  for (uint64_t i = 0; i < 300'000; ++i)
    text += (i == 0 ? "" : " ") + std::string(1 + random.below(9, 0, i), 'x');
  text += "\n" + std::string(600'000, 'y') + " z";  // a word longer than any buffer
  LineReader reader(write("text", text));
  std::vector<std::string> lines(1);
  std::string part;
  size_t parts = 0;
  for (bool last = false; reader.next_part(part, last); ++parts) {
    EXPECT_EQ(reader.line_number(), static_cast<int64_t>(lines.size()));
    lines.back() += part;
    if (last) {
      lines.emplace_back();
    } else {
      EXPECT_TRUE(part.ends_with(' '));
    }
    const size_t word = part.find('y') == std::string::npos ? 10 : 600'000;
    EXPECT_LE(part.size(), (size_t{1} << 18) + word);
  }
  EXPECT_GT(parts, 8U);
  lines.pop_back();
  std::vector<std::string> whole = read_lines(path("text"));
  whole[0] += '\r';  // white space of the part, not taken off
  EXPECT_EQ(lines, whole);
}

TEST_F(Lines, APipeGivesALineAsSoonAsItIsThere) {
  const std::string fifo = path("fifo");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  // The writer sends the second line only after the first was read: a reader that waits for more would hang.
  int descriptor = -1;
  std::thread opener([&] { descriptor = ::open(fifo.c_str(), O_WRONLY); });
  LineReader reader(fifo);
  opener.join();
  const auto send = [&](std::string_view bytes) {
    ASSERT_EQ(::write(descriptor, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  };
  std::string line;
  send("(\n");
  ASSERT_TRUE(reader.next(line));
  EXPECT_EQ(line, "(");
  EXPECT_FALSE(reader.line_ready());
  send("one\ntwo\nth");
  ASSERT_TRUE(reader.next(line));
  EXPECT_EQ(line, "one");
  EXPECT_TRUE(reader.line_ready());
  ASSERT_TRUE(reader.next(line));
  EXPECT_EQ(line, "two");
  EXPECT_FALSE(reader.line_ready()) << "the third line isn't whole";
  send("ree");
  ::close(descriptor);
  ASSERT_TRUE(reader.next(line));
  EXPECT_EQ(line, "three");
  EXPECT_FALSE(reader.next(line));
  EXPECT_FALSE(reader.next(line));
}

TEST_F(Lines, WhatCannotBeReadIsNamed) {
  EXPECT_THAT(message_of<DataError>([&] { LineReader(path("none")); }),
              StartsWith(path("none") + ": can't be read"));
  EXPECT_THAT(message_of<DataError>([&] { LineReader(folder_.string()); }), HasSubstr("is a folder"));
}

std::vector<std::string> split(std::string line, bool lower = false) {
  std::vector<std::string_view> tokens{"left over"};
  split_line(line, {lower}, "text", 7, tokens);
  return {tokens.begin(), tokens.end()};
}

TEST(SplitLine, OnlyAsciiWhiteSpaceSeparates) {
  EXPECT_THAT(split("  a\tb \v c\fd\r"), ElementsAre("a", "b", "c", "d"));
  EXPECT_THAT(split(""), IsEmpty());
  EXPECT_THAT(split(" \t "), IsEmpty());
  EXPECT_THAT(split("a\u00A0b \u3000 \u2028"), ElementsAre("a\u00A0b", "\u3000", "\u2028"));
  EXPECT_THAT(split("it 's <unk> N"), ElementsAre("it", "'s", "<unk>", "N"));
}

TEST(SplitLine, SentenceMarkersAreDroppedAtTheEdgesAndRefusedWithin) {
  EXPECT_THAT(split("<s> a b </s>"), ElementsAre("a", "b"));
  EXPECT_THAT(split("a </s>"), ElementsAre("a"));
  EXPECT_THAT(split("<s> </s>"), IsEmpty());
  EXPECT_THAT(split("</s>"), IsEmpty());
  EXPECT_THAT(split("<s>a <s/> b</s>"), ElementsAre("<s>a", "<s/>", "b</s>"));
  EXPECT_EQ(message_of<DataError>([] { split("a </s> b"); }),
            "text:7: \"</s>\" within the line, expected it at the start or the end only");
  EXPECT_THAT(message_of<DataError>([] { split("a <s> b </s>"); }), StartsWith("text:7: \"<s>\" within"));
}

TEST(SplitLine, MalformedBytesAreRefusedWithTheirPlace) {
  using namespace std::string_literals;
  EXPECT_THAT(message_of<DataError>([] { split("ab \xFFz"); }),
              StartsWith("text:7: byte 4 is not well-formed UTF-8"));
  EXPECT_THAT(message_of<DataError>([] { split("\xC3"); }), StartsWith("text:7: byte 1 "));
  EXPECT_THAT(message_of<DataError>([] { split("\u00E4\xED\xA0\x80"); }), StartsWith("text:7: byte 3 "));
  EXPECT_THAT(message_of<DataError>([] { split("a\0b"s); }), StartsWith("text:7: byte 2 is NUL"));
}

TEST(SplitLine, LowerCasesByTheSimpleMappingOfUnicode) {
  EXPECT_THAT(split("ABC \u00C4\u00D6 \u0416 \u03A3\u03A3", true),
              ElementsAre("abc", "\u00E4\u00F6", "\u0436", "\u03C3\u03C3"));
  // Characters whose lower case takes fewer or more bytes, and some beyond 16 bits.
  EXPECT_THAT(split("\u212A \u023A \u1E9E \U00010400 \U0001F600", true),
              ElementsAre("k", "\u2C65", "\u00DF", "\U00010428", "\U0001F600"));
  EXPECT_THAT(split("<S> A <UNK> </S>", true), ElementsAre("a", "<unk>"));
  EXPECT_THAT(split("ABC \u00C4"), ElementsAre("ABC", "\u00C4"));
}

TEST(Lowercase, DoesNothingToWhatIsLowerAlready) {
  for (std::string text : {"", "plain", "\u00E4 @[`{ \u0436 \u4E2D"}) {
    const std::string before = text;
    lowercase(text);
    EXPECT_EQ(text, before);
  }
}

using ExpandPaths = TextTest;

TEST_F(ExpandPaths, GlobsAreSortedAndFilesComeOnce) {
  for (const char* name : {"b.txt", "a.txt", "B.txt", "c.dat", "odd[1].txt"}) write(name, "");
  make_directories(folder_ / "folder.txt");
  EXPECT_THAT(expand_paths({path("c.dat"), path("*.txt"), path("a.*")}),
              ElementsAre(path("c.dat"), path("B.txt"), path("a.txt"), path("b.txt"), path("odd[1].txt")));
  EXPECT_THAT(expand_paths({path("odd[1].txt")}), ElementsAre(path("odd[1].txt")));
  EXPECT_THAT(expand_paths({"-", path("?.dat")}), ElementsAre("-", path("c.dat")));
  EXPECT_THAT(expand_paths({}), IsEmpty());
}

TEST_F(ExpandPaths, WhatIsNotThereIsNamed) {
  EXPECT_EQ(message_of<UsageError>([&] { expand_paths({path("*.nope")}); }),
            path("*.nope") + ": no file matches");
  EXPECT_EQ(message_of<DataError>([&] { expand_paths({path("nope")}); }), path("nope") + ": no such file");
  EXPECT_THAT(message_of<DataError>([&] { expand_paths({folder_.string()}); }), HasSubstr("is a folder"));
  EXPECT_THAT(message_of<UsageError>([] { expand_paths({""}); }), HasSubstr("empty path"));
}

}  // namespace
}  // namespace hsm
