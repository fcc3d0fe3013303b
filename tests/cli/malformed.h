#pragma once
#include <functional>
#include <string>
#include <vector>

#include "cli/program.h"

namespace hsm::test {

/// Something wrong that a user may give to the program, and what must come of it.
struct Malformed {
  std::string name;
  int code;                            ///< exit code
  std::vector<std::string> places;     ///< what the message must name; "@" stands for the case's folder
  std::vector<std::string> arguments;  ///< "@" stands for the case's folder
  /// Spoils the folder, which holds a good model in model/, train.txt, and config.json for it.
  std::function<void(const TemporaryFolder&)> spoil = [](const TemporaryFolder&) {};
  std::string input = {};  ///< on standard input
  size_t problems = 1;     ///< lines that the message has
};

/// Runs all cases, each in a fresh folder, and checks: the exit code; one message, which names the places;
/// nothing on standard output; every file that was there before is as it was.
void expect_refusals(const std::vector<Malformed>& cases);

}  // namespace hsm::test
