// SPDX-License-Identifier: GPL-2.0-or-later
//
// Reading and writing durations; see time_text.h.
#include "time_text.h"

#include <array>
#include <cstdint>
#include <optional>

namespace budget {

namespace {

constexpr std::string_view kForms =
    "minutes, minutes:seconds, hours:minutes:seconds, days-hours, days-hours:minutes, "
    "days-hours:minutes:seconds, or a number with s, m, h or d, such as 90s, 15m, 8h or 7d";

constexpr bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

// A number with digits alone; held at kLongestDuration + 1, above which nothing
// is accepted anyway.
std::optional<Seconds> parse_count(std::string_view text) {
    if (text.empty()) return std::nullopt;
    Seconds count = 0;
    for (char c : text) {
        if (!is_digit(c)) return std::nullopt;
        if (count <= kLongestDuration) count = count * 10 + (c - '0');
    }
    return count <= kLongestDuration ? count : kLongestDuration + 1;
}

// The fields between colons, at most three; nothing where one is no number.
struct Fields {
    std::array<Seconds, 3> value{};
    std::size_t count = 0;
};
std::optional<Fields> parse_fields(std::string_view text) {
    Fields fields;
    for (;;) {
        const std::size_t colon = text.find(':');
        const std::optional<Seconds> count = parse_count(text.substr(0, colon));
        if (!count || fields.count == fields.value.size()) return std::nullopt;
        fields.value[fields.count++] = *count;
        if (colon == std::string_view::npos) return fields;
        text.remove_prefix(colon + 1);
    }
}

Seconds suffix_unit(char suffix) {
    switch (suffix) {
        case 's':
            return 1;
        case 'm':
            return kMinute;
        case 'h':
            return kHour;
        case 'd':
            return kDay;
        default:
            return 0;
    }
}

// The duration, or nothing where the form is wrong. Fields are bounded by
// parse_count, so no product overflows.
std::optional<Seconds> parse_forms(std::string_view text) {
    if (text.empty()) return std::nullopt;
    if (const Seconds unit = suffix_unit(text.back()); unit > 0) {
        const std::optional<Seconds> count = parse_count(text.substr(0, text.size() - 1));
        return count ? std::optional(*count * unit) : std::nullopt;
    }
    if (const std::size_t dash = text.find('-'); dash != std::string_view::npos) {
        const std::optional<Seconds> days = parse_count(text.substr(0, dash));
        const std::optional<Fields> time = parse_fields(text.substr(dash + 1));
        if (!days || !time) return std::nullopt;
        return *days * kDay + time->value[0] * kHour + time->value[1] * kMinute + time->value[2];
    }
    const std::optional<Fields> time = parse_fields(text);
    if (!time) return std::nullopt;
    if (time->count == 3) return time->value[0] * kHour + time->value[1] * kMinute + time->value[2];
    return time->value[0] * kMinute + time->value[1];
}

std::string two_digits(std::uint64_t n) {
    const std::string digits = std::to_string(n);
    return n < 10 ? "0" + digits : digits;
}

}  // namespace

Result<Seconds> parse_duration(std::string_view text) {
    const std::optional<Seconds> duration = parse_forms(text);
    if (!duration) return Error{printable(text) + ": not a time; write " + std::string(kForms)};
    if (*duration > kLongestDuration)
        return Error{printable(text) + ": too long; a time of at most 36500 days is needed"};
    return *duration;
}

bool is_bare_number(std::string_view text) {
    for (char c : text)
        if (!is_digit(c)) return false;
    return !text.empty();
}

std::string format_duration(Seconds duration) {
    const bool negative = duration < 0;
    const std::uint64_t length =
        negative ? 0 - static_cast<std::uint64_t>(duration) : static_cast<std::uint64_t>(duration);
    const std::uint64_t days = length / kDay;
    const std::string time =
        two_digits(length / kHour % 24) + ":" + two_digits(length / kMinute % 60) + ":" + two_digits(length % kMinute);
    return (negative ? "-" : "") + (days > 0 ? std::to_string(days) + "-" : "") + time;
}

std::string printable(std::string_view text) {
    constexpr std::size_t kLongest = 64;
    std::string result;
    for (char c : text.substr(0, kLongest)) result += c >= ' ' && c <= '~' ? c : '?';
    if (text.size() > kLongest) result += "...";
    return result;
}

}  // namespace budget
