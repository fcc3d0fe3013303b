#pragma once
#include <spdlog/spdlog.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/file.h"
#include "config/config.h"
#include "train/made_up_text.h"
#include "train/temporary_folder.h"
#include "train/trainer.h"

namespace hsm {

/// A small training in a folder of its own.
class TinyRun {
 public:
  TinyRun() {
    write_file(text("train"), made_up_text(40, 1));
    write_file(text("valid"), made_up_text(12, 2));
    write_file(text("test"), made_up_text(12, 3));
    config.data.train = {text("train").string()};
    config.data.valid = {text("valid").string()};
    config.data.test = {text("test").string()};
    config.classes.method = "frequency";  // so that requests to stop come from reading and from steps alone
    config.classes.clusters = 4;
    config.classes.shortlist = 3;
    config.model.layers = 1;
    config.model.hidden = {7};
    config.train.epochs = 2;
    config.train.batch = 3;
    config.train.bptt = 8;
    config.train.optimizer.learning_rate = 2;
    config.train.clip_norm = 1;
    config.runtime.threads = 1;
    config.output.directory = (folder_.path() / "model").string();
    config.output.log_every = 1000000;
    spdlog::set_level(spdlog::level::off);
  }

  [[nodiscard]] std::filesystem::path text(const std::string& name) const {
    return folder_.path() / (name + ".txt");
  }
  [[nodiscard]] std::filesystem::path path() const { return config.output.directory; }
  [[nodiscard]] std::filesystem::path model() const { return path() / "model.safetensors"; }
  [[nodiscard]] std::filesystem::path checkpoints() const { return path() / "checkpoints"; }

  Outcome train(bool resume = false) {
    return hsm::train(config, resume, {[] { return false; }, [] { return false; }}, make_engine);
  }
  /// Stops when it is asked for the time number `ask`, from 0.
  Outcome train_until(int64_t ask, bool resume = false) {
    int64_t asked = 0;
    return hsm::train(config, resume, {[&] { return asked++ == ask; }, [] { return false; }}, make_engine);
  }
  struct Crash {};
  /// Dies without saving anything when it is asked for the time number `ask`; true if it came to that.
  bool crash_at(int64_t ask, bool resume = false) {
    int64_t asked = 0;
    const auto die = [&]() -> bool {
      if (asked++ == ask) throw Crash{};
      return false;
    };
    try {
      hsm::train(config, resume, {die, [] { return false; }}, make_engine);
    } catch (const Crash&) {
      return true;
    }
    return false;
  }

  [[nodiscard]] std::vector<nlohmann::json> events() const {
    std::vector<nlohmann::json> events;
    std::ifstream file(path() / "metrics.jsonl");
    for (std::string line; std::getline(file, line);) events.push_back(nlohmann::json::parse(line));
    return events;
  }
  [[nodiscard]] std::vector<nlohmann::json> events(const std::string& kind) const {
    std::vector<nlohmann::json> chosen;
    for (const auto& event : events()) {
      if (event["event"] == kind) chosen.push_back(event);
    }
    return chosen;
  }
  /// What must not depend on when a run was stopped: the model's bytes, and the metrics without times.
  [[nodiscard]] std::string result() const {
    std::string result = read_file(model());
    for (auto event : events()) {
      for (const char* key : {"seconds", "words_per_second", "peak_memory_bytes"}) event.erase(key);
      result += event.dump() + '\n';
    }
    return result;
  }

  Config config;
  TrainingEngineFactory make_engine = make_cpu_engine;

 private:
  TemporaryFolder folder_;
};

}  // namespace hsm
