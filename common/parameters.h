// SPDX-License-Identifier: GPL-2.0-or-later
//
// The site's choices, as written in PriorityParameters: key=value pairs by
// commas, lists of type:number by slashes. Each key is documented here and in
// slurm-budget(5). Also what follows from them: the weight of a GPU, a part of
// one, and the rate of a job (rule U1). Plain values; any thread.
#ifndef SLURM_BUDGET_COMMON_PARAMETERS_H
#define SLURM_BUDGET_COMMON_PARAMETERS_H

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "result.h"
#include "units.h"
#include "usage_window.h"

namespace budget {

// The longest quantum and minimum runtime, the heaviest GPU, and the largest lead and margin.
inline constexpr Seconds kLongestQuantum = 8 * kHour;
inline constexpr Seconds kLongestMinRuntime = 7 * kDay;
inline constexpr Rate kHeaviestGpu = 1000 * kGpu;
inline constexpr std::uint32_t kLargestLeadMillis = 16000;
inline constexpr std::uint32_t kLargestMarginMillis = 10000;

struct GpuWeight {
    std::string type;  // as in gres/gpu:TYPE, letter case ignored; "" is the default of untyped and unlisted ones
    Rate weight = kGpu;
    bool operator==(const GpuWeight&) const = default;
};

struct Parameters {
    Seconds window = 7 * kDay;                     // window=7-0, at most kMaxWindow; must have a unit
    WindowShape window_shape = WindowShape::kBox;  // window_shape=box|tapered
    std::uint32_t lead_millis = 0;                 // lead=0.25 (U5), thousandths
    std::uint32_t margin_millis = 50;              // margin=0.05 (P3), thousandths
    Seconds quantum = 15 * kMinute;                // quantum=15m (Q2)
    std::vector<GpuWeight> gpu_weight;             // gpu_weight=a100:1/h100:2.5/default:1
    enum class Band : std::uint8_t { kMiddle, kFirst, kLast };
    Band no_gpu_band = Band::kMiddle;  // no_gpu_band=middle|first|last (Q7)

    Seconds max_min_runtime = 8 * kHour;  // max_min_runtime=8h (C1); must have a unit
    enum class Missing : std::uint8_t { kRefuse, kUnallocated, kTime };
    Missing missing_min_runtime = Missing::kRefuse;  // missing_min_runtime=refuse|unallocated|TIME (C1)
    Seconds missing_time = 0;                        // that TIME, at most max_min_runtime; of kTime alone
    enum class NoBudget : std::uint8_t { kUnallocated, kRefuse };
    NoBudget no_budget = NoBudget::kUnallocated;  // no_budget=unallocated|refuse (C5)
    std::vector<std::string> exempt_partition;    // exempt_partition=debug/system (C8)
    std::vector<std::string> exempt_qos;          // exempt_qos=urgent (C8), letter case ignored
    std::string unallocated_qos;                  // unallocated_qos=NAME (C3); empty: none
    std::uint32_t unused_charge_millis = 0;       // unused_contract_charge=0.5 (U11), thousandths

    // All defaults for an empty text. Fails at the first bad pair with one line
    // that names the key, the value and the accepted form; an unknown or
    // repeated key is an error too.
    static Result<Parameters> parse(std::string_view text);
    bool operator==(const Parameters&) const = default;
};

// Are they the same but for letter case, as types of GPUs and names of QOS are compared?
bool same_name(std::string_view a, std::string_view b);

// All keys with their values; parse() gives an equal value back.
std::string to_string(const Parameters& parameters);

// A kind of GPU that Slurm counts: a TRES of the gres family.
struct TresKind {
    std::string name;  // "gpu", "shard", "mps", or another that the site counts as GPUs
    std::string type;  // "a100", "nvidia_a100_3g.40gb", ...; "" if untyped
};

// How many shards or mps units make one GPU on this cluster; 0: unknown.
struct GpuParts {
    std::uint64_t shards_per_gpu = 0;
    std::uint64_t mps_per_gpu = 0;
};

// What one unit weighs: weight / parts, kept as a fraction so that a count of
// units is rounded once.
struct UnitWeight {
    Rate weight = kGpu;
    std::uint64_t parts = 1;
    bool known = true;  // false: the default stands in for it, which the caller says loudly
};

// U1. A type that is listed weighs as listed. A MIG profile at the end of the
// type (1g.5gb, nvidia_a100_3g.40gb, 1g.10gb+me) weighs its compute slices in
// sevenths of the GPU it is cut from, by the type before it or the default; a
// GPU with other slices (A30) needs its profiles listed. A shard or mps unit
// weighs its part of a GPU. Unknown, and weighed as one whole GPU of the
// default: a GRES of another name, a shard or mps unit where it is not known
// how many make a GPU, and a type that is missing in a list without `default:`.
UnitWeight weight_of(const Parameters& parameters, const TresKind& kind, GpuParts parts);

// The rates of jobs from their counts of each kind.
class GpuRates {
   public:
    GpuRates() = default;
    GpuRates(const Parameters& parameters, std::span<const TresKind> kinds, GpuParts parts);

    // U1: counts[i] units of the i-th kind. A typed and an untyped count under
    // one name are the same GPUs: what the untyped one has more weighs the
    // default. Each kind is rounded once to 1/5040 GPU, never down to nothing;
    // the sum saturates. Missing counts are 0, counts without a kind ignored.
    Rate rate(std::span<const std::uint64_t> counts) const;

    // The kinds for which a default stands in, as NAME or NAME:TYPE, in the order given.
    const std::vector<std::string>& unknown() const { return unknown_; }

   private:
    struct Kind {
        UnitWeight unit;
        std::uint32_t untyped = 0;  // index of the untyped kind of its name; its own if untyped or there is none
    };
    std::vector<Kind> kinds_;
    std::vector<std::string> unknown_;
};

}  // namespace budget

#endif
