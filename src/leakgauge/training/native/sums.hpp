// How numpy adds up.

#pragma once

#include <algorithm>
#include <cstdint>

// The sum as numpy rounds it: of eight parts at a time, and of halves where there are many.
inline double summed(const double* values, std::int64_t n) {
    if (n > 128) {
        const std::int64_t half = n / 2 - n / 2 % 8;
        return summed(values, half) + summed(values + half, n - half);
    }
    double total = 0;
    std::int64_t i = 0;
    if (n >= 8) {
        double parts[8];
        std::copy_n(values, 8, parts);
        for (i = 8; i + 8 <= n; i += 8)
            for (std::int64_t lane = 0; lane < 8; ++lane) parts[lane] += values[i + lane];
        total = ((parts[0] + parts[1]) + (parts[2] + parts[3])) + ((parts[4] + parts[5]) + (parts[6] + parts[7]));
    }
    for (; i < n; ++i) total += values[i];
    return total;
}
