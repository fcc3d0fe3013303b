#pragma once
#include <nlohmann/json.hpp>

namespace hsm::test {

/// Whether `value` is valid by `schema`: JSON Schema's type, const, enum, minimum, maximum, exclusiveMinimum,
/// exclusiveMaximum, pattern, minLength, items, minItems, anyOf, properties and additionalProperties.
/// std::invalid_argument for a keyword that it doesn't know, so that none is passed over.
bool is_valid(const nlohmann::json& value, const nlohmann::json& schema);

}  // namespace hsm::test
