#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "config/config_file.h"
#include "config/schema_validator.h"

namespace hsm {
namespace {

using Json = nlohmann::json;

const std::filesystem::path kSource = HSM_SOURCE_DIR;
constexpr const char* kHowToUpdate =
    "\nThis file is made from src/config/fields.cpp. To make it anew: HSM_UPDATE_FILES=1 test_config";

bool updates_files() {
  return std::getenv("HSM_UPDATE_FILES") != nullptr;
}

// Verdict of the parser on a whole configuration.
bool accepts(const Json& config) {
  try {
    parse_config(config.dump(), "case", "/");
    return true;
  } catch (const UsageError&) {
    return false;
  }
}

std::vector<std::filesystem::path> recipes() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(kSource / "configs")) {
    if (entry.path().filename() != "config.schema.json") files.push_back(entry.path());
  }
  return files;
}

TEST(ConfigSchema, IsTheShippedFile) {
  const auto file = kSource / "configs" / "config.schema.json";
  if (updates_files()) write_file(file, config_schema());
  EXPECT_EQ(read_file(file), config_schema()) << kHowToUpdate;
}

TEST(ConfigSchema, ReferenceInTheDocumentationIsUpToDate) {
  const auto file = kSource / "docs" / "configuration.md";
  const std::string begin = "<!-- reference: made from src/config/fields.cpp -->\n";
  const std::string end = "<!-- end of reference -->\n";
  std::string text = read_file(file);
  const size_t from = text.find(begin) + begin.size();
  const size_t to = text.find(end);
  ASSERT_NE(text.find(begin), std::string::npos);
  ASSERT_NE(to, std::string::npos);
  if (updates_files()) {
    write_file(file, text.substr(0, from) + config_reference() + text.substr(to));
    return;
  }
  EXPECT_EQ(text.substr(from, to - from), config_reference()) << kHowToUpdate;
}

TEST(ConfigSchema, EveryShippedRecipeFollowsItAndTheParser) {
  const Json schema = Json::parse(config_schema());
  ASSERT_GE(recipes().size(), 5U);
  for (const auto& file : recipes()) {
    SCOPED_TRACE(file.string());
    const Json recipe = Json::parse(read_file(file), nullptr, true, true);
    EXPECT_TRUE(test::is_valid(recipe, schema));
    EXPECT_EQ(recipe["$schema"], "config.schema.json");
    const Config config = load_config(file, {}, ConfigUse::training);
    EXPECT_EQ(config.output.directory, (kSource / "models" / file.stem()).string());
    for (const auto* paths : {&config.data.train, &config.data.valid, &config.data.test}) {
      ASSERT_EQ(paths->size(), 1U);
      EXPECT_TRUE(paths->front().starts_with((kSource / "data" / "").string())) << paths->front();
    }
  }
}

TEST(ConfigSchema, AcceptsEveryDumpedConfiguration) {
  const Json schema = Json::parse(config_schema());
  Config config;
  EXPECT_TRUE(test::is_valid(Json::parse(dump_config(config)), schema));
  config.data.train = {"a", "-"};
  config.classes.clusters = 3;
  config.model.hidden = {1, 2};
  config.decode.memory_budget = 12345;
  config.train.max_time = 90;
  EXPECT_TRUE(test::is_valid(Json::parse(dump_config(config)), schema));
}

TEST(ConfigSchema, ItsDefaultsAreTheParsers) {
  const Json schema = Json::parse(config_schema());
  const Json defaults = Json::parse(dump_config(Config{}));
  for (const auto& [section, values] : defaults.items()) {
    for (const auto& [key, value] : values.items()) {
      const Json& property = schema["properties"][section]["properties"][key];
      EXPECT_FALSE(property["description"].get<std::string>().empty()) << section << "." << key;
      if (value.is_object()) continue;
      EXPECT_EQ(property["default"], value) << section << "." << key;
    }
  }
}

// A value at a path, and whether it is allowed there.
struct Case {
  const char* path;
  const char* value;
  bool allowed;
};

constexpr Case kCases[] = {
    {"data.train", R"("a.txt")", true},
    {"data.train", R"(["a", "-"])", true},
    {"data.train", R"([])", true},
    {"data.train", R"(null)", true},
    {"data.train", R"("")", false},
    {"data.train", R"([""])", false},
    {"data.train", R"(["a", 1])", false},
    {"data.train", R"(1)", false},
    {"data.train", R"({})", false},
    {"data.lowercase", R"(true)", true},
    {"data.lowercase", R"("true")", false},
    {"data.lowercase", R"(1)", false},
    {"data.cache", R"(null)", true},
    {"data.cache", R"("c")", true},
    {"data.cache", R"("")", false},
    {"data.cache", R"(["c"])", false},
    {"vocabulary.min_count", R"(1)", true},
    {"vocabulary.min_count", R"(2.0)", true},
    {"vocabulary.min_count", R"(0)", false},
    {"vocabulary.min_count", R"(1.5)", false},
    {"vocabulary.min_count", R"("2")", false},
    {"vocabulary.min_count", R"(9007199254740991)", true},
    {"vocabulary.min_count", R"(9007199254740992)", false},
    {"vocabulary.max_size", R"(0)", true},
    {"vocabulary.max_size", R"(2)", false},
    {"vocabulary.max_size", R"(3)", true},
    {"vocabulary.max_size", R"(-1)", false},
    {"vocabulary.max_size", R"(1e6)", true},
    {"vocabulary.max_size", R"(2000000001)", false},
    {"classes.method", R"("frequency")", true},
    {"classes.method", R"("Frequency")", false},
    {"classes.method", R"(null)", false},
    {"classes.clusters", R"("auto")", true},
    {"classes.clusters", R"("Auto")", false},
    {"classes.clusters", R"(0)", false},
    {"classes.clusters", R"(1)", true},
    {"classes.shortlist", R"(0)", true},
    {"classes.shortlist", R"(null)", false},
    {"model.layers", R"(64)", true},
    {"model.layers", R"(65)", false},
    {"model.hidden", R"(7)", true},
    {"model.hidden", R"([7, 7])", true},
    {"model.hidden", R"([])", false},
    {"model.hidden", R"([7, 0])", false},
    {"model.hidden", R"("7")", false},
    {"model.init_range", R"(0)", false},
    {"model.init_range", R"(0.001)", true},
    {"model.dropout", R"(0.5)", false},
    {"model.dropout", R"({})", true},
    {"model.dropout.input", R"(0)", true},
    {"model.dropout.input", R"(1)", false},
    {"model.dropout.input", R"(0.999)", true},
    {"model.dropout.input", R"(-0.1)", false},
    {"model.dropout.inputs", R"(0.1)", false},
    {"train.seed", R"(18446744073709551615)", true},
    {"train.seed", R"(-1)", false},
    {"train.seed", R"(0.5)", false},
    {"train.schedule.factor", R"(0)", false},
    {"train.schedule.factor", R"(1)", true},
    {"train.schedule.factor", R"(1.1)", false},
    {"train.precision", R"("fp64")", false},
    {"train.max_time", R"(0)", true},
    {"train.max_time", R"(90)", false},
    {"train.max_time", R"("90m")", true},
    {"train.max_time", R"("1h2m3s")", true},
    {"train.max_time", R"("90")", false},
    {"train.max_time", R"("2m1h")", false},
    {"train.max_time", R"("")", false},
    {"train.max_time", R"("1.5h")", false},
    {"train.validate_every", R"({"minutes": 0.5})", true},
    {"train.validate_every", R"({"seconds": 30})", false},
    {"runtime.device", R"("cuda:3")", true},
    {"runtime.device", R"("cuda:")", false},
    {"runtime.device", R"("gpu")", false},
    {"runtime.threads", R"(4097)", false},
    {"runtime.gpu_memory_limit", R"(0)", true},
    {"runtime.gpu_memory_limit", R"("0")", false},
    {"runtime.gpu_memory_limit", R"("8GiB")", true},
    {"runtime.gpu_memory_limit", R"(-1)", false},
    {"train.precision", R"("bf16")", true},
    {"train.micro_batches", R"(0)", false},
    {"train.micro_batches", R"(4)", true},
    {"train.head_chunk", R"(0)", true},
    {"decode.memory_budget", R"(0)", false},
    {"decode.memory_budget", R"("256MiB")", true},
    {"decode.memory_budget", R"("0.5 GB")", true},
    {"decode.memory_budget", R"("1k")", true},
    {"decode.memory_budget", R"("0MiB")", false},
    {"decode.memory_budget", R"("MiB")", false},
    {"decode.memory_budget", R"("-1MiB")", false},
    {"decode.memory_budget", R"("1 apple")", false},
    {"decode.memory_budget", R"(4096)", true},
    {"decode.memory_budget", R"(0)", false},
    {"decode.length_penalty", R"(-0.5)", true},
    {"decode.length_penalty", R"(101)", false},
    {"output", R"([])", false},
    {"outputs", R"({})", false},
    {"$schema", R"("config.schema.json")", true},
    {"$schema", R"(1)", false},
};

TEST(ConfigSchema, AgreesWithTheParser) {
  const Json schema = Json::parse(config_schema());
  for (const Case& one : kCases) {
    std::string pointer = std::string("/") + one.path;
    std::replace(pointer.begin(), pointer.end(), '.', '/');
    Json config = Json::object();
    config[Json::json_pointer(pointer)] = Json::parse(one.value);
    SCOPED_TRACE(config.dump());
    EXPECT_EQ(accepts(config), one.allowed);
    EXPECT_EQ(test::is_valid(config, schema), one.allowed);
  }
}

// Each of these values in turn at each key: schema and parser agree, save where values contradict each other,
// which only the parser knows.
TEST(ConfigSchema, AgreesWithTheParserOnEveryKey) {
  const Json schema = Json::parse(config_schema());
  const Json keys = Json::parse(dump_config(Config{})).flatten();
  const std::set<std::string> contradictions{
      R"(/classes/method "file")", R"(/classes/file "auto")", R"(/classes/file "cpu")",
      R"(/classes/file "file")",   R"(/classes/file "1s")",   R"(/classes/file "1MiB")",
      R"(/train/epochs 0)",        R"(/model/hidden [1])",
  };
  std::set<std::string> seen;
  for (const auto& [pointer, standard] : keys.items()) {
    for (const char* text : {"null",     "true",      "0",
                             "1",        "-1",        "0.5",
                             "1.0",      "1e300",     "12345678901234567890",
                             "\"\"",     "\"auto\"",  "\"cpu\"",
                             "\"file\"", "\"1s\"",    "\"1MiB\"",
                             "[]",       "[1]",       "[\"a\"]",
                             "{}",       "{\"a\": 1}"}) {
      Json config{{"data", {{"valid", "valid.txt"}}}};
      config[Json::json_pointer(pointer)] = Json::parse(text);
      const bool valid = test::is_valid(config, schema);
      std::string path = pointer.substr(1);
      std::replace(path.begin(), path.end(), '/', '.');
      try {
        parse_config(config.dump(), "case", "/");
        EXPECT_TRUE(valid) << pointer << " " << text;
      } catch (const UsageError& error) {
        if (valid) seen.insert(pointer + " " + text);
        EXPECT_NE(std::string(error.what()).find(path), std::string::npos) << error.what();
      }
    }
  }
  EXPECT_EQ(seen, contradictions);
}

}  // namespace
}  // namespace hsm
