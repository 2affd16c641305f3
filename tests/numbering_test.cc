// SPDX-License-Identifier: GPL-2.0-or-later
//
// Tests of common/numbering (rule Q6): rows of small bands by hand, properties on
// random queues, and how many numbers steady arrivals move in the long run.
#include "common/numbering.h"

#include <algorithm>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "tests/check_main.h"

namespace {

using namespace budget;

constexpr NumberBand kWide{(1U << 30) + (1U << 28), 1U << 31};

std::string text(const std::vector<std::uint32_t>& numbers) {
    std::string line;
    for (std::uint32_t n : numbers) line += (line.empty() ? "" : " ") + std::to_string(n);
    return line;
}

std::vector<std::uint32_t> numbers_of(const char* line) {
    std::istringstream stream(line);
    std::vector<std::uint32_t> numbers;
    for (std::uint32_t n = 0; stream >> n;) numbers.push_back(n);
    return numbers;
}

struct NumberRow {
    const char* why;
    NumberBand band;
    const char* before;
    const char* after;
    std::size_t changed;
};

const NumberRow kRows[] = {
    {"Q6: nobody to number", {10, 20}, "", "", 0},
    {"Q6: numbers that fall stay", {10, 20}, "19 15 10", "19 15 10", 0},
    {"Q6: one that has none goes into the middle of the gap", {10, 20}, "18 0 12", "18 15 12", 1},
    {"Q6: two share the gap evenly", {10, 30}, "28 0 0 13", "28 23 18 13", 2},
    {"Q6: of two that changed places one moves", {10, 30}, "20 15 25 12", "20 15 14 12", 1},
    {"Q6: 0, an operator's number and one of another band are no numbers",
     {10, 30},
     "28 4000000000 5 13",
     "28 23 18 13",
     2},
    {"Q6: the band is half open: low is a number, high is not", {10, 20}, "20 10", "11 10", 1},
    {"Q6: a newcomer at the end stays near the last", {1, 1U << 20}, "1000 0", "1000 969", 1},
    {"Q6: a newcomer at the front stays near the first", {1, 1U << 20}, "0 1000", "1031 1000", 1},
    {"Q6: without any number all go to the middle half of the band", {1, 401}, "0 0 0", "251 201 151", 3},
    {"Q6: a band with no number to spare", {10, 14}, "0 0 0 0", "13 12 11 10", 4},
    {"Q6: a gap without room: the fewest move that make some", {10, 20}, "15 14 0 13", "15 14 13 12", 2},
    {"Q6: at the lower end without room all are dealt anew", {10, 20}, "11 10 0", "17 15 13", 3},
    {"Q6: at the upper end without room all are dealt anew", {10, 20}, "0 19 18", "17 15 13", 3},
    {"Q6: equal numbers are not in order", {10, 30}, "20 20 20", "22 21 20", 2},
    {"Q6: a number with too little below it for those behind cannot stay", {10, 14}, "11 0 0", "13 12 11", 3},
    {"Q6: a number with too little above it for those before cannot stay", {10, 14}, "0 0 13", "13 12 11", 3},
};

START_TEST(number_row) {
    const NumberRow& row = kRows[_i];
    std::vector<std::uint32_t> numbers = numbers_of(row.before);
    const std::size_t changed = renumber(numbers, row.band);
    ck_assert_msg(text(numbers) == row.after, "%s: expected \"%s\", got \"%s\"", row.why, row.after,
                  text(numbers).c_str());
    ck_assert_msg(changed == row.changed, "%s: expected %zu changes, got %zu", row.why, row.changed, changed);
}
END_TEST

// What must hold of every result. (A passing ck_assert writes to a pipe: not for
// every number.)
void check_result(const std::vector<std::uint32_t>& before, const std::vector<std::uint32_t>& after,
                  std::size_t changed, NumberBand band, std::uint64_t seed) {
    const auto which = static_cast<unsigned long long>(seed);
    std::size_t differ = 0;
    for (std::size_t i = 0; i < after.size(); ++i) {
        if (!band.contains(after[i])) ck_abort_msg("Q6: queue %llu leaves the band", which);
        if (i > 0 && after[i - 1] <= after[i]) ck_abort_msg("Q6: queue %llu does not fall strictly", which);
        differ += after[i] != before[i] ? 1 : 0;
    }
    ck_assert_msg(differ == changed, "Q6: queue %llu reports %zu changes of %zu", which, changed, differ);
    std::vector<std::uint32_t> again = after;
    ck_assert_msg(renumber(again, band) == 0 && again == after, "Q6: queue %llu changes again when nothing has", which);
}

// The length of the longest subsequence that can stay: falling, inside the
// band, and with room for the others. By trying all pairs.
std::size_t longest_that_can_stay(const std::vector<std::uint32_t>& numbers, NumberBand band) {
    const std::size_t count = numbers.size();
    std::vector<std::size_t> length(count, 0);
    std::size_t longest = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint32_t n = numbers[i];
        if (!band.contains(n) || n - band.low < count - 1 - i || band.high - 1 - n < i) continue;
        length[i] = 1;
        for (std::size_t j = 0; j < i; ++j)
            if (length[j] > 0 && numbers[j] > n && numbers[j] - n >= i - j)
                length[i] = std::max(length[i], length[j] + 1);
        longest = std::max(longest, length[i]);
    }
    return longest;
}

std::uint64_t seeds(int whole) {
    return static_cast<std::uint64_t>(rounds(whole));
}

START_TEST(random_queues_in_narrow_bands) {
    for (std::uint64_t seed = 0; seed < seeds(3000); ++seed) {
        std::mt19937_64 random(seed);
        const std::size_t count = 1 + random() % 12;
        const auto size = static_cast<std::uint32_t>(count + random() % 30);
        const NumberBand band{5, 5 + size};
        std::vector<std::uint32_t> numbers(count);
        for (std::uint32_t& n : numbers) n = static_cast<std::uint32_t>(random() % (size + 10));
        const std::vector<std::uint32_t> before = numbers;
        const std::size_t changed = renumber(numbers, band);
        check_result(before, numbers, changed, band, seed);
        const std::size_t fewest = count - longest_that_can_stay(before, band);
        const bool never_loosened = size <= 2 * (count + 1);
        ck_assert_msg(never_loosened ? changed == fewest : changed >= fewest,
                      "Q6: queue %llu changes %zu, %zu would do", static_cast<unsigned long long>(seed), changed,
                      fewest);
    }
}
END_TEST

START_TEST(as_few_as_possible_change_where_there_is_room) {
    for (std::uint64_t seed = 0; seed < seeds(2000); ++seed) {
        std::mt19937_64 random(seed);
        const std::size_t count = 1 + random() % 40;
        std::vector<std::uint32_t> numbers(count);
        for (std::uint32_t& n : numbers)
            n = random() % 8 == 0 ? 0 : kWide.low + static_cast<std::uint32_t>(1 + random() % 700) * (1U << 20);
        const std::vector<std::uint32_t> before = numbers;
        const std::size_t changed = renumber(numbers, kWide);
        check_result(before, numbers, changed, kWide, seed);
        const std::size_t fewest = count - longest_that_can_stay(before, kWide);
        ck_assert_msg(changed == fewest, "Q6: queue %llu changes %zu, %zu would do",
                      static_cast<unsigned long long>(seed), changed, fewest);
    }
}
END_TEST

// A queue that grows to a thousand, then as many leave as arrive (if rounds() lets it come to that).
enum class Where { kFront, kBehindTen, kMiddle, kBeforeTen, kEnd, kAnywhere };

std::size_t position(Where where, std::size_t size, std::mt19937_64& random) {
    switch (where) {
        case Where::kFront:
            return 0;
        case Where::kBehindTen:
            return std::min<std::size_t>(10, size);
        case Where::kMiddle:
            return size / 2;
        case Where::kBeforeTen:
            return size - std::min<std::size_t>(10, size);
        case Where::kEnd:
            return size;
        case Where::kAnywhere:
            break;
    }
    return random() % (size + 1);
}

struct Flow {
    const char* why;
    Where arrive;
    Where leave;
    double most;  // numbers changed for each arrival on average, at the most
};

const Flow kFlows[] = {
    {"Q6: arrivals at the end, starts from the front", Where::kEnd, Where::kFront, 2},
    {"Q6: arrivals at the front, losses at the end", Where::kFront, Where::kEnd, 2},
    {"Q6: arrivals in the middle, losses anywhere", Where::kMiddle, Where::kAnywhere, 12},
    {"Q6: arrivals behind the first ten, starts from the front", Where::kBehindTen, Where::kFront, 2},
    {"Q6: arrivals before the last ten, losses at the end", Where::kBeforeTen, Where::kEnd, 2},
    {"Q6: arrivals anywhere, losses anywhere", Where::kAnywhere, Where::kAnywhere, 2},
};

START_TEST(steady_arrivals_move_few) {
    const Flow& flow = kFlows[_i];
    const auto passes = static_cast<std::size_t>(rounds(8'000));
    constexpr std::size_t kLength = 1000;
    std::mt19937_64 random(3);
    std::vector<std::uint32_t> queue;
    std::size_t changed = 0;
    for (std::size_t pass = 0; pass < passes; ++pass) {
        queue.insert(queue.begin() + static_cast<std::ptrdiff_t>(position(flow.arrive, queue.size(), random)), 0);
        const std::size_t leave = std::min(position(flow.leave, queue.size(), random), queue.size() - 1);
        if (queue.size() > kLength) queue.erase(queue.begin() + static_cast<std::ptrdiff_t>(leave));
        changed += renumber(queue, kWide);
    }
    check_result(queue, queue, 0, kWide, 0);
    const double average = static_cast<double>(changed) / static_cast<double>(passes);
    ck_assert_msg(average <= flow.most, "%s: %.2f numbers change for each arrival", flow.why, average);
}
END_TEST

START_TEST(a_queue_that_grows_keeps_its_numbers) {
    std::vector<std::uint32_t> queue;
    std::size_t changed = 0;
    const int arrivals = rounds(3'000);
    for (int pass = 0; pass < arrivals; ++pass) {
        queue.push_back(0);
        changed += renumber(queue, kWide);
    }
    ck_assert_msg(changed == static_cast<std::size_t>(arrivals),
                  "Q6: only newcomers at the end get numbers, but %zu changes were made for %d", changed, arrivals);
}
END_TEST

START_TEST(a_hundred_thousand) {
    std::mt19937_64 random(9);
    std::vector<std::uint32_t> queue(100'000, 0);
    renumber(queue, kWide);
    for (int i = 0; i < 1000; ++i) std::swap(queue[random() % queue.size()], queue[random() % queue.size()]);
    const std::vector<std::uint32_t> before = queue;
    const std::size_t changed = renumber(queue, kWide);
    check_result(before, queue, changed, kWide, 0);
    ck_assert_msg(changed <= 2000, "Q6: 1000 exchanges change at most 2000 numbers, not %zu", changed);
}
END_TEST

Suite* numbering_suite() {
    Suite* suite = suite_create("numbering");
    TCase* tcase = tcase_create("numbering");
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, number_row, 0, std::ssize(kRows));
    tcase_add_test(tcase, random_queues_in_narrow_bands);
    tcase_add_test(tcase, as_few_as_possible_change_where_there_is_room);
    tcase_add_loop_test(tcase, steady_arrivals_move_few, 0, std::ssize(kFlows));
    tcase_add_test(tcase, a_queue_that_grows_keeps_its_numbers);
    tcase_add_test(tcase, a_hundred_thousand);
    suite_add_tcase(suite, tcase);
    return suite;
}

}  // namespace

int main() {
    return run_suite(numbering_suite());
}
