// SPDX-License-Identifier: GPL-2.0-or-later
//
// Reading and writing PriorityParameters, and GPU weights; see parameters.h.
// Numbers are read as decimal integers of a fixed scale: exact, no locale.
#include "parameters.h"

#include <algorithm>
#include <array>
#include <limits>

#include "time_text.h"

namespace budget {

namespace {

constexpr bool is_digit(char c) {
    return c >= '0' && c <= '9';
}
constexpr char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// The part up to the separator, which is taken off the front of rest; `more`
// tells whether there was one.
std::string_view take(std::string_view& rest, char separator, bool& more) {
    const std::size_t end = rest.find(separator);
    more = end != std::string_view::npos;
    const std::string_view part = rest.substr(0, end);
    rest = more ? rest.substr(end + 1) : std::string_view();
    return part;
}

// DIGITS or DIGITS.DIGITS in units of 10^-decimals, exactly. Nothing for any
// other form, more decimals, or a number above 10^9.
std::optional<std::int64_t> parse_decimal(std::string_view text, std::size_t decimals) {
    bool point = false;
    std::string_view fraction = text;
    const std::string_view whole = take(fraction, '.', point);
    if (whole.empty() || (point && fraction.empty()) || fraction.size() > decimals) return std::nullopt;
    std::int64_t value = 0;
    for (char c : whole) {
        if (!is_digit(c)) return std::nullopt;
        value = value * 10 + (c - '0');
        if (value > 1'000'000'000) return std::nullopt;
    }
    for (std::size_t i = 0; i < decimals; ++i) {
        const char c = i < fraction.size() ? fraction[i] : '0';
        if (!is_digit(c)) return std::nullopt;
        value = value * 10 + (c - '0');
    }
    return value;
}

// value x 10^-decimals without superfluous zeros.
std::string decimal_text(std::int64_t value, std::size_t decimals) {
    std::string digits = std::to_string(value);
    if (digits.size() <= decimals) digits.insert(0, decimals + 1 - digits.size(), '0');
    digits.insert(digits.size() - decimals, ".");
    while (digits.back() == '0') digits.pop_back();
    if (digits.back() == '.') digits.pop_back();
    return digits;
}

// A setter takes over a value, or says what is accepted instead.
using Complaint = std::optional<std::string>;

Complaint set_window(Parameters& parameters, std::string_view text) {
    const Result<Seconds> duration = parse_duration(text);
    if (is_bare_number(text) && (!duration || duration.value() > 0))
        return "a time with a unit is needed, such as 7d, 7-0 or 168h";
    if (!duration || duration.value() <= 0 || duration.value() > kMaxWindow)
        return "a time above 0 and at most 366 days is needed, such as 7d, 7-0 or 168h";
    parameters.window = duration.value();
    return std::nullopt;
}

Complaint set_window_shape(Parameters& parameters, std::string_view text) {
    if (text != "box" && text != "tapered") return "box or tapered is needed";
    parameters.window_shape = text == "box" ? WindowShape::kBox : WindowShape::kTapered;
    return std::nullopt;
}

Complaint set_lead(Parameters& parameters, std::string_view text) {
    const std::optional<std::int64_t> lead = parse_decimal(text, 3);
    if (!lead || *lead > kLargestLeadMillis)
        return "a number from 0 to 16 with at most three decimals is needed, such as 0.25";
    parameters.lead_millis = static_cast<std::uint32_t>(*lead);
    return std::nullopt;
}

Complaint set_margin(Parameters& parameters, std::string_view text) {
    const std::optional<std::int64_t> margin = parse_decimal(text, 3);
    if (!margin || *margin > kLargestMarginMillis)
        return "a number from 0 to 10 with at most three decimals is needed, such as 0.05";
    parameters.margin_millis = static_cast<std::uint32_t>(*margin);
    return std::nullopt;
}

Complaint set_quantum(Parameters& parameters, std::string_view text) {
    const Result<Seconds> duration = parse_duration(text);
    if (!duration || duration.value() <= 0 || duration.value() > kLongestQuantum)
        return "a time above 0 and at most 8 hours is needed, such as 15m or 0:15:00";
    parameters.quantum = duration.value();
    return std::nullopt;
}

Complaint set_no_gpu_band(Parameters& parameters, std::string_view text) {
    if (text == "middle")
        parameters.no_gpu_band = Parameters::Band::kMiddle;
    else if (text == "first")
        parameters.no_gpu_band = Parameters::Band::kFirst;
    else if (text == "last")
        parameters.no_gpu_band = Parameters::Band::kLast;
    else
        return "middle, first or last is needed";
    return std::nullopt;
}

constexpr std::string_view kDefaultType = "default";
constexpr std::size_t kWeightDecimals = 9;
constexpr std::int64_t kWeightScale = 1'000'000'000;

// The weight in 1/5040 GPU, rounded to the nearest; nothing unless it is at
// least one such unit and at most kHeaviestGpu.
std::optional<Rate> parse_weight(std::string_view text) {
    const std::optional<std::int64_t> number = parse_decimal(text, kWeightDecimals);
    if (!number || *number > kHeaviestGpu / kGpu * kWeightScale) return std::nullopt;
    const Rate weight = (*number * kGpu + kWeightScale / 2) / kWeightScale;
    return weight > 0 ? std::optional(weight) : std::nullopt;
}

// The fewest decimals that parse_weight reads back as the same weight; five
// are always enough, as 10^-5 is less than 1/5040.
std::string weight_text(Rate weight) {
    std::string text;
    std::int64_t scale = 1;
    for (std::size_t decimals = 0; decimals <= 5; ++decimals, scale *= 10) {
        text = decimal_text((weight * scale + kGpu / 2) / kGpu, decimals);
        if (parse_weight(text) == weight) break;
    }
    return text;
}

bool is_type_name(std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
        return is_digit(c) || (lower(c) >= 'a' && lower(c) <= 'z') || c == '.' || c == '-' || c == '_' || c == '+';
    });
}

Complaint set_gpu_weight(Parameters& parameters, std::string_view text) {
    std::vector<GpuWeight> weights;
    for (bool more = true; more;) {
        const std::string_view item = take(text, '/', more);
        bool colon = false;
        std::string_view number = item;
        const std::string_view type = take(number, ':', colon);
        if (!colon || !is_type_name(type))
            return "a list of type:number by slashes is needed, such as a100:1/h100:2.5/default:1";
        const std::optional<Rate> weight = parse_weight(number);
        if (!weight)
            return "the weight of " + printable(type) +
                   " must be a number from 1/5040 (0.0002) to 1000 with at most nine decimals, such as 2.5";
        GpuWeight entry{same_name(type, kDefaultType) ? std::string() : std::string(type), *weight};
        for (const GpuWeight& other : weights)
            if (same_name(other.type, entry.type))
                return printable(type) + " is listed twice; each type needs one weight";
        weights.push_back(std::move(entry));
    }
    parameters.gpu_weight = std::move(weights);
    return std::nullopt;
}

Complaint set_max_min_runtime(Parameters& parameters, std::string_view text) {
    const Result<Seconds> duration = parse_duration(text);
    if (is_bare_number(text) && (!duration || duration.value() > 0))
        return "a time with a unit is needed, such as 8h, 8:00:00 or 1-0";
    if (!duration || duration.value() <= 0 || duration.value() > kLongestMinRuntime)
        return "a time above 0 and at most 7 days is needed, such as 8h, 8:00:00 or 1-0";
    parameters.max_min_runtime = duration.value();
    return std::nullopt;
}

// Whether it is at most max_min_runtime shows when all pairs have been read.
Complaint set_missing_min_runtime(Parameters& parameters, std::string_view text) {
    if (text == "refuse" || text == "unallocated") {
        parameters.missing_min_runtime =
            text == "refuse" ? Parameters::Missing::kRefuse : Parameters::Missing::kUnallocated;
        return std::nullopt;
    }
    const Result<Seconds> duration = parse_duration(text);
    if (!duration || duration.value() <= 0 || is_bare_number(text))
        return "refuse, unallocated, or a time above 0 with a unit is needed, such as 1h or 1:00:00";
    parameters.missing_min_runtime = Parameters::Missing::kTime;
    parameters.missing_time = duration.value();
    return std::nullopt;
}

Complaint set_no_budget(Parameters& parameters, std::string_view text) {
    if (text != "unallocated" && text != "refuse") return "unallocated or refuse is needed";
    parameters.no_budget = text == "refuse" ? Parameters::NoBudget::kRefuse : Parameters::NoBudget::kUnallocated;
    return std::nullopt;
}

bool is_name(std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
}

Complaint set_names(std::vector<std::string>& names, std::string_view text) {
    std::vector<std::string> list;
    for (bool more = true; more;) {
        const std::string_view name = take(text, '/', more);
        if (!is_name(name)) return "a list of names by slashes is needed, such as debug/system";
        if (std::find(list.begin(), list.end(), name) != list.end())
            return printable(name) + " is listed twice; each name may stand once";
        list.emplace_back(name);
    }
    names = std::move(list);
    return std::nullopt;
}

Complaint set_exempt_partition(Parameters& parameters, std::string_view text) {
    return set_names(parameters.exempt_partition, text);
}

Complaint set_exempt_qos(Parameters& parameters, std::string_view text) {
    return set_names(parameters.exempt_qos, text);
}

Complaint set_unallocated_qos(Parameters& parameters, std::string_view text) {
    if (!is_name(text) || text.find('/') != std::string_view::npos)
        return "the name of one QOS is needed, such as free";
    parameters.unallocated_qos = text;
    return std::nullopt;
}

Complaint set_unused_contract_charge(Parameters& parameters, std::string_view text) {
    const std::optional<std::int64_t> part = parse_decimal(text, 3);
    if (!part || *part > 1000) return "a number from 0 to 1 with at most three decimals is needed, such as 0.5";
    parameters.unused_charge_millis = static_cast<std::uint32_t>(*part);
    return std::nullopt;
}

struct Key {
    std::string_view name;
    Complaint (*set)(Parameters&, std::string_view);
};
constexpr std::array kKeys = {
    Key{"window", set_window},
    Key{"window_shape", set_window_shape},
    Key{"lead", set_lead},
    Key{"margin", set_margin},
    Key{"quantum", set_quantum},
    Key{"gpu_weight", set_gpu_weight},
    Key{"no_gpu_band", set_no_gpu_band},
    Key{"max_min_runtime", set_max_min_runtime},
    Key{"missing_min_runtime", set_missing_min_runtime},
    Key{"no_budget", set_no_budget},
    Key{"exempt_partition", set_exempt_partition},
    Key{"exempt_qos", set_exempt_qos},
    Key{"unallocated_qos", set_unallocated_qos},
    Key{"unused_contract_charge", set_unused_contract_charge},
};

// Letters to insert, delete or replace to get from a to b; letter case is free.
std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
    for (std::size_t i = 0; i < a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i + 1;
        for (std::size_t j = 0; j < b.size(); ++j) {
            const std::size_t replaced = diagonal + (lower(a[i]) == lower(b[j]) ? 0 : 1);
            diagonal = row[j + 1];
            row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
        }
    }
    return row[b.size()];
}

Error unknown_key(std::string_view name) {
    std::string known;
    const Key* nearest = nullptr;
    std::size_t distance = 3;  // farther than that is no slip of the pen
    for (const Key& key : kKeys) {
        known += (known.empty() ? "" : ", ") + std::string(key.name);
        if (name.size() > 2 * key.name.size()) continue;
        const std::size_t d = edit_distance(name, key.name);
        if (d >= distance || d >= key.name.size()) continue;
        nearest = &key;
        distance = d;
    }
    const std::string guess = nearest != nullptr ? "did you mean " + std::string(nearest->name) + "? " : std::string();
    return Error{printable(name) + ": unknown key; " + guess + "known are " + known};
}

// What the pairs say against each other.
Complaint contradiction(const Parameters& parameters) {
    if (parameters.missing_min_runtime != Parameters::Missing::kTime ||
        parameters.missing_time <= parameters.max_min_runtime)
        return std::nullopt;
    return "missing_min_runtime=" + format_duration(parameters.missing_time) +
           ": a time of at most max_min_runtime is needed, which is " + format_duration(parameters.max_min_runtime);
}

}  // namespace

bool same_name(std::string_view a, std::string_view b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return lower(x) == lower(y); });
}

Result<Parameters> Parameters::parse(std::string_view text) {
    Parameters parameters;
    std::array<bool, kKeys.size()> seen{};
    for (bool more = !text.empty(); more;) {
        const std::string_view pair = take(text, ',', more);
        bool equals = false;
        std::string_view value = pair;
        const std::string_view name = take(value, '=', equals);
        if (pair.empty()) return Error{"an empty item between commas; key=value is needed, such as window=7d"};
        const auto key = std::find_if(kKeys.begin(), kKeys.end(), [&](const Key& k) { return k.name == name; });
        if (key == kKeys.end()) return unknown_key(name);
        if (!equals) return Error{printable(name) + ": has no value; " + printable(name) + "=value is needed"};
        bool& repeated = seen[static_cast<std::size_t>(key - kKeys.begin())];
        if (repeated)
            return Error{printable(pair) + ": " + printable(name) + " is given twice; each key may stand once"};
        repeated = true;
        if (const Complaint complaint = key->set(parameters, value)) return Error{printable(pair) + ": " + *complaint};
    }
    if (const Complaint complaint = contradiction(parameters)) return Error{*complaint};
    return parameters;
}

namespace {

std::string missing_text(const Parameters& parameters) {
    switch (parameters.missing_min_runtime) {
        case Parameters::Missing::kUnallocated:
            return "unallocated";
        case Parameters::Missing::kTime:
            return format_duration(parameters.missing_time);
        case Parameters::Missing::kRefuse:
            break;
    }
    return "refuse";
}

// ,KEY=a/b, or nothing where there are no names.
std::string list_text(std::string_view key, const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "," + std::string(key) + "=" : "/") + name;
    return text;
}

std::string contract_text(const Parameters& parameters) {
    std::string text = ",max_min_runtime=" + format_duration(parameters.max_min_runtime);
    text += ",missing_min_runtime=" + missing_text(parameters);
    text += parameters.no_budget == Parameters::NoBudget::kRefuse ? ",no_budget=refuse" : ",no_budget=unallocated";
    text += list_text("exempt_partition", parameters.exempt_partition);
    text += list_text("exempt_qos", parameters.exempt_qos);
    if (!parameters.unallocated_qos.empty()) text += ",unallocated_qos=" + parameters.unallocated_qos;
    return text + ",unused_contract_charge=" + decimal_text(parameters.unused_charge_millis, 3);
}

}  // namespace

std::string to_string(const Parameters& parameters) {
    constexpr std::array<std::string_view, 3> kBandNames = {"middle", "first", "last"};
    std::string text = "window=" + format_duration(parameters.window);
    text += parameters.window_shape == WindowShape::kBox ? ",window_shape=box" : ",window_shape=tapered";
    text += ",lead=" + decimal_text(parameters.lead_millis, 3);
    text += ",margin=" + decimal_text(parameters.margin_millis, 3);
    text += ",quantum=" + format_duration(parameters.quantum);
    char separator = '=';
    if (!parameters.gpu_weight.empty()) text += ",gpu_weight";
    for (const GpuWeight& entry : parameters.gpu_weight) {
        text +=
            separator + (entry.type.empty() ? std::string(kDefaultType) : entry.type) + ":" + weight_text(entry.weight);
        separator = '/';
    }
    text += ",no_gpu_band=" + std::string(kBandNames[static_cast<std::size_t>(parameters.no_gpu_band)]);
    return text + contract_text(parameters);
}

namespace {

std::optional<Rate> listed_weight(const Parameters& parameters, std::string_view type) {
    for (const GpuWeight& entry : parameters.gpu_weight)
        if (same_name(entry.type, type)) return entry.weight;
    return std::nullopt;
}

// A GPU of this type, whole; the default, and unknown, where a list misses it.
UnitWeight whole_gpu(const Parameters& parameters, std::string_view type) {
    const std::optional<Rate> fallback = listed_weight(parameters, "");
    const std::optional<Rate> listed = listed_weight(parameters, type);
    const bool known = listed || fallback || type.empty() || parameters.gpu_weight.empty();
    return {.weight = listed.value_or(fallback.value_or(kGpu)), .parts = 1, .known = known};
}

// Compute slices of a full GPU in NVIDIA's naming of MIG profiles.
constexpr int kMigSlices = 7;

// [BASE_]Ng.Mgb[+LETTERS] at the end of a type name.
struct MigProfile {
    int slices = 0;
    std::string_view base;  // the GPU it is cut from; empty if the name does not say
};
std::optional<MigProfile> mig_profile(std::string_view type) {
    const std::size_t attributes = type.find('+');
    std::string_view name = type.substr(0, attributes);
    if (attributes != std::string_view::npos && attributes + 1 == type.size()) return std::nullopt;
    if (name.size() < 3 || !same_name(name.substr(name.size() - 2), "gb")) return std::nullopt;
    name.remove_suffix(2);
    const std::size_t memory = name.size();
    while (!name.empty() && is_digit(name.back())) name.remove_suffix(1);
    if (name.size() == memory || name.size() < 3) return std::nullopt;
    if (!same_name(name.substr(name.size() - 2), "g.")) return std::nullopt;
    name.remove_suffix(2);
    const int slices = name.back() - '0';
    if (slices < 1 || slices > kMigSlices) return std::nullopt;
    name.remove_suffix(1);
    if (name.empty()) return MigProfile{slices, {}};
    if (name.back() != '_' && name.back() != '-' && name.back() != '.') return std::nullopt;
    name.remove_suffix(1);
    return MigProfile{slices, name};
}

UnitWeight gpu_or_slice(const Parameters& parameters, std::string_view type) {
    if (const std::optional<Rate> listed = listed_weight(parameters, type))
        return {.weight = *listed, .parts = 1, .known = true};
    const std::optional<MigProfile> profile = mig_profile(type);
    if (!profile) return whole_gpu(parameters, type);
    UnitWeight unit = whole_gpu(parameters, profile->base);
    unit.weight *= profile->slices;
    unit.parts = kMigSlices;
    return unit;
}

Rate weigh(const UnitWeight& unit, std::uint64_t count) {
    if (count == 0) return 0;
    const Wide parts = static_cast<Wide>(unit.parts);
    const Wide rate = (static_cast<Wide>(count) * unit.weight * 2 + parts) / (2 * parts);
    return static_cast<Rate>(std::clamp<Wide>(rate, 1, std::numeric_limits<Rate>::max()));
}

}  // namespace

UnitWeight weight_of(const Parameters& parameters, const TresKind& kind, GpuParts parts) {
    if (same_name(kind.name, "gpu")) return gpu_or_slice(parameters, kind.type);
    std::uint64_t per_gpu = 0;
    if (same_name(kind.name, "shard")) per_gpu = parts.shards_per_gpu;
    if (same_name(kind.name, "mps")) per_gpu = parts.mps_per_gpu;
    if (per_gpu == 0) {
        UnitWeight unit = whole_gpu(parameters, "");
        unit.known = false;
        return unit;
    }
    UnitWeight unit = gpu_or_slice(parameters, kind.type);
    if (__builtin_mul_overflow(unit.parts, per_gpu, &unit.parts))
        unit.parts = std::numeric_limits<std::uint64_t>::max();
    return unit;
}

GpuRates::GpuRates(const Parameters& parameters, std::span<const TresKind> kinds, GpuParts parts) {
    for (const TresKind& kind : kinds) {
        const auto index = static_cast<std::uint32_t>(kinds_.size());
        const auto untyped = std::find_if(kinds.begin(), kinds.end(), [&](const TresKind& other) {
            return other.type.empty() && same_name(other.name, kind.name);
        });
        Kind entry{weight_of(parameters, kind, parts), index};
        if (untyped != kinds.end() && !kind.type.empty())
            entry.untyped = static_cast<std::uint32_t>(untyped - kinds.begin());
        if (!entry.unit.known) unknown_.push_back(kind.type.empty() ? kind.name : kind.name + ":" + kind.type);
        kinds_.push_back(entry);
    }
}

Rate GpuRates::rate(std::span<const std::uint64_t> counts) const {
    const std::size_t size = std::min(counts.size(), kinds_.size());
    Rate sum = 0;
    for (std::size_t i = 0; i < size; ++i) {
        std::uint64_t count = counts[i];
        for (std::size_t j = 0; j < size; ++j)
            if (j != i && kinds_[j].untyped == i) count -= std::min(count, counts[j]);
        if (__builtin_add_overflow(sum, weigh(kinds_[i].unit, count), &sum)) return std::numeric_limits<Rate>::max();
    }
    return sum;
}

}  // namespace budget
