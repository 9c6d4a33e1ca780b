// How scikit-learn tells values apart, and where it parts them.

#pragma once

#include <algorithm>
#include <cstdint>

// What is added to a value before it is less than another one, in single precision.
constexpr float NEAR = 1e-7f;

// The code up to which records go left, where nobody is between two codes of a column; what each code stands for is in
// `values`, ascending.
inline std::int32_t code_between(const float* values, std::int32_t low, std::int32_t high) {
    const double threshold = values[low] / 2.0 + values[high] / 2.0;
    return static_cast<std::int32_t>(std::upper_bound(values + low, values + high, threshold) - values) - 1;
}
