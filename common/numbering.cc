// SPDX-License-Identifier: GPL-2.0-or-later
//
// Keeping and dealing priority numbers; see numbering.h. Numbers n_i and n_j of
// places i < j leave room for those between if n_i - n_j >= j - i, that is,
// if n + place does not rise from i to j. So what can be kept is a longest
// subsequence of n + place that does not rise, found by patience sorting.
#include "numbering.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <vector>

namespace budget {

namespace {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

// The places whose numbers can stay, ascending. A number can stay only if the
// band has room for the places before it and behind it as well.
std::vector<std::uint32_t> places_to_keep(std::span<const std::uint32_t> numbers, NumberBand band) {
    const auto count = static_cast<std::uint32_t>(numbers.size());
    const std::uint64_t highest = std::uint64_t{band.high} - 1;  // of n + place
    const std::uint64_t lowest = std::uint64_t{band.low} + (count - 1);
    std::vector<std::uint64_t> last_value;  // by length - 1: the greatest possible last n + place
    std::vector<std::uint32_t> last_place;  // where that is
    std::vector<std::uint32_t> previous(count, kNone);
    for (std::uint32_t i = 0; i < count; ++i) {
        const std::uint64_t value = std::uint64_t{numbers[i]} + i;
        if (!band.contains(numbers[i]) || value > highest || value < lowest) continue;
        const auto at = std::upper_bound(last_value.begin(), last_value.end(), value, std::greater<>());
        const auto length = static_cast<std::size_t>(at - last_value.begin());
        if (length > 0) previous[i] = last_place[length - 1];
        if (at == last_value.end()) {
            last_value.push_back(value);
            last_place.push_back(i);
        } else {
            *at = value;
            last_place[length] = i;
        }
    }
    std::vector<std::uint32_t> keep(last_place.size());
    std::uint32_t place = last_place.empty() ? kNone : last_place.back();
    for (std::size_t i = keep.size(); i-- > 0; place = previous[place]) keep[i] = place;
    return keep;
}

// A run of places to be dealt, and the numbers around it. `before` and
// `behind` are the places with those numbers; beyond the ends -1 and n.
struct Gap {
    std::int64_t before = -1;
    std::int64_t behind = 0;
    std::int64_t above = 0;
    std::int64_t below = 0;
    std::int64_t count() const { return behind - before - 1; }
    double step() const { return static_cast<double>(above - below) / static_cast<double>(count() + 1); }
};

// Deals numbers[first, last) between above and below, both exclusive.
void spread(std::span<std::uint32_t> numbers, std::size_t first, std::size_t last, std::int64_t above,
            std::int64_t below) {
    const auto parts = static_cast<std::int64_t>(last - first) + 1;
    assert(above - below >= parts);
    for (std::size_t i = first; i < last; ++i)
        numbers[i] =
            static_cast<std::uint32_t>(above - (above - below) * static_cast<std::int64_t>(i - first + 1) / parts);
}

// The step that entries at the ends are given: small enough for many arrivals
// there, large enough for some later ones between two of them.
std::int64_t end_step(std::size_t count, NumberBand band) {
    constexpr std::size_t kFewest = std::size_t{1} << 14;
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(band.size() / (2 * std::max(count, kFewest))));
}

// The least step that a gap of so many places may be dealt with. If tight gaps
// were filled to the last number, each later arrival would have to move a
// long row of numbers; so wider gaps must be looser (as in list labelling), up
// to half of what an even deal over the band would give.
double least_step(std::int64_t count, double even_step) {
    return std::clamp(std::sqrt(static_cast<double>(count)), 1.0, std::max(1.0, even_step / 2));
}

// Gives up kept numbers beside gaps that are too tight, on whichever side makes
// more room. Amortised, an arrival moves few numbers; see numbering_test.
std::vector<std::uint32_t> loosen(std::span<const std::uint32_t> numbers, const std::vector<std::uint32_t>& keep,
                                  NumberBand band) {
    const auto gap_between = [&](std::int64_t before, std::int64_t behind) {
        return Gap{
            before, behind, before < 0 ? std::int64_t{band.high} : numbers[static_cast<std::size_t>(before)],
            behind == std::ssize(numbers) ? std::int64_t{band.low} - 1 : numbers[static_cast<std::size_t>(behind)]};
    };
    const double even_step = static_cast<double>(band.size()) / static_cast<double>(numbers.size() + 1);
    std::vector<std::uint32_t> result;
    const auto before = [&](std::size_t back) {
        return result.size() < back ? -1 : std::int64_t{result[result.size() - back]};
    };
    const auto behind = [&](std::size_t i) { return i < keep.size() ? std::int64_t{keep[i]} : std::ssize(numbers); };
    for (std::size_t next = 0; next <= keep.size(); ++next) {
        Gap gap = gap_between(before(1), behind(next));
        while (gap.count() > 0 && gap.step() < least_step(gap.count(), even_step)) {
            const bool can_rise = !result.empty();
            const bool can_fall = next < keep.size();
            if (!can_rise && !can_fall) break;
            const Gap rise = can_rise ? gap_between(before(2), gap.behind) : gap;
            const Gap fall = can_fall ? gap_between(gap.before, behind(next + 1)) : gap;
            if (!can_fall || (can_rise && rise.step() >= fall.step())) {
                result.pop_back();
                gap = rise;
            } else {
                ++next;
                gap = fall;
            }
        }
        if (next < keep.size()) result.push_back(keep[next]);
    }
    return result;
}

// Deals all numbers that are not kept, gap by gap.
void deal(std::span<std::uint32_t> numbers, const std::vector<std::uint32_t>& keep, NumberBand band) {
    const std::int64_t step = end_step(numbers.size(), band);
    std::int64_t above = band.high;
    std::size_t first = 0;
    for (std::size_t i = 0; i <= keep.size(); ++i) {
        const std::size_t last = i < keep.size() ? keep[i] : numbers.size();
        const auto parts = static_cast<std::int64_t>(last - first) + 1;
        std::int64_t top = above;
        std::int64_t bottom = i < keep.size() ? std::int64_t{numbers[last]} : std::int64_t{band.low} - 1;
        if (i == keep.size())
            bottom = std::max(bottom, top - step * parts);
        else if (i == 0)
            top = std::min(top, bottom + step * parts);
        if (first < last) spread(numbers, first, last, top, bottom);
        above = bottom;
        first = last + 1;
    }
}

// Deals all numbers anew over the middle half of the band, or all of it.
void deal_all(std::span<std::uint32_t> numbers, NumberBand band) {
    const std::uint32_t margin = band.size() / 2 > numbers.size() ? band.size() / 4 : 0;
    spread(numbers, 0, numbers.size(), std::int64_t{band.high} - margin, std::int64_t{band.low} + margin - 1);
}

}  // namespace

std::size_t renumber(std::span<std::uint32_t> numbers, NumberBand band) {
    if (numbers.empty()) return 0;
    assert(band.size() >= numbers.size());
    const std::vector<std::uint32_t> before(numbers.begin(), numbers.end());
    std::vector<std::uint32_t> keep = loosen(numbers, places_to_keep(numbers, band), band);
    if (keep.empty())
        deal_all(numbers, band);
    else
        deal(numbers, keep, band);
    std::size_t changed = 0;
    for (std::size_t i = 0; i < numbers.size(); ++i) changed += numbers[i] == before[i] ? 0 : 1;
    return changed;
}

}  // namespace budget
