#include "text/token_file.h"

#include <numeric>
#include <thread>

#include "text/fixture.h"

namespace hsm {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class TokenFileTest : public TextTest {
 protected:
  // Tokens 0, 3, 6, … modulo 1009.
  TokenFile make(int64_t size) const {
    TokenFileWriter writer(path("tokens"));
    for (int64_t i = 0; i < size; ++i) writer.add(static_cast<int32_t>(3 * i % 1009));
    EXPECT_EQ(writer.size(), size);
    writer.commit(11, 5, 77);
    return TokenFile(path("tokens"));
  }
};

TEST_F(TokenFileTest, AnyWindowReadsBack) {
  const int64_t size = 600'011;  // more than two buffers
  const TokenFile file = make(size);
  EXPECT_EQ(file.size(), size);
  EXPECT_EQ(file.sentences(), 11);
  EXPECT_EQ(file.unknown(), 5);
  EXPECT_EQ(file.key(), 77U);
  EXPECT_TRUE(file.intact());
  for (const int64_t first : {int64_t{0}, int64_t{262'143}, size - 1}) {
    for (const int64_t count : {int64_t{0}, int64_t{1}, int64_t{1000}}) {
      std::vector<int32_t> window(static_cast<size_t>(std::min(count, size - first)));
      file.read(first, window);
      for (size_t i = 0; i < window.size(); ++i) {
        ASSERT_EQ(window[i], 3 * (first + static_cast<int64_t>(i)) % 1009);
      }
    }
  }
}

TEST_F(TokenFileTest, AnEmptyOneIsAFileToo) {
  const TokenFile file = make(0);
  EXPECT_EQ(file.size(), 0);
  EXPECT_TRUE(file.intact());
}

TEST_F(TokenFileTest, ReadsPastTheEndAreErrors) {
  const TokenFile file = make(10);
  std::vector<int32_t> window(4);
  EXPECT_THAT(message_of<DataError>([&] { file.read(8, window); }),
              HasSubstr("tokens 8 to 12 can't be read"));
}

TEST_F(TokenFileTest, RenumberingReachesEveryToken) {
  const int64_t size = 600'011;
  {
    TokenFileWriter writer(path("tokens"));
    for (int64_t i = 0; i < size; ++i) writer.add(static_cast<int32_t>(i % 1009));
    std::vector<int32_t> reversed(1009);
    for (int32_t i = 0; i < 1009; ++i) reversed[static_cast<size_t>(i)] = 1008 - i;
    writer.renumber(reversed);
    writer.commit(1, 0, 0);
  }
  const TokenFile file(path("tokens"));
  ASSERT_EQ(file.size(), size);
  EXPECT_TRUE(file.intact()) << "the checksum must be that of the new numbers";
  const auto tokens = read_tokens(file);
  for (int64_t i = 0; i < size; ++i) ASSERT_EQ(tokens[static_cast<size_t>(i)], 1008 - i % 1009);
}

TEST_F(TokenFileTest, DamageIsFound) {
  make(5000);
  const std::string good = read_file(path("tokens"));
  const auto refusal = [&](const std::string& content) {
    const std::string file = write("damaged", content);
    const std::string message = message_of<DataError>([&] { TokenFile{file}; });
    EXPECT_THAT(message, StartsWith(file));
    return message;
  };
  EXPECT_THAT(refusal(good.substr(0, good.size() - 4)), HasSubstr("bytes, expected"));
  EXPECT_THAT(refusal(good + "    "), HasSubstr("bytes, expected"));
  EXPECT_THAT(refusal(good.substr(0, 20)), HasSubstr("is not a token file"));
  EXPECT_THAT(refusal("some text"), HasSubstr("is not a token file"));
  EXPECT_THAT(refusal(""), HasSubstr("is not a token file"));
  std::string header = good;
  header[9] = static_cast<char>(header[9] + 1);
  EXPECT_THAT(refusal(header), HasSubstr("header of the token file is damaged"));
  std::string tokens = good;
  tokens[tokens.size() / 2] = static_cast<char>(tokens[tokens.size() / 2] ^ 1);
  EXPECT_FALSE(TokenFile(write("damaged", tokens)).intact());
  EXPECT_THAT(message_of<DataError>([&] { TokenFile{path("none")}; }),
              StartsWith(path("none") + ": can't be read"));
}

TEST_F(TokenFileTest, NothingStandsThereBeforeCommit) {
  {
    TokenFileWriter writer(path("tokens"));
    writer.add(1);
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(TokenFileTest, SurvivesAMove) {
  TokenFile first = make(100);
  TokenFile second = std::move(first);
  TokenFile third(path("tokens"));
  third = std::move(second);
  EXPECT_EQ(read_tokens(third)[99], 297);
  EXPECT_EQ(third.sentences(), 11);
}

TEST_F(TokenFileTest, SeveralThreadsMayRead) {
  const TokenFile file = make(100'000);
  std::vector<std::thread> threads;
  std::vector<int64_t> wrong(4);
  for (size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      std::vector<int32_t> window(97);
      for (int64_t first = static_cast<int64_t>(t); first + 97 < file.size(); first += 1013) {
        file.read(first, window);
        for (int64_t i = 0; i < 97; ++i) wrong[t] += window[static_cast<size_t>(i)] != 3 * (first + i) % 1009;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(std::accumulate(wrong.begin(), wrong.end(), int64_t{0}), 0);
}

}  // namespace
}  // namespace hsm
