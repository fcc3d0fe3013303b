#include "decode/sampling.h"

#include <algorithm>

#include "decode/truncated_sampler.h"

namespace hsm {
namespace {

std::unique_ptr<WordSampler> make_sampler(Arena& arena, const SamplingOptions& options, RowEngine& engine,
                                          int64_t max_draws) {
  if (options.top_k > 0 || options.top_p < 1) {
    return std::make_unique<TruncatedSampler>(arena, engine, options, max_draws);
  }
  return engine.make_ancestral_sampler(options, max_draws);
}

uint64_t sequence_key(uint64_t input, size_t sample) {
  return input * static_cast<uint64_t>(kMostSamples) + static_cast<uint64_t>(sample);
}

}  // namespace

Sampling::Sampling(Arena& arena, const SamplingOptions& options, RowEngine& engine, int64_t slots)
    : options_(options),
      penalty_(options.length.length_penalty),
      end_of_sentence_(engine.end_of_sentence()),
      sampler_(make_sampler(arena, options, engine, slots * options.samples)),
      slots_(static_cast<size_t>(slots)),
      draws_(arena, slots * options.samples, "samples") {
  for (Slot& slot : slots_) {
    slot.samples = arena.take<Sample>(options.samples, "samples");
    slot.order = arena.take<int32_t>(options.samples, "samples");
    slot.sources = arena.take<RowSource>(options.samples, "samples");
    slot.tokens = arena.take<int32_t>(options.samples * options.length.max_length, "samples");
    slot.log_probs = arena.take<double>(options.samples * options.length.max_length, "samples");
  }
}

void Sampling::begin(int64_t index, const Prompt& prompt, const RowSource& source) {
  Slot& slot = slots_[static_cast<size_t>(index)];
  slot.input = static_cast<uint64_t>(prompt.number);
  slot.length = 0;
  slot.going = options_.length.max_length == 0 ? 0 : options_.samples;
  slot.rows = std::min<int64_t>(slot.going, 1);
  slot.sources[0] = source;
  for (size_t i = 0; i < slot.samples.size(); ++i) {
    slot.samples[i] = {0, 0, End::none};
    slot.order[i] = static_cast<int32_t>(i);
  }
}

std::span<const RowSource> Sampling::wanted(int64_t index) const {
  const Slot& slot = slots_[static_cast<size_t>(index)];
  return slot.sources.first(static_cast<size_t>(slot.rows));
}

void Sampling::step(std::span<const ActiveInput> active) {
  draws_.clear();
  for (const ActiveInput& input : active) {
    const Slot& slot = slots_[static_cast<size_t>(input.slot)];
    for (int64_t i = 0; i < slot.going; ++i) {
      WordDraw draw;
      draw.row = input.first_row + (slot.rows == 1 ? 0 : i);
      draw.end_allowed = slot.length >= options_.length.min_length;
      draw.sequence = sequence_key(slot.input, static_cast<size_t>(slot.order[static_cast<size_t>(i)]));
      draw.step = static_cast<uint64_t>(slot.length);
      draws_.push_back(draw);
    }
  }
  sampler_->run(draws_.all());
  size_t first = 0;
  for (const ActiveInput& input : active) {
    Slot& slot = slots_[static_cast<size_t>(input.slot)];
    const auto count = static_cast<size_t>(slot.going);
    take_in(slot, draws_.all().subspan(first, count));
    first += count;
  }
}

void Sampling::take_in(Slot& slot, std::span<const WordDraw> draws) {
  const bool last = slot.length + 1 == options_.length.max_length;
  int64_t going = 0;
  for (size_t i = 0; i < draws.size(); ++i) {
    const int32_t number = slot.order[i];
    Sample& sample = slot.samples[static_cast<size_t>(number)];
    if (draws[i].word == kNoWord) {
      sample.end = End::impossible;
      continue;
    }
    const auto place = static_cast<size_t>(number * options_.length.max_length + slot.length);
    slot.tokens[place] = draws[i].word;
    slot.log_probs[place] = draws[i].log_prob;
    sample.log_prob += draws[i].log_prob;
    ++sample.length;
    if (draws[i].word == end_of_sentence_) {
      sample.end = End::symbol;
    } else if (!last) {
      slot.order[static_cast<size_t>(going)] = number;
      slot.sources[static_cast<size_t>(going)] = {static_cast<int32_t>(draws[i].row), draws[i].word};
      ++going;
    }
  }
  ++slot.length;
  slot.going = going;
  slot.rows = going;
}

void Sampling::write(int64_t index, const Prompt& prompt, ResultSink& sink) {
  const Slot& slot = slots_[static_cast<size_t>(index)];
  sink.begin(prompt, std::count_if(slot.samples.begin(), slot.samples.end(),
                                   [](const Sample& sample) { return sample.end != End::impossible; }));
  for (size_t i = 0; i < slot.samples.size(); ++i) {
    const Sample& sample = slot.samples[i];
    if (sample.end == End::impossible) continue;
    const auto first = i * static_cast<size_t>(options_.length.max_length);
    const auto length = static_cast<size_t>(sample.length);
    sink.hypothesis(
        prompt, {sample.log_prob, penalty_.score(sample.log_prob, sample.length), sample.end == End::symbol,
                 slot.tokens.subspan(first, length), slot.log_probs.subspan(first, length)});
    tokens_written_ += sample.length;
  }
  sink.end(prompt);
}

}  // namespace hsm
