// SPDX-License-Identifier: GPL-2.0-or-later
//
// Tests of common/run_terms.h: class and contract are those of the first sight (C6),
// the tag tells of a run that was on before (U10), and what is refunded (U7).

#include "common/run_terms.h"

#include <check.h>

#include <iterator>
#include <optional>

#include "check_main.h"

namespace {

using budget::kGpu;
using budget::Run;
using budget::RunClass;
using budget::RunSigns;
using budget::RunTag;
using budget::RunView;
using budget::Seconds;

constexpr RunClass kAllocated = RunClass::kAllocated;
constexpr RunClass kUnallocated = RunClass::kUnallocated;
constexpr Seconds kStart = 1000;

const RunTag kTwoMinutes = {.run_class = kAllocated, .contract = 120};
const RunTag kFree = {.run_class = kUnallocated};

// A known run.
struct Known {
    RunClass run_class = kAllocated;
    std::uint32_t contract = 0;
    Seconds start = kStart;
    bool refunded = false;
    bool ended = false;
};

const struct {
    const char* why;
    RunView view;
    std::optional<Known> known;
    RunSigns signs;
    RunClass run_class;
    Seconds contract;
    bool refunded;
} kTerms[] = {
    {"B4: the class of a run seen starting is that of its budget", {.start = kStart}, {}, {}, kAllocated, 0, false},
    {"B4: without a budget it is unallocated",
     {.start = kStart},
     {},
     {.by_budget = kUnallocated},
     kUnallocated,
     0,
     false},
    {"C2: its contract is that of the tag", {.start = kStart}, {}, {.tag = kTwoMinutes}, kAllocated, 120, false},
    {"C6: the tag of the run before does not make a start free",
     {.start = kStart},
     {},
     {.tag = kFree},
     kAllocated,
     0,
     false},
    {"C6: an unallocated run has no contract",
     {.start = kStart},
     {},
     {.tag = kTwoMinutes, .by_budget = kUnallocated},
     kUnallocated,
     0,
     false},
    {"U10: a run that was on before is what its tag says",
     {.start = kStart},
     {},
     {.tag = kFree, .seen_starting = false},
     kUnallocated,
     0,
     false},
    {"U10: also if its account has no budget any more",
     {.start = kStart},
     {},
     {.tag = kTwoMinutes, .by_budget = kUnallocated, .seen_starting = false},
     kAllocated,
     120,
     false},
    {"U10: without a tag it is charged if there is a budget",
     {.start = kStart},
     {},
     {.seen_starting = false},
     kAllocated,
     0,
     false},
    {"C6: class and contract stay, whatever the tag says later",
     {.start = kStart},
     Known{.contract = 60},
     {.tag = kTwoMinutes, .by_budget = kUnallocated},
     kAllocated,
     60,
     false},
    {"C6: an unallocated run stays free",
     {.start = kStart},
     Known{.run_class = kUnallocated},
     {.tag = kTwoMinutes},
     kUnallocated,
     0,
     false},
    {"C6: a start that Slurm moves is the same run",
     {.start = kStart + 60, .submitted = 900},
     Known{.contract = 60},
     {.tag = kTwoMinutes},
     kAllocated,
     60,
     false},
    {"another job with the same key has terms of its own",
     {.start = kStart + 60, .submitted = kStart + 50},
     Known{.run_class = kUnallocated},
     {.tag = kTwoMinutes},
     kAllocated,
     120,
     false},
    {"U7: broken inside the contract",
     {.start = kStart, .end = kStart + 119},
     {},
     {.tag = kTwoMinutes, .broken = true},
     kAllocated,
     120,
     true},
    {"U7: after the contract nothing is refunded",
     {.start = kStart, .end = kStart + 120},
     {},
     {.tag = kTwoMinutes, .broken = true},
     kAllocated,
     120,
     false},
    {"U6, U7: suspended time is none of the contract",
     {.start = kStart, .end = kStart + 150, .suspended_before = 31},
     {},
     {.tag = kTwoMinutes, .broken = true},
     kAllocated,
     120,
     true},
    {"U7: an end that is its own",
     {.start = kStart, .end = kStart + 10},
     {},
     {.tag = kTwoMinutes},
     kAllocated,
     120,
     false},
    {"U7: without a contract there is nothing to break",
     {.start = kStart, .end = kStart},
     {},
     {.broken = true},
     kAllocated,
     0,
     false},
    {"U7: once refunded it stays so, though a later look does not tell why",
     {.start = kStart, .end = kStart + 10},
     Known{.contract = 120, .refunded = true, .ended = true},
     {},
     kAllocated,
     120,
     true},
    {"U7: a run that is on is not",
     {.start = kStart},
     Known{.contract = 120, .refunded = true, .ended = true},
     {},
     kAllocated,
     120,
     false},
};

START_TEST(terms) {
    const auto& row = kTerms[_i];
    Run known;
    if (row.known) {
        known.run_class = row.known->run_class;
        known.contract = row.known->contract;
        known.start = row.known->start;
        known.until = kStart + 10;
        known.refunded = row.known->refunded;
        known.ended = row.known->ended;
    }
    RunView view = row.view;
    settle_terms(view, row.known ? &known : nullptr, row.signs);
    ck_assert_msg(view.run_class == row.run_class, "%s: class", row.why);
    ck_assert_msg(view.contract == row.contract, "%s: contract %ld", row.why, static_cast<long>(view.contract));
    ck_assert_msg(view.refunded == row.refunded, "%s: refund", row.why);
}
END_TEST

START_TEST(tags) {
    Run run;
    run.contract = 120;
    ck_assert_msg(tag_for(run, 8 * kGpu, false) == kTwoMinutes, "class and contract");
    ck_assert_msg(tag_for(run, 8 * kGpu, true).rate == 8 * kGpu, "and the rate where AllocTRES does not tell");
    run.run_class = kUnallocated;
    ck_assert_msg(tag_for(run, 8 * kGpu, false) == kFree, "an unallocated run has no contract");
}
END_TEST

Suite* run_terms_suite() {
    Suite* suite = suite_create("run_terms");
    TCase* tests = tcase_create("run_terms");
    tcase_add_loop_test(tests, terms, 0, static_cast<int>(std::size(kTerms)));
    tcase_add_test(tests, tags);
    suite_add_tcase(suite, tests);
    return suite;
}

}  // namespace

int main() {
    return run_suite(run_terms_suite());
}
