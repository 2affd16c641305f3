// SPDX-License-Identifier: GPL-2.0-or-later
//
// The units of the policy: instants and durations in UTC seconds, GPU weight in
// parts of 1/5040 of a GPU (rule U1), and GPU time as their exact product in
// 128 bits. Sums saturate, they never wrap. Value types; no state, any thread.
#ifndef SLURM_BUDGET_COMMON_UNITS_H
#define SLURM_BUDGET_COMMON_UNITS_H

#include <algorithm>
#include <cstdint>
#include <limits>

namespace budget {

using Seconds = std::int64_t;  // an instant (UTC) or a duration
using Rate = std::int64_t;     // GPU weight in use, in 1/5040 GPU; never negative
using Wide = __int128;         // products and sums of the above

inline constexpr Rate kGpu = 5040;  // one GPU of weight 1
inline constexpr Seconds kMinute = 60;
inline constexpr Seconds kHour = 3600;
inline constexpr Seconds kDay = 24 * kHour;

// Beyond these a record is garbage and is taken to be at the limit. They leave
// room for 2^32 runs at the highest rate in the longest window: rate x seconds
// stays below 2^98 and rate x seconds^2 below 2^123.
inline constexpr Rate kMaxRate = Rate{1} << 40;                 // of one run: 218 million GPUs
inline constexpr Seconds kMaxInstant = (Seconds{1} << 40) - 1;  // in some 35,000 years
inline constexpr Seconds kMaxWindow = 366 * kDay;

inline constexpr Wide kWideMax = static_cast<Wide>(~static_cast<unsigned __int128>(0) >> 1);
inline constexpr Wide kWideMin = -kWideMax - 1;

// a + b, held at the ends of the range.
constexpr Wide saturating_add(Wide a, Wide b) {
    Wide sum = 0;
    if (!__builtin_add_overflow(a, b, &sum)) return sum;
    return a < 0 ? kWideMin : kWideMax;
}

// a * b, held at the ends of the range.
constexpr Wide saturating_mul(Wide a, Wide b) {
    Wide product = 0;
    if (!__builtin_mul_overflow(a, b, &product)) return product;
    return (a < 0) == (b < 0) ? kWideMax : kWideMin;
}

// A sum of rates as a rate, held at the highest.
constexpr Rate saturating_rate(Wide sum) {
    return static_cast<Rate>(std::clamp<Wide>(sum, 0, std::numeric_limits<Rate>::max()));
}

// GPU-seconds for people: GPU time in 1/5040 GPU-seconds, as a double.
constexpr double gpu_seconds(Wide gpu_time) {
    return static_cast<double>(gpu_time) / static_cast<double>(kGpu);
}

}  // namespace budget

#endif
