#include "model/model_directory.h"

#include <gmock/gmock.h>

#include <functional>

#include "base/error.h"
#include "classes/class_file.h"
#include "config/config_file.h"
#include "model/sample_models.h"
#include "model/test_directory.h"

namespace hsm {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Vocabulary sample_vocabulary(int64_t words, const std::string& prefix = "w") {
  std::vector<Vocabulary::Entry> entries{{"</s>", 2}, {"<unk>", 1}};
  for (int64_t i = 2; i < words; ++i) entries.push_back({prefix + std::to_string(i), 1000 - i});
  return Vocabulary::from_counts(std::move(entries));
}

Config sample_config(const ModelShape& shape) {
  Config config;
  config.model.cell = cell_name(shape.cell);
  config.model.layers = static_cast<int64_t>(shape.hidden.size());
  config.model.hidden = shape.hidden;
  config.model.embedding = shape.embedding;
  config.model.tie_embeddings = shape.tied;
  return config;
}

void save_model(const std::filesystem::path& directory, const ModelOracle& oracle,
                const Vocabulary& vocabulary) {
  put_file(directory / "config.json", dump_config(sample_config(oracle.shape())));
  vocabulary.save(directory / "vocabulary.txt");
  save_classes(directory / "classes.txt", vocabulary, classes_of(oracle.layout()));
  save_weights(directory, oracle.shape(), oracle.layout(), vocabulary, oracle.weight_view(),
               {{"epoch", "3"}});
}

TEST(ModelDirectory, EverySampleModelReadsBackAsItWas) {
  for (const SampleModel& sample : sample_models()) {
    const TestDirectory folder;
    const ModelOracle oracle = sample.make(4);
    const Vocabulary vocabulary = sample_vocabulary(oracle.shape().words);
    save_model(folder.path(), oracle, vocabulary);

    const SavedModel saved = open_model(folder.path());
    EXPECT_EQ(saved.directory, folder.path());
    EXPECT_EQ(saved.vocabulary.hash(), vocabulary.hash());
    EXPECT_EQ(saved.layout.row_of_word, oracle.layout().row_of_word);
    EXPECT_EQ(saved.layout.cluster_offsets, oracle.layout().cluster_offsets);
    EXPECT_EQ(saved.shape.parameter_count(), oracle.shape().parameter_count());
    EXPECT_EQ(saved.weights.metadata().at("epoch"), "3");
    EXPECT_NO_THROW(verify_checksum(saved.weights));

    const WeightView view = saved.weight_view();
    const WeightView written = oracle.weight_view();
    const std::vector<TensorSpec> specs = parameter_specs(saved.shape);
    ASSERT_EQ(view.tensors.size(), specs.size());
    for (size_t i = 0; i < specs.size(); ++i) {
      const int64_t count = saved.weights.find(specs[i].name)->count();
      EXPECT_TRUE(std::equal(view.tensors[i], view.tensors[i] + count, written.tensors[i])) << specs[i].name;
    }
  }
}

/// A directory that holds a good model, to be spoilt in one way.
class SpoiltModel : public testing::Test {
 protected:
  SpoiltModel() { save_model(path_, oracle_, vocabulary_); }

  [[nodiscard]] std::string complaint() const {
    try {
      open_model(path_);
    } catch (const DataError& error) {
      return error.what();
    }
    return "nothing was thrown";
  }

  void spoil_config(const std::function<void(Config&)>& change) const {
    Config config = sample_config(oracle_.shape());
    change(config);
    put_file(path_ / "config.json", dump_config(config));
  }

  /// Writes the weights again with changed tensors and metadata.
  using Tensors = std::vector<TensorRef>;
  using Metadata = std::map<std::string, std::string>;
  void spoil_weights(const std::function<void(Tensors&, Metadata&)>& change) const {
    const SafetensorsFile file(path_ / "model.safetensors");
    Tensors tensors = file.tensors();
    Metadata metadata = file.metadata();
    change(tensors, metadata);
    write_safetensors(path_ / "model.safetensors", tensors, metadata);
  }

  TestDirectory folder_;
  std::filesystem::path path_ = folder_.path();
  ModelOracle oracle_ = SampleModel{"", Cell::rnn_tanh, {6, 6}, 6, false, 3, {4, 2}}.make(1);
  Vocabulary vocabulary_ = sample_vocabulary(9);
};

TEST_F(SpoiltModel, FoldersWithoutAModel) {
  path_ = folder_ / "absent";
  EXPECT_THAT(complaint(), AllOf(HasSubstr("absent"), HasSubstr("no such folder")));
  path_ = folder_ / "vocabulary.txt";
  EXPECT_THAT(complaint(),
              AllOf(HasSubstr("vocabulary.txt"), HasSubstr("is a file, expected a model directory")));
  path_ = folder_ / "empty";
  std::filesystem::create_directory(path_);
  EXPECT_THAT(complaint(), HasSubstr("empty: not a model directory: it holds no model.safetensors"));
  std::filesystem::create_directory(path_ / "checkpoints");
  EXPECT_THAT(complaint(), AllOf(HasSubstr("has not saved a model yet"), HasSubstr("--resume")));
}

TEST_F(SpoiltModel, MissingFiles) {
  std::filesystem::remove(path_ / "classes.txt");
  EXPECT_THAT(complaint(), HasSubstr("classes.txt"));
  std::filesystem::remove(path_ / "vocabulary.txt");
  EXPECT_THAT(complaint(), HasSubstr("vocabulary.txt"));
  std::filesystem::remove(path_ / "config.json");
  EXPECT_THAT(complaint(), HasSubstr("config.json"));
}

TEST_F(SpoiltModel, VocabularyOfAnotherModel) {
  sample_vocabulary(9, "v").save(path_ / "vocabulary.txt");
  EXPECT_THAT(complaint(),
              AllOf(HasSubstr("vocabulary.txt: not the vocabulary that"), HasSubstr(vocabulary_.hash())));
  sample_vocabulary(10).save(path_ / "vocabulary.txt");
  EXPECT_THAT(complaint(), HasSubstr("not the vocabulary that"));
}

TEST_F(SpoiltModel, ClassesOfAnotherModel) {
  WordClasses classes = classes_of(oracle_.layout());
  std::swap(classes.cluster_of[4], classes.cluster_of[7]);
  ASSERT_NE(classes.cluster_of[4], classes.cluster_of[7]);
  save_classes(path_ / "classes.txt", vocabulary_, classes);
  EXPECT_THAT(complaint(), HasSubstr("classes.txt:5: not the classes that"));
  const std::string content = format_classes(vocabulary_, classes_of(oracle_.layout()));
  put_file(path_ / "classes.txt", content.substr(0, content.size() - 1));
  EXPECT_THAT(complaint(), HasSubstr("classes.txt:9: not the classes that"));
  put_file(path_ / "classes.txt", content + "more\t0\n");
  EXPECT_THAT(complaint(), HasSubstr("classes.txt:10: not the classes that"));
}

TEST_F(SpoiltModel, WeightsOfAnotherModel) {
  save_weights(path_, oracle_.shape(), oracle_.layout(), sample_vocabulary(9, "v"), oracle_.weight_view(),
               {});
  EXPECT_THAT(complaint(), HasSubstr("not the vocabulary that"));
}

TEST_F(SpoiltModel, ConfigurationOfAnotherModel) {
  spoil_config([](Config& config) { config.model.cell = "rnn_relu"; });
  EXPECT_THAT(complaint(), HasSubstr("holds weights of cell rnn_tanh, but config.json says rnn_relu"));
  spoil_config([](Config& config) { config.model.hidden = {6, 5}; });
  EXPECT_THAT(complaint(), HasSubstr("\"rnn.weight_ih_l1\" has shape [6, 6], expected [5, 6]"));
  spoil_config([](Config& config) { config.model.embedding = 7; });
  EXPECT_THAT(complaint(), HasSubstr("\"embedding.weight\" has shape [9, 6], expected [9, 7]"));
  spoil_config([](Config& config) { config.model.layers = 3, config.model.hidden = {6}; });
  EXPECT_THAT(complaint(), HasSubstr("\"rnn.weight_ih_l2\" is missing"));
  spoil_config([](Config& config) { config.model.tie_embeddings = true; });
  EXPECT_THAT(complaint(), HasSubstr("\"embedding.weight\" has no place in the model"));
}

TEST_F(SpoiltModel, BrokenConfigurationIsWrongData) {
  put_file(path_ / "config.json", R"({"model": {"cell": "ltsm"}})");
  EXPECT_THAT(complaint(), AllOf(HasSubstr("config.json"), HasSubstr("model.cell")));
  put_file(path_ / "config.json", "{");
  EXPECT_THAT(complaint(), HasSubstr("config.json"));
}

TEST_F(SpoiltModel, WeightsOfAnotherFormat) {
  spoil_weights([](Tensors&, Metadata& metadata) { metadata["hsm_format"] = "2"; });
  EXPECT_THAT(complaint(), HasSubstr("model.safetensors: format version 2, this program reads version 1"));
  spoil_weights([](Tensors&, Metadata& metadata) { metadata.clear(); });
  EXPECT_THAT(complaint(), HasSubstr("not a model of this program"));
}

TEST_F(SpoiltModel, DamagedTablesOfClasses) {
  std::vector<int64_t> rows = oracle_.layout().row_of_word;
  const auto replace_rows = [&](Tensors& tensors, Metadata&) {
    std::ranges::find(tensors, "head.row_of_word", &TensorRef::name)->data = rows.data();
  };
  std::swap(rows[0], rows[5]);
  spoil_weights(replace_rows);
  EXPECT_THAT(complaint(), HasSubstr("model.safetensors"));
  rows[0] = rows[1];
  spoil_weights(replace_rows);
  EXPECT_THAT(complaint(), HasSubstr("model.safetensors"));
  spoil_weights([](Tensors& tensors, Metadata&) {
    std::ranges::find(tensors, "head.cluster_offsets", &TensorRef::name)->shape = {0};
  });
  EXPECT_THAT(complaint(), HasSubstr("model.safetensors"));
}

TEST_F(SpoiltModel, MissingAndSurplusTensors) {
  spoil_weights([](Tensors& tensors, Metadata&) {
    std::erase_if(tensors, [](const TensorRef& tensor) { return tensor.name == "head.cluster.bias"; });
  });
  EXPECT_THAT(complaint(), HasSubstr("\"head.cluster.bias\" is missing"));
  save_model(path_, oracle_, vocabulary_);
  const float value = 1;
  spoil_weights([&](Tensors& tensors, Metadata&) { tensors.push_back({"extra", DType::f32, {1}, &value}); });
  EXPECT_THAT(complaint(), HasSubstr("\"extra\" has no place"));
}

TEST_F(SpoiltModel, CutWeights) {
  const std::string content = read_file(path_ / "model.safetensors");
  put_file(path_ / "model.safetensors", content.substr(0, content.size() - 10));
  EXPECT_THAT(complaint(), AllOf(HasSubstr("model.safetensors"), HasSubstr("cut short")));
}

}  // namespace
}  // namespace hsm
