#include "config/field.h"
#include "config/kinds.h"

namespace hsm {
namespace {

constexpr int64_t kWidest = 1 << 20;           // of a layer, a batch, a window
constexpr int64_t kMostWords = 2'000'000'000;  // ids have 32 bits

IntegerKind at_least(int64_t minimum) {
  return {minimum};
}
IntegerKind between(int64_t minimum, int64_t maximum) {
  return {minimum, maximum};
}
NumberKind non_negative() {
  return {};
}
NumberKind positive() {
  return {.above = true};
}
NumberKind below_one() {
  return {.maximum = 1, .below = true};
}

void describe(SectionBuilder<DataConfig>& s) {
  s.value("train", &DataConfig::train, PathListKind{},
          "Training text, plain, .gz or .zst: a path, a glob, \"-\" for standard input, or a list of them.");
  s.value(
      "valid", &DataConfig::valid, PathListKind{},
      "Validation text. Without it there are no validations, and the weights of the last epoch are kept.");
  s.value("test", &DataConfig::test, PathListKind{}, "Test text, scored once at the end.");
  s.value(
      "lowercase", &DataConfig::lowercase, BooleanKind{},
      "Lower-case the text. A model remembers this and applies it to prompts and to text that it scores.");
  s.value("skip_blank_lines", &DataConfig::skip_blank_lines, BooleanKind{},
          "Leave blank lines out, which otherwise count as empty sentences.");
  s.value("cache", &DataConfig::cache, PathKind{},
          "Folder for the token files that are made from the text. null: the output directory.");
}

void describe(SectionBuilder<VocabularyConfig>& s) {
  s.value("min_count", &VocabularyConfig::min_count, at_least(1),
          "Words seen less often in the training text are left out, that is, become <unk>.");
  s.value("max_size", &VocabularyConfig::max_size, IntegerKind{3, kMostWords, true},
          "Keep at most this many words, the most frequent ones; the reserved </s> and <unk> count, too. "
          "0: no limit.");
  s.value("file", &VocabularyConfig::file, PathKind{},
          "Take the vocabulary from this file, a word a line, instead of the training text. A count after "
          "a tab is passed over, so the vocabulary.txt of a model will do.");
  s.value("unk_singletons", &VocabularyConfig::unk_singletons, BooleanKind{},
          "Each occurrence of a word seen once in the training text is taken for <unk> with probability "
          "1/2, so that <unk> is trained, and so is the word.");
}

void describe(SectionBuilder<ClassesConfig>& s) {
  s.value("method", &ClassesConfig::method, ChoiceKind{{"exchange", "frequency", "file"}},
          "How words get their cluster: \"exchange\" learns from the training text which words stand in "
          "like surroundings; \"frequency\" cuts the list of words, most frequent first, into bins of about "
          "equal weight; \"file\" reads classes.file.");
  s.value(
      "weight", &ClassesConfig::weight, ChoiceKind{{"sqrt", "count"}},
      "With method frequency: bins get an equal sum of the words' counts, or of the counts' square roots.");
  s.value("clusters", &ClassesConfig::clusters, AutoKind{between(1, kWidest)},
          "How many clusters, at most 20000 with method exchange. \"auto\": the number that makes a training "
          "step "
          "cheapest. With method file a number is only checked against the file.");
  s.value(
      "shortlist", &ClassesConfig::shortlist, AutoKind{between(0, kWidest)},
      "So many of the most frequent words stand at the root, beside the clusters, and take one "
      "softmax instead of two. 0: only the reserved symbols. \"auto\": the number that makes a training step "
      "cheapest. With method file a number puts these words there, whatever the file says.");
  s.value("largest", &ClassesConfig::largest, AutoKind{between(1, kMostWords)},
          "With method exchange: the most words that a cluster may have. \"auto\": four times the mean.");
  s.value("rounds", &ClassesConfig::rounds, between(0, 1000),
          "With method exchange: how often each word may move, at most; it ends when little changes.");
  s.value("file", &ClassesConfig::file, PathKind{},
          "With method file: a file with a word and the name of its class a line, separated by white "
          "space; - puts a word on the shortlist. hsm classes --output writes one.");
}

void describe(SectionBuilder<DropoutConfig>& s) {
  s.value("input", &DropoutConfig::input, below_one(), "On the embeddings that the first layer reads.");
  s.value("hidden", &DropoutConfig::hidden, below_one(), "Between recurrent layers.");
  s.value("output", &DropoutConfig::output, below_one(), "On the last layer's output.");
  s.value("embedding", &DropoutConfig::embedding, below_one(), "On whole words: rows of the embedding.");
  s.value("weight", &DropoutConfig::weight, below_one(),
          "On the recurrent weights (weight drop): single weights between the steps of a layer, for a whole "
          "window.");
  s.value("locked", &DropoutConfig::locked, BooleanKind{},
          "One mask for all time steps of a window (variational dropout), instead of one a step.");
}

void describe(SectionBuilder<RegularizationConfig>& s) {
  s.value("activation", &RegularizationConfig::activation, non_negative(),
          "This times the mean square of the last layer's output, after dropout, is added to the loss.");
  s.value(
      "temporal", &RegularizationConfig::temporal, non_negative(),
      "This times the mean square of its change from step to step, before dropout, is added to the loss.");
}

void describe(SectionBuilder<ModelConfig>& s) {
  s.value("cell", &ModelConfig::cell, ChoiceKind{{"lstm", "gru", "rnn_tanh", "rnn_relu"}},
          "The recurrent cell.");
  s.value("layers", &ModelConfig::layers, between(1, 64), "Recurrent layers.");
  s.value("hidden", &ModelConfig::hidden, IntegerListKind{between(1, kWidest)},
          "Units of a layer: one number for all layers, or a list with one for each.");
  s.value("embedding", &ModelConfig::embedding, between(0, kWidest),
          "Width of the embeddings. 0: as the first layer.");
  s.value("tie_embeddings", &ModelConfig::tie_embeddings, BooleanKind{},
          "The words' embeddings are their output weights, too. Where the last layer has another width, a "
          "projection stands between it and the head.");
  s.value("init_range", &ModelConfig::init_range, positive(),
          "Weights start uniformly within ± this number.");
  s.value("recurrent_init_range", &ModelConfig::recurrent_init_range, non_negative(),
          "The same for the weights and biases of the recurrent layers; 1/√(hidden units) is usual for large "
          "ones. 0: as init_range.");
  s.section("dropout", &ModelConfig::dropout, "The share of units that is dropped in training.", describe);
  s.section("regularization", &ModelConfig::regularization,
            "Penalties on the last layer's output in training; perplexities are without them.", describe);
}

void describe(SectionBuilder<OptimizerConfig>& s) {
  s.value("name", &OptimizerConfig::name, ChoiceKind{{"sgd", "momentum", "adagrad", "adam", "adamw", "asgd"}},
          "The optimiser. asgd is sgd that ends in the mean of its weights.");
  s.value("learning_rate", &OptimizerConfig::learning_rate, positive(),
          "Learning rate, before the schedule.");
  s.value("momentum", &OptimizerConfig::momentum, below_one(),
          "With momentum: the share of the last update kept.");
  s.value("beta1", &OptimizerConfig::beta1, below_one(),
          "With adam and adamw: decay of the gradient's average.");
  s.value("beta2", &OptimizerConfig::beta2, below_one(),
          "With adam and adamw: decay of the squared gradient's average.");
  s.value("epsilon", &OptimizerConfig::epsilon, positive(),
          "With adagrad, adam and adamw: added to the denominator.");
  s.value("initial_accumulator", &OptimizerConfig::initial_accumulator, non_negative(),
          "With adagrad: where the sums of squared gradients start.");
  s.value("weight_decay", &OptimizerConfig::weight_decay, non_negative(),
          "Weight decay: added to the gradient, with adamw apart from it.");
  s.value("average_patience", &OptimizerConfig::average_patience, at_least(0),
          "With asgd: averaging begins after a validation that is worse than the best of all but the last so "
          "many before it. 0: with the first step.");
}

void describe(SectionBuilder<ScheduleConfig>& s) {
  s.value("name", &ScheduleConfig::name, ChoiceKind{{"constant", "epoch_decay", "plateau", "cosine"}},
          "How the learning rate changes: not at all; by a factor each epoch after some; by a factor when "
          "validation no longer improves; along a cosine down to the minimum.");
  s.value("after", &ScheduleConfig::after, at_least(0), "With epoch_decay: epochs at the full rate.");
  s.value("factor", &ScheduleConfig::factor, NumberKind{.maximum = 1, .above = true},
          "With epoch_decay and plateau: what the rate is multiplied by.");
  s.value("patience", &ScheduleConfig::patience, at_least(0),
          "With plateau: validations without improvement that are let pass.");
  s.value("minimum", &ScheduleConfig::minimum, non_negative(), "With plateau and cosine: the lowest rate.");
  s.value("warmup_steps", &ScheduleConfig::warmup_steps, at_least(0),
          "With any schedule: the rate first rises linearly over so many steps.");
}

void describe(SectionBuilder<IntervalConfig>& s) {
  s.value("epochs", &IntervalConfig::epochs, at_least(0), "Epochs. 0: off.");
  s.value("steps", &IntervalConfig::steps, at_least(0), "Steps. 0: off.");
  s.value("minutes", &IntervalConfig::minutes, non_negative(), "Minutes. 0: off.");
  s.replaced_by({});
}

void describe(SectionBuilder<TrainConfig>& s) {
  s.value("epochs", &TrainConfig::epochs, at_least(0),
          "Passes over the training text. 0: until max_steps, max_time or early_stopping ends it.");
  s.value("batch", &TrainConfig::batch, between(1, kWidest),
          "Streams, or sentences, that are trained side by side.");
  s.value("bptt", &TrainConfig::bptt, between(1, kWidest), "Time steps that gradients flow back through.");
  s.value("bptt_jitter", &TrainConfig::bptt_jitter, below_one(),
          "Lengths of windows are drawn evenly from bptt · (1 ± this).");
  s.section("optimizer", &TrainConfig::optimizer, "How gradients change weights.", describe);
  s.value("context", &TrainConfig::context, ChoiceKind{{"stream", "sentence"}},
          "\"stream\": lines follow each other and states are carried on; \"sentence\": each line starts "
          "afresh.");
  s.value("loss_reduction", &TrainConfig::loss_reduction, ChoiceKind{{"mean", "sum_over_time"}},
          "The loss of a window is averaged over all its words, or summed over time and averaged over the "
          "batch, which makes the gradient bptt times as large.");
  s.section("schedule", &TrainConfig::schedule, "How the learning rate changes.", describe);
  s.value("clip_norm", &TrainConfig::clip_norm, non_negative(),
          "Gradients whose norm over all parameters is larger are scaled down to this norm. 0: never.");
  s.value("precision", &TrainConfig::precision, ChoiceKind{{"fp32", "tf32", "bf16", "fp16"}},
          "Arithmetic of the matrix products. All but fp32 need a GPU; sums and the weights themselves have "
          "32 bits with each. With fp16 the loss is scaled, by a factor that is found on the way.");
  s.value("micro_batches", &TrainConfig::micro_batches, between(1, kWidest),
          "To save memory, the batch is worked through in so many groups of streams, one after the other. "
          "The gradient is the same within rounding.");
  s.value("head_chunk", &TrainConfig::head_chunk, at_least(0),
          "To save memory, the head works on so many words of a window at a time. 0: all. The gradient is "
          "the same within rounding.");
  s.value("seed", &TrainConfig::seed, SeedKind{}, "Every random choice comes from it.");
  s.section("validate_every", &TrainConfig::validate_every,
            "When validation runs: after so many epochs, steps or minutes, whichever comes first. Units "
            "that the object doesn't name are off.",
            describe);
  s.section("checkpoint_every", &TrainConfig::checkpoint_every,
            "When a checkpoint is saved, as for validate_every.", describe);
  s.value("keep_checkpoints", &TrainConfig::keep_checkpoints, between(1, 1000), "The last so many are kept.");
  s.value("max_steps", &TrainConfig::max_steps, at_least(0), "End after so many steps. 0: no limit.");
  s.value("max_time", &TrainConfig::max_time, DurationKind{},
          "End after so much training, over all resumed runs together. 0: no limit.");
  s.value("early_stopping", &TrainConfig::early_stopping, at_least(0),
          "End after so many validations in a row without improvement. 0: never.");
  s.value("keep_weights", &TrainConfig::keep_weights, ChoiceKind{{"best", "last"}},
          "Which weights model.safetensors holds at the end: those of the best validation, or the last.");
  s.value("calibrate", &TrainConfig::calibrate, BooleanKind{},
          "Scale the logits of validations and of the model, at the root and within clusters, to suit "
          "the first 16,384 words of the validation text. Not for tied models.");
}

void describe(SectionBuilder<RuntimeConfig>& s) {
  s.value("device", &RuntimeConfig::device,
          PatternKind{"^(auto|cpu|cuda(:[0-9]{1,3})?)$", "\"auto\", \"cpu\", \"cuda\" or \"cuda:N\""},
          "Where to train. \"auto\": on the CPU, and a GPU that is there is told of. \"cuda\": on the first "
          "GPU.");
  s.value("threads", &RuntimeConfig::threads, between(0, 4096),
          "Threads on the CPU. 0: as many as processor affinity, control groups and OMP_NUM_THREADS allow. "
          "Results don't depend on it.");
  s.value("gpu_memory_limit", &RuntimeConfig::gpu_memory_limit, SizeKind{true},
          "On a GPU: how much of its memory to take at most; what is needed is taken as it is needed. 0: all "
          "there is.");
}

void describe(SectionBuilder<DecodeConfig>& s) {
  s.value("beam", &DecodeConfig::beam, between(1, kWidest), "Hypotheses that live on after each word.");
  s.value("nbest", &DecodeConfig::nbest, between(1, kWidest),
          "Hypotheses to print for each input, at most beam.");
  s.value("min_length", &DecodeConfig::min_length, between(0, kMostWords),
          "Least number of words before </s>.");
  s.value("max_length", &DecodeConfig::max_length, between(0, kMostWords),
          "Largest number of words; longer hypotheses are cut.");
  s.value("length_penalty", &DecodeConfig::length_penalty, NumberKind{-100, 100},
          "Exponent α of the length penalty ((5 + n) / 6)^α. 0: none.");
  s.value("memory_budget", &DecodeConfig::memory_budget, SizeKind{},
          "Limit on the memory of the search, on top of the loaded model.");
}

void describe(SectionBuilder<OutputConfig>& s) {
  s.value("directory", &OutputConfig::directory, PathKind{}, "The model directory.");
  s.value("log_every", &OutputConfig::log_every, at_least(1),
          "Steps between progress lines where standard error is no terminal.");
}

Field make_fields() {
  Field root;
  SectionBuilder<Config> s(root, [](Config& config) -> Config& { return config; });
  s.section("data", &Config::data, "The text.", describe);
  s.section("vocabulary", &Config::vocabulary, "Which words the model knows.", describe);
  s.section("classes", &Config::classes, "The clusters of the hierarchical softmax.", describe);
  s.section("model", &Config::model, "The network.", describe);
  s.section("train", &Config::train, "Training.", describe);
  s.section("runtime", &Config::runtime, "Where and how to compute.", describe);
  s.section("decode", &Config::decode, "Defaults of `hsm decode`.", describe);
  s.section("output", &Config::output, "Where the model goes.", describe);
  return root;
}

}  // namespace

const Field* Field::find(std::string_view key) const {
  for (const Field& field : fields) {
    if (field.name == key) return &field;
  }
  return nullptr;
}

const Field& config_fields() {
  static const Field root = make_fields();
  return root;
}

}  // namespace hsm
