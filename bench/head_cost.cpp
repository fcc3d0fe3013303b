// Fits the table of costs in src/classes/step_cost.cpp, and shows how good the automatic sizes of classes
// are:
//
//   bench_head_cost TEXT...                time of the head for many shapes of classes, and the fitted costs
//   bench_head_cost --choice D N TEXT...   time of the head for a grid of sizes beside the automatic choice
//
// A step is what training does with the head: loss and gradients, the norm, an SGD update of the rows
// touched. One thread; the processor time that it took, the least of several rounds, so that other work on
// the machine disturbs little. Classes are learned from TEXT (by frequency with a large vocabulary), and the
// targets are its tokens, a window after the other.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/thread_pool.h"
#include "classes/automatic.h"
#include "classes/make_classes.h"
#include "classes/step_cost.h"
#include "kernels/head.h"
#include "kernels/leaf_factors.h"
#include "kernels/optimizer.h"
#include "text/corpus.h"

namespace {

using namespace hsm;

constexpr int kRounds = 9;
constexpr int kWindows = 6;                // of a round
constexpr int64_t kMostLearned = 200'000;  // words; classes of more are cut by frequency, to save hours

struct Text {
  Vocabulary vocabulary;
  TokenFile tokens;
};

Text read_text(const std::string& path) {
  const auto cache = std::filesystem::temp_directory_path() / "bench_head_cost.tokens";
  Vocabulary vocabulary = read_training_text({path}, {}, {}, cache);
  TokenFile tokens(cache);
  std::filesystem::remove(cache);
  return {std::move(vocabulary), std::move(tokens)};
}

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

std::vector<float> random_values(size_t size, uint64_t seed) {
  const CounterRandom random(seed, Purpose::initialization);
  std::vector<float> values(size);
  for (size_t i = 0; i < size; ++i) values[i] = static_cast<float>(random.uniform(i, 0) - 0.5) * 0.1F;
  return values;
}

/// Nanoseconds of a step with these classes.
double measure(const Text& text, const WordClasses& classes, const StepShape& step, ThreadPool& pool) {
  const HeadLayout layout = make_layout(classes);
  const auto words = static_cast<size_t>(layout.words());
  const auto clusters = static_cast<size_t>(layout.clusters());
  const auto dim = static_cast<size_t>(step.head_dim);
  const auto tokens = static_cast<size_t>(step.tokens);
  std::vector<float> word = random_values(words * dim, 1);
  std::vector<float> word_bias(words);
  std::vector<float> cluster = random_values(clusters * dim, 2);
  std::vector<float> cluster_bias(clusters);
  const std::vector<float> hidden = random_values(tokens * dim, 3);
  std::vector<float> hidden_gradient(tokens * dim);
  std::vector<float> cluster_gradient(clusters * dim);
  std::vector<float> cluster_bias_gradient(clusters);
  kernels::RowGradients<float> rows;
  kernels::LeafFactors<float> factors;
  const kernels::HeadShape shape{layout.words(), layout.shortlist(), step.head_dim, layout.cluster_offsets,
                                 layout.cluster_of_row};
  const kernels::HeadGradients<float> gradients{hidden_gradient.data(), &rows, cluster_gradient.data(),
                                                cluster_bias_gradient.data(), &factors};
  kernels::HeadWorkspace<float> workspace;
  kernels::StepHistory history;
  history.advance(1e-3);
  const kernels::OptimizerOptions sgd;
  std::vector<int32_t> ids(tokens);
  std::vector<int64_t> targets(tokens);
  const auto one_step = [&](int64_t window) {
    text.tokens.read(window * step.tokens % (text.tokens.size() - step.tokens), ids);
    for (size_t i = 0; i < tokens; ++i) targets[i] = layout.row_of_word[static_cast<size_t>(ids[i])];
    kernels::head_loss<float>(shape, {word.data(), word_bias.data(), cluster.data(), cluster_bias.data()},
                              hidden.data(), targets, 1e-3F, &gradients, workspace, pool);
    kernels::sum_of_squares(rows.values, pool);
    kernels::sum_of_squares(factors, pool);
    kernels::sum_of_squares(cluster_gradient, pool);
    kernels::update_rows(sgd, history, {word, {}, {}, {}, step.head_dim}, rows, 0, 1, pool);
    kernels::update_rows(sgd, history, {word_bias, {}, {}, {}, 1}, rows, step.head_dim, 1, pool);
    kernels::add_gradients(factors, -1e-3F, word.data(), word_bias.data(), pool);
    kernels::update(sgd, history, {cluster, {}, {}, {}, 0}, cluster_gradient, 1, pool);
    kernels::update(sgd, history, {cluster_bias, {}, {}, {}, 0}, cluster_bias_gradient, 1, pool);
  };
  one_step(0);
  double least = std::numeric_limits<double>::infinity();
  for (int round = 0; round < kRounds; ++round) {
    const double before = processor_seconds();
    for (int64_t window = 0; window < kWindows; ++window) one_step(7 * window);
    least = std::min(least, processor_seconds() - before);
  }
  return 1e9 * least / kWindows;
}

WordClasses learn(const Text& text, const StepShape& step, std::optional<int64_t> shortlist,
                  std::optional<int64_t> clusters, ThreadPool& pool) {
  ClassOptions options;
  if (text.vocabulary.size() > kMostLearned) options.method = "frequency";
  options.shortlist = shortlist;
  options.clusters = clusters;
  options.rounds = 3;
  return make_classes(options, text.vocabulary, step, {&text.tokens, &pool, [](const ExchangeProgress&) {}});
}

// --- Fit ---------------------------------------------------------------------------------------------------

constexpr size_t kCosts = 3;  // f, e, u

struct Measured {
  std::array<double, kCosts> amount;  // by how much each cost is multiplied
  double nanoseconds;
};

std::array<double, kCosts> amounts(const StepShape& step, const Vocabulary& vocabulary,
                                   const WordClasses& classes) {
  const auto dim = static_cast<double>(step.head_dim);
  const auto tokens = static_cast<double>(step.tokens);
  const std::vector<ClusterLoad> loads = cluster_loads(vocabulary, classes);
  double root = static_cast<double>(vocabulary.size()) + classes.clusters;
  for (const ClusterLoad& load : loads) root -= static_cast<double>(load.words);
  double logits = tokens * root;
  double rows = root;
  for (const ClusterLoad& load : loads) {
    if (load.words <= 1) continue;
    const double share = static_cast<double>(load.count) / static_cast<double>(vocabulary.total_count());
    const double hit = -std::expm1(tokens * std::log1p(-share));
    const auto words = static_cast<double>(load.words);
    logits += tokens * share * words;
    rows += hit * words;
  }
  return {6 * dim * logits, logits, rows * dim};
}

/// Costs with the least squares of relative errors, by normal equations; costs that would be negative are 0.
std::array<double, kCosts> fit(std::span<const Measured> all) {
  std::array<bool, kCosts> used;
  used.fill(true);
  while (true) {
    std::array<std::array<double, kCosts + 1>, kCosts> a{};
    for (const Measured& m : all) {
      for (size_t i = 0; i < kCosts; ++i) {
        for (size_t j = 0; j < kCosts; ++j) {
          a[i][j] += m.amount[i] * m.amount[j] / (m.nanoseconds * m.nanoseconds);
        }
        a[i][kCosts] += m.amount[i] / m.nanoseconds;
      }
    }
    for (size_t i = 0; i < kCosts; ++i) {
      if (used[i]) continue;
      for (size_t j = 0; j <= kCosts; ++j) a[i][j] = 0;
      for (size_t j = 0; j < kCosts; ++j) a[j][i] = 0;
      a[i][i] = 1;
    }
    for (size_t i = 0; i < kCosts; ++i) {
      for (size_t r = 0; r < kCosts; ++r) {
        if (r == i) continue;
        const double factor = a[r][i] / a[i][i];
        for (size_t j = i; j <= kCosts; ++j) a[r][j] -= factor * a[i][j];
      }
    }
    std::array<double, kCosts> costs{};
    size_t worst = kCosts;
    for (size_t i = 0; i < kCosts; ++i) {
      costs[i] = used[i] ? a[i][kCosts] / a[i][i] : 0;
      if (costs[i] < 0) worst = i;
    }
    if (worst == kCosts) return costs;
    used[worst] = false;
  }
}

void print_fit(const std::vector<Text>& texts, ThreadPool& pool) {
  std::vector<Measured> measured;
  std::printf("%8s %4s %5s %6s %6s %12s\n", "words", "D", "N", "K", "C", "µs a token");
  for (const Text& text : texts) {
    for (const StepShape step : {StepShape{128, 400}, {200, 400}, {200, 700}, {400, 1400}, {650, 700}}) {
      for (const auto& [shortlist, clusters] : std::vector<std::pair<int64_t, int64_t>>{
               {200, 50}, {200, 200}, {200, 800}, {1000, 100}, {1000, 400}, {4000, 100}, {3000, 1200}}) {
        if (shortlist + 2 * clusters > text.vocabulary.size()) continue;
        const WordClasses classes = learn(text, step, shortlist, clusters, pool);
        const double nanoseconds = measure(text, classes, step, pool);
        std::printf("%8lld %4lld %5lld %6lld %6lld %12.3f\n", static_cast<long long>(text.vocabulary.size()),
                    static_cast<long long>(step.head_dim), static_cast<long long>(step.tokens),
                    static_cast<long long>(shortlist), static_cast<long long>(clusters),
                    1e-3 * nanoseconds / static_cast<double>(step.tokens));
        std::fflush(stdout);
        measured.push_back({amounts(step, text.vocabulary, classes), nanoseconds});
      }
    }
  }
  const auto costs = fit(measured);
  double squares = 0;
  double largest = 0;
  for (const Measured& m : measured) {
    double sum = 0;
    for (size_t i = 0; i < kCosts; ++i) sum += costs[i] * m.amount[i];
    const double error = std::abs(sum / m.nanoseconds - 1);
    squares += error * error;
    largest = std::max(largest, error);
  }
  std::printf("\n%10s %10s %10s %12s %12s\n%10.2f %10.3f %10.3f %10.2f %% %10.2f %%\n", "1/f", "e", "u",
              "rms error", "largest", 1 / costs[0], costs[1], costs[2],
              100 * std::sqrt(squares / static_cast<double>(measured.size())), 100 * largest);
}

// --- Choice ------------------------------------------------------------------------------------------------

void print_choice(const Text& text, const StepShape& step, ThreadPool& pool) {
  const auto tokens = static_cast<double>(step.tokens);
  const auto show = [&](const char* name, std::optional<int64_t> shortlist, std::optional<int64_t> clusters) {
    const WordClasses classes = learn(text, step, shortlist, clusters, pool);
    const double expected = expected_step_cost(step, text.vocabulary, classes);
    const double nanoseconds = measure(text, classes, step, pool);
    int64_t listed = text.vocabulary.size();
    for (const ClusterLoad& load : cluster_loads(text.vocabulary, classes)) listed -= load.words;
    std::printf("%-6s %6lld %6d %10.3f %10.3f\n", name, static_cast<long long>(listed), classes.clusters,
                1e-3 * expected / tokens, 1e-3 * nanoseconds / tokens);
    std::fflush(stdout);
    return nanoseconds;
  };
  std::printf("%lld words, D %lld, N %lld; µs a token\n%-6s %6s %6s %10s %10s\n",
              static_cast<long long>(text.vocabulary.size()), static_cast<long long>(step.head_dim),
              static_cast<long long>(step.tokens), "", "K", "C", "expected", "measured");
  double best = std::numeric_limits<double>::infinity();
  for (const int64_t shortlist : {200, 400, 800, 1600, 3200}) {
    for (const int64_t clusters : {50, 100, 200, 400, 800, 1600, 3200}) {
      if (4 * clusters * clusters < text.vocabulary.size() ||
          clusters * clusters > 64 * text.vocabulary.size())
        continue;
      if (shortlist + 2 * clusters > text.vocabulary.size()) continue;
      best = std::min(best, show("", shortlist, clusters));
    }
  }
  const double chosen = show("auto", {}, {});
  std::printf("the choice takes %+.1f %% beside the best of the grid\n", 100 * (chosen / best - 1));
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  ThreadPool pool(1);
  StepShape step;
  const bool choice = arguments.size() > 3 && arguments.front() == "--choice";
  if (choice) {
    step = {std::stoll(arguments[1]), std::stoll(arguments[2])};
    arguments.erase(arguments.begin(), arguments.begin() + 3);
  }
  if (arguments.empty()) {
    std::fprintf(stderr, "usage: bench_head_cost [--choice D N] TEXT...\n");
    return 2;
  }
  std::vector<Text> texts;
  for (const std::string& path : arguments) texts.push_back(read_text(path));
  if (choice) {
    for (const Text& text : texts) print_choice(text, step, pool);
  } else {
    print_fit(texts, pool);
  }
}
