#pragma once
#include <filesystem>
#include <string>

namespace hsm::test {

/// Text that the sample model's words come from, a few hundred words.
std::string sample_text();

/// Writes a model directory with a small vocabulary and drawn weights, as a finished training leaves it:
/// model.safetensors, vocabulary.txt, classes.txt, config.json, metrics.jsonl. Always the same.
void write_sample_model(const std::filesystem::path& directory);

}  // namespace hsm::test
