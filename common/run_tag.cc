// SPDX-License-Identifier: GPL-2.0-or-later
//
// Reading and writing the tag of a run; see run_tag.h. Words by blanks between
// two brackets, after the first one key=value each. Ratios in thousandths.
#include "run_tag.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>
#include <numeric>

namespace budget {

namespace {

constexpr std::string_view kOpening = "[budget";
constexpr Seconds kLongestContract = std::numeric_limits<std::uint32_t>::max();
constexpr std::int64_t kHighestRatioMillis = 999'999'999'999;  // more tells nobody anything

// From bracket to bracket; empty where the comment begins with no tag. Another word, such as
// [budgets], or a bracket or line before the closing bracket is text of others.
std::string_view leading_tag(std::string_view comment) {
    if (!comment.starts_with(kOpening)) return {};
    const std::size_t end = comment.find_first_of("[]\n", kOpening.size());
    if (end == std::string_view::npos || comment[end] != ']') return {};
    if (end > kOpening.size() && comment[kOpening.size()] != ' ') return {};
    return comment.substr(0, end + 1);
}

// Digits alone.
std::optional<std::uint64_t> read_number(std::string_view text) {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return number;
}

std::optional<RunClass> read_class(std::string_view text) {
    if (text == "allocated") return RunClass::kAllocated;
    if (text == "unallocated") return RunClass::kUnallocated;
    return std::nullopt;
}

constexpr std::string_view kNone = "none";

std::optional<Seconds> read_seconds(std::string_view text) {
    const std::optional<std::uint64_t> seconds = read_number(text);
    if (!seconds || *seconds > std::uint64_t{kLongestContract}) return std::nullopt;
    return static_cast<Seconds>(*seconds);
}

std::optional<Seconds> read_contract(std::string_view text) {
    return text == kNone ? std::optional(kNotAsked) : read_seconds(text);
}

// N or N/D GPUs, if that is a whole number of 1/5040 GPU.
std::optional<Rate> read_rate(std::string_view text) {
    const std::size_t slash = text.find('/');
    const bool whole = slash == std::string_view::npos;
    const std::optional<std::uint64_t> gpus = read_number(text.substr(0, slash));
    const std::uint64_t parts = whole ? 1 : read_number(text.substr(slash + 1)).value_or(0);
    if (!gpus || parts == 0) return std::nullopt;
    const Wide units = Wide{*gpus} * kGpu;
    if (units % parts != 0 || units / parts > std::numeric_limits<Rate>::max()) return std::nullopt;
    return static_cast<Rate>(units / parts);
}

constexpr std::string_view kReasons[] = {"unallocated", "claim", "priority"};  // by PreemptedFor::Reason

// 0.410: three decimals, always.
std::optional<std::int64_t> read_millis(std::string_view text) {
    const std::size_t point = text.find('.');
    if (point == std::string_view::npos || text.size() != point + 4) return std::nullopt;
    const std::optional<std::uint64_t> whole = read_number(text.substr(0, point));
    const std::optional<std::uint64_t> millis = read_number(text.substr(point + 1));
    if (!whole || !millis || *whole > kHighestRatioMillis / 1000) return std::nullopt;
    return static_cast<std::int64_t>(*whole * 1000 + *millis);
}

// Can stand in a tag as a word of its own.
bool is_word(std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
        return static_cast<unsigned char>(c) > ' ' && c != '\x7f' && c != '[' && c != ']';
    });
}

// What the words of a tag have said of a preemption; foreign or damaged words spoil it, and never the tag.
struct SaidOfPreemption {
    std::optional<std::uint64_t> job_id;
    std::size_t reason = std::size(kReasons);
    std::string_view account;
    std::optional<std::int64_t> preemptor, victim;
    std::optional<Seconds> over;

    void take(std::string_view key, std::string_view value) {
        if (key == "preempted_for") job_id = read_number(value);
        if (key == "reason")
            reason = static_cast<std::size_t>(std::find(std::begin(kReasons), std::end(kReasons), value) - kReasons);
        if (key == "account" && is_word(value)) account = value;
        if (key == "over") over = read_seconds(value);
        if (key != "ratios") return;
        const std::size_t slash = value.find('/');
        preemptor = read_millis(value.substr(0, slash));
        victim = slash == std::string_view::npos ? std::nullopt : read_millis(value.substr(slash + 1));
    }

    std::optional<PreemptedFor> whole() const {
        if (!job_id || *job_id > std::numeric_limits<std::uint32_t>::max() || reason == std::size(kReasons) || !over)
            return std::nullopt;
        const auto why = static_cast<PreemptedFor::Reason>(reason);
        if (why == PreemptedFor::Reason::kClaim && (!preemptor || !victim)) return std::nullopt;
        PreemptedFor told{.job_id = static_cast<std::uint32_t>(*job_id), .reason = why};
        told.account = account;
        told.over = *over;
        if (why != PreemptedFor::Reason::kClaim) return told;
        told.preemptor_ratio_millis = *preemptor;
        told.victim_ratio_millis = *victim;
        return told;
    }
};

// Takes a value that may stand once. False if it is the second, or cannot be read.
template <typename T>
bool take_once(std::optional<T>& place, std::optional<T> value) {
    if (place || !value) return false;
    place = value;
    return true;
}

// What the words of a tag have said so far.
struct Said {
    std::optional<RunClass> run_class;
    std::optional<Seconds> contract;
    std::optional<Rate> rate;
    SaidOfPreemption preemption;

    // False if the word makes the tag unreadable.
    bool take(std::string_view word) {
        const std::size_t equals = word.find('=');
        if (equals == std::string_view::npos) return false;
        const std::string_view key = word.substr(0, equals);
        const std::string_view value = word.substr(equals + 1);
        if (key == "class") return take_once(run_class, read_class(value));
        if (key == "contract") return take_once(contract, read_contract(value));
        if (key == "gpus") return take_once(rate, read_rate(value));
        preemption.take(key, value);
        return true;
    }

    // An allocated run has a contract, be it 0; an unallocated one has none.
    std::optional<RunTag> tag() const {
        if (!run_class || (*run_class == RunClass::kAllocated) != contract.has_value()) return std::nullopt;
        return RunTag{
            .run_class = *run_class, .contract = contract.value_or(0), .rate = rate, .preempted = preemption.whole()};
    }
};

// 8, or reduced 4/7.
std::string rate_text(Rate rate) {
    rate = std::max<Rate>(rate, 0);
    const Rate divisor = std::gcd(rate, kGpu);
    const std::string parts = divisor == kGpu ? std::string() : "/" + std::to_string(kGpu / divisor);
    return std::to_string(rate / divisor) + parts;
}

std::string preemption_text(const PreemptedFor& told) {
    std::string text = " preempted_for=" + std::to_string(told.job_id);
    text.append(" reason=").append(name_of(told.reason));
    if (is_word(told.account)) text += " account=" + told.account;
    if (told.reason == PreemptedFor::Reason::kClaim)
        text += " ratios=" + millis_text(told.preemptor_ratio_millis) + "/" + millis_text(told.victim_ratio_millis);
    return text + " over=" + std::to_string(std::clamp<Seconds>(told.over, 0, kLongestContract));
}

}  // namespace

std::string_view name_of(PreemptedFor::Reason reason) {
    return kReasons[static_cast<std::size_t>(reason)];
}

std::string millis_text(std::int64_t millis) {
    millis = std::clamp<std::int64_t>(millis, 0, kHighestRatioMillis);
    const std::string digits = std::to_string(millis % 1000 + 1000);
    return std::to_string(millis / 1000) + "." + digits.substr(1);
}

std::string to_string(const RunTag& tag) {
    std::string text(kOpening);
    if (tag.run_class == RunClass::kUnallocated)
        text += " class=unallocated";
    else if (tag.contract == kNotAsked)
        text.append(" class=allocated contract=").append(kNone);
    else
        text += " class=allocated contract=" + std::to_string(std::clamp<Seconds>(tag.contract, 0, kLongestContract));
    if (tag.rate) text += " gpus=" + rate_text(*tag.rate);
    if (tag.preempted) text += preemption_text(*tag.preempted);
    return text + "]";
}

std::optional<RunTag> read_tag(std::string_view comment) {
    std::string_view words = leading_tag(comment);
    if (words.empty()) return std::nullopt;
    words.remove_prefix(kOpening.size());
    words.remove_suffix(1);
    Said said;
    while (!words.empty()) {
        const std::string_view word = words.substr(0, words.find(' '));
        words.remove_prefix(std::min(word.size() + 1, words.size()));
        if (!word.empty() && !said.take(word)) return std::nullopt;
    }
    return said.tag();
}

std::string_view behind_tag(std::string_view comment) {
    const std::string_view tag = leading_tag(comment);
    comment.remove_prefix(tag.size());
    if (!tag.empty() && comment.starts_with(' ')) comment.remove_prefix(1);
    return comment;
}

std::string put_tag(const RunTag& tag, std::string_view comment) {
    const std::string_view text = behind_tag(comment);
    std::string result = to_string(tag);
    if (!text.empty()) result += ' ';
    return result.append(text);
}

}  // namespace budget
