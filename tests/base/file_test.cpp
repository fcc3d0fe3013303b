#include "base/file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "base/error.h"
#include "base/hash.h"

namespace hsm {
namespace {

class FileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("hsm_file_test_" + std::to_string(::getpid()));
    make_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  [[nodiscard]] size_t files() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }
  std::filesystem::path folder_;
};

TEST_F(FileTest, AtomicFileReplacesTheTargetOnlyOnCommit) {
  const auto path = folder_ / "a.txt";
  write_file(path, "old");
  {
    AtomicFile file(path);
    file.write("new content");
    EXPECT_EQ(read_file(path), "old");
  }
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(files(), 1U) << "an abandoned temporary file was left behind";
  AtomicFile file(path);
  file.write("0123456789");
  file.rewrite(2, "ab");
  file.write(std::string(3 << 20, 'x'));
  EXPECT_EQ(file.size(), 10U + (3U << 20));
  file.commit();
  EXPECT_EQ(read_file(path), "01ab456789" + std::string(3 << 20, 'x'));
  EXPECT_EQ(files(), 1U);
}

TEST_F(FileTest, AFileThatReplacesOneHasItsPermissions) {
  const auto path = folder_ / "c.txt";
  for (const mode_t mode : {mode_t{0600}, mode_t{0666}}) {
    write_file(path, "old");
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    write_file(path, "new");
    EXPECT_EQ(read_file(path), "new");
    EXPECT_EQ(static_cast<mode_t>(std::filesystem::status(path).permissions()), mode);
  }
}

TEST_F(FileTest, ADiskThatIsFullIsAResourceErrorAndTheOldContentStays) {
  const auto path = folder_ / "b.bin";
  write_file(path, "good");
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{1 << 20, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  try {
    AtomicFile file(path);
    file.write(std::string(2 << 20, 'y'));
    file.commit();
    ADD_FAILURE() << "a write beyond the limit went through";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::resource);
    EXPECT_NE(std::string(error.what()).find("b.bin"), std::string::npos);
  }
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(read_file(path), "good");
  EXPECT_EQ(files(), 1U);
}

TEST_F(FileTest, MissingFilesAndFoldersAreNamed) {
  EXPECT_THROW(read_file(folder_ / "none"), DataError);
  EXPECT_THROW(read_file(folder_), DataError);
  EXPECT_THROW(MappedFile(folder_ / "none"), DataError);
  EXPECT_THROW(MappedFile{folder_}, DataError);
  EXPECT_THROW(AtomicFile(folder_ / "no" / "folder"), ResourceError);
  write_file(folder_ / "file", "");
  EXPECT_THROW(make_directories(folder_ / "file" / "below"), ResourceError);
}

TEST_F(FileTest, MappedFileShowsTheBytes) {
  write_file(folder_ / "m", "abc");
  write_file(folder_ / "empty", "");
  MappedFile file(folder_ / "m");
  MappedFile moved(std::move(file));
  ASSERT_EQ(moved.bytes().size(), 3U);
  EXPECT_EQ(moved.bytes()[2], std::byte{'c'});
  EXPECT_TRUE(MappedFile(folder_ / "empty").bytes().empty());
}

TEST(Hasher, DependsOnBytesNotOnHowTheyAreCut) {
  Hasher whole;
  whole.add("abcdef");
  Hasher parts;
  parts.add("ab");
  parts.add("cdef");
  EXPECT_EQ(whole.hex(), parts.hex());
  EXPECT_EQ(whole.hex().size(), 16U);
  parts.add("g");
  EXPECT_NE(whole.value(), parts.value());
  EXPECT_EQ(Hasher().hex(), "2d06800538d394c2") << "XXH3 of nothing, as published";
}

}  // namespace
}  // namespace hsm
