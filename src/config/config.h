#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hsm {

// The configuration as plain structs. A member's name is its key in JSON; fields.cpp says what each may hold
// and docs/configuration.md describes them. 0 stands for "none" or "automatic" where a member says so, an
// empty string for null. Paths are absolute once a file has been read.

struct DataConfig {
  std::vector<std::string> train;  ///< paths or globs; "-" is standard input
  std::vector<std::string> valid;
  std::vector<std::string> test;
  bool lowercase = false;
  bool skip_blank_lines = false;
  std::string cache;  ///< folder of token files; empty: the output directory

  bool operator==(const DataConfig&) const = default;
};

struct VocabularyConfig {
  int64_t min_count = 1;
  int64_t max_size = 0;         ///< words, reserved symbols included; 0: no limit
  std::string file;             ///< a word a line; empty: from the training text
  bool unk_singletons = false;  ///< words seen once are trained as <unk>, too

  bool operator==(const VocabularyConfig&) const = default;
};

struct ClassesConfig {
  static constexpr int64_t kMostExchangeClusters = 20'000;  ///< with method exchange

  std::string method = "exchange";   ///< exchange | frequency | file
  std::string weight = "sqrt";       ///< frequency bins of equal sum of: count | sqrt
  std::optional<int64_t> clusters;   ///< nothing: chosen ("auto")
  std::optional<int64_t> shortlist;  ///< nothing: chosen ("auto"); 0: only the reserved symbols
  std::optional<int64_t> largest;    ///< exchange: most words of a cluster; nothing: chosen ("auto")
  int64_t rounds = 20;               ///< exchange: at most
  std::string file;                  ///< "word class" lines, for method file

  bool operator==(const ClassesConfig&) const = default;
};

struct DropoutConfig {
  double input = 0;      ///< on embeddings
  double hidden = 0;     ///< between recurrent layers
  double output = 0;     ///< on the last layer's output
  double embedding = 0;  ///< on whole rows of the embedding
  double weight = 0;     ///< on recurrent weights
  bool locked = false;   ///< one mask for all time steps of a window (variational)

  bool operator==(const DropoutConfig&) const = default;
};

struct RegularizationConfig {
  double activation = 0;  ///< α of the mean square of the last layer's output
  double temporal = 0;    ///< β of that of its change from step to step

  bool operator==(const RegularizationConfig&) const = default;
};

struct ModelConfig {
  std::string cell = "lstm";  ///< lstm | gru | rnn_tanh | rnn_relu
  int64_t layers = 2;
  std::vector<int64_t> hidden{200};  ///< one number for all layers, or one a layer
  int64_t embedding = 0;             ///< 0: as the first hidden size
  bool tie_embeddings = false;
  double init_range = 0.1;
  double recurrent_init_range = 0;  ///< of the recurrent layers' weights and biases; 0: as init_range
  DropoutConfig dropout;
  RegularizationConfig regularization;

  bool operator==(const ModelConfig&) const = default;
};

struct OptimizerConfig {
  std::string name = "sgd";  ///< sgd | momentum | adagrad | adam | adamw | asgd
  double learning_rate = 1.0;
  double momentum = 0.9;           ///< momentum
  double beta1 = 0.9;              ///< adam, adamw
  double beta2 = 0.999;            ///< adam, adamw
  double epsilon = 1e-8;           ///< adagrad, adam, adamw
  double initial_accumulator = 0;  ///< adagrad
  double weight_decay = 0;
  int64_t average_patience = 5;  ///< asgd: 0: average from the first step

  bool operator==(const OptimizerConfig&) const = default;
};

struct ScheduleConfig {
  std::string name = "constant";  ///< constant | epoch_decay | plateau | cosine
  int64_t after = 0;              ///< epoch_decay: epochs at the full rate
  double factor = 0.5;            ///< epoch_decay, plateau: multiplies the rate
  int64_t patience = 0;           ///< plateau: validations without improvement that are let pass
  double minimum = 0;             ///< lowest rate (plateau, cosine)
  int64_t warmup_steps = 0;       ///< rate rises linearly over these steps

  bool operator==(const ScheduleConfig&) const = default;
};

/// When to do something: whenever any of the units that aren't 0 has passed. An object in JSON replaces all
/// three, so {"steps": 500} turns epochs and minutes off.
struct IntervalConfig {
  int64_t epochs = 0;
  int64_t steps = 0;
  double minutes = 0;

  bool operator==(const IntervalConfig&) const = default;
};

struct TrainConfig {
  int64_t epochs = 10;  ///< 0: until max_steps, max_time or early_stopping ends it
  int64_t batch = 20;
  int64_t bptt = 35;
  double bptt_jitter = 0;  ///< relative spread of window lengths, in [0, 1)
  OptimizerConfig optimizer;
  std::string context = "stream";       ///< stream | sentence
  std::string loss_reduction = "mean";  ///< mean | sum_over_time
  ScheduleConfig schedule;
  double clip_norm = 0;            ///< 0: none
  std::string precision = "fp32";  ///< fp32 | tf32 | bf16 | fp16
  int64_t micro_batches = 1;       ///< groups of streams that a window is worked through in
  int64_t head_chunk = 0;          ///< tokens that the head works on at a time; 0: all
  uint64_t seed = 1;
  IntervalConfig validate_every{1, 0, 0};
  IntervalConfig checkpoint_every{1, 0, 10};
  int64_t keep_checkpoints = 2;
  int64_t max_steps = 0;              ///< 0: no limit
  double max_time = 0;                ///< seconds, in JSON a duration such as "90m"; 0: no limit
  int64_t early_stopping = 0;         ///< validations without improvement before the end; 0: never
  std::string keep_weights = "best";  ///< best | last: what model.safetensors holds at the end
  bool calibrate = false;             ///< scale its logits to fit the validation text

  bool operator==(const TrainConfig&) const = default;
};

struct RuntimeConfig {
  std::string device = "auto";    ///< auto | cpu | cuda | cuda:N
  int64_t threads = 0;            ///< 0: as many as this process may use
  uint64_t gpu_memory_limit = 0;  ///< bytes of a GPU's memory to use; in JSON a size; 0: all of it

  bool operator==(const RuntimeConfig&) const = default;
};

struct DecodeConfig {
  int64_t beam = 8;
  int64_t nbest = 1;
  int64_t min_length = 0;
  int64_t max_length = 100;
  double length_penalty = 0;
  uint64_t memory_budget = uint64_t{256} << 20;  ///< bytes; in JSON a size such as "256MiB"

  bool operator==(const DecodeConfig&) const = default;
};

struct OutputConfig {
  std::string directory;
  int64_t log_every = 200;  ///< steps between progress lines when there is no terminal

  bool operator==(const OutputConfig&) const = default;
};

struct Config {
  Config() = default;  // as an aggregate, GCC 12 warns of temporaries "used uninitialized"

  DataConfig data;
  VocabularyConfig vocabulary;
  ClassesConfig classes;
  ModelConfig model;
  TrainConfig train;
  RuntimeConfig runtime;
  DecodeConfig decode;
  OutputConfig output;

  bool operator==(const Config&) const = default;
};

}  // namespace hsm
