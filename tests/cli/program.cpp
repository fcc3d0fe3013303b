#include "cli/program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <stdexcept>
#include <system_error>

#include "base/file.h"

namespace hsm::test {
namespace {

void check(int error, const char* what) {
  if (error != 0) throw std::system_error(error, std::generic_category(), what);
}

// Files for the three streams: with files no reader has to keep up with the program.
class Streams {
 public:
  explicit Streams(const TemporaryFolder& folder, const std::string& input)
      : in_(folder.write("in", input)), out_(folder / "out"), err_(folder / "err") {
    check(posix_spawn_file_actions_init(&actions_), "file actions");
    open(STDIN_FILENO, in_, O_RDONLY);
    open(STDOUT_FILENO, out_, O_WRONLY | O_CREAT | O_TRUNC);
    open(STDERR_FILENO, err_, O_WRONLY | O_CREAT | O_TRUNC);
  }
  ~Streams() { posix_spawn_file_actions_destroy(&actions_); }
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;

  posix_spawn_file_actions_t* actions() { return &actions_; }
  [[nodiscard]] std::string out() const { return read_file(out_); }
  [[nodiscard]] std::string err() const { return read_file(err_); }

 private:
  void open(int descriptor, const std::string& path, int flags) {
    check(posix_spawn_file_actions_addopen(&actions_, descriptor, path.c_str(), flags, 0644), "file actions");
  }

  std::string in_;
  std::string out_;
  std::string err_;
  posix_spawn_file_actions_t actions_{};
};

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

std::vector<std::string> environment_with(const std::map<std::string, std::string>& changes) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!changes.contains(text.substr(0, text.find('=')))) result.push_back(text);
  }
  for (const auto& [name, value] : changes) result.push_back(name + "=" + value);
  return result;
}

}  // namespace

Outcome run_program(const Invocation& invocation) {
  const TemporaryFolder folder;
  Streams streams(folder, invocation.input);
  if (!invocation.folder.empty()) {
    check(posix_spawn_file_actions_addchdir_np(streams.actions(), invocation.folder.c_str()), "folder");
  }
  std::vector<std::string> arguments{HSM_PROGRAM};
  arguments.insert(arguments.end(), invocation.arguments.begin(), invocation.arguments.end());
  std::vector<std::string> environment = environment_with(invocation.environment);
  pid_t child = 0;
  check(posix_spawn(&child, HSM_PROGRAM, streams.actions(), nullptr, pointers(arguments).data(),
                    pointers(environment).data()),
        HSM_PROGRAM);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) check(errno, "waitpid");
  }
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), streams.out(), streams.err()};
}

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "hsm_cli_XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) check(errno, "mkdtemp");
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TemporaryFolder::write(const std::string& name, const std::string& content) const {
  const std::filesystem::path file = path_ / name;
  make_directories(file.parent_path());
  write_file(file, content);
  return file.string();
}

std::map<std::string, std::string> snapshot(const std::filesystem::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files[entry.path().string()] = read_file(entry.path());
  }
  return files;
}

}  // namespace hsm::test
