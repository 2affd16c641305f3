// SPDX-License-Identifier: GPL-2.0-or-later
//
// Tests of common/units.h: sums and products are exact, and held at the ends of
// the range where they would wrap.

#include "common/units.h"

#include <check.h>

#include <cstdint>
#include <iterator>
#include <limits>

#include "check_main.h"

namespace {

using budget::kWideMax;
using budget::kWideMin;
using budget::Rate;
using budget::Wide;

constexpr Wide kTwoTo64 = Wide{1} << 64;
constexpr Rate kRateMax = std::numeric_limits<Rate>::max();

const struct {
    const char* why;
    Wide a;
    Wide b;
    Wide sum;
    Wide product;
} kArithmetic[] = {
    {"small numbers are exact", 3, -7, -4, -21},
    {"nothing times nothing", 0, kWideMin, kWideMin, 0},
    {"beyond 64 bits (RK-13)", kTwoTo64, kTwoTo64 - 1, 2 * kTwoTo64 - 1, kWideMax},
    {"the largest is not passed", kWideMax, 1, kWideMax, kWideMax},
    {"the largest twice", kWideMax, kWideMax, kWideMax, kWideMax},
    {"the smallest is not passed", kWideMin, -1, kWideMin, kWideMax},
    {"the smallest twice", kWideMin, kWideMin, kWideMin, kWideMax},
    {"opposite ends meet at -1", kWideMax, kWideMin, -1, kWideMin},
    {"just within the range", kWideMax - 5, 5, kWideMax, kWideMax},
    {"a negative product is held below", kWideMax, -2, kWideMax - 2, kWideMin},
};

START_TEST(arithmetic) {
    const auto& row = kArithmetic[_i];
    ck_assert_msg(budget::saturating_add(row.a, row.b) == row.sum, "sum: %s", row.why);
    ck_assert_msg(budget::saturating_add(row.b, row.a) == row.sum, "sum turned round: %s", row.why);
    ck_assert_msg(budget::saturating_mul(row.a, row.b) == row.product, "product: %s", row.why);
    ck_assert_msg(budget::saturating_mul(row.b, row.a) == row.product, "product turned round: %s", row.why);
}
END_TEST

const struct {
    const char* why;
    Wide sum;
    Rate rate;
} kRates[] = {
    {"a rate stays as it is", 5040, 5040},
    {"the highest rate", kRateMax, kRateMax},
    {"above the highest (RK-13)", Wide{kRateMax} + 1, kRateMax},
    {"far above the highest", kWideMax, kRateMax},
    {"a rate is never negative", -1, 0},
};

START_TEST(rates) {
    const auto& row = kRates[_i];
    ck_assert_msg(budget::saturating_rate(row.sum) == row.rate, "%s", row.why);
}
END_TEST

START_TEST(scale) {
    ck_assert_msg(budget::kGpu % 7 == 0 && budget::kGpu % 16 == 0 && budget::kGpu % 9 == 0,
                  "U1: sevenths (MIG), sixteenths and ninths of a GPU are whole numbers");
    ck_assert_double_eq_tol(budget::gpu_seconds(Wide{budget::kGpu} * budget::kHour / 2), 1800, 1e-9);
    ck_assert_msg(budget::gpu_seconds(kWideMax) > 1e34, "RK-13: the largest sum can be shown");
}
END_TEST

START_TEST(room) {
    const Wide runs = Wide{1} << 32;
    const Wide window = budget::kMaxWindow;
    ck_assert_msg(runs * budget::kMaxRate * window < kWideMax / window / 2,
                  "2^32 runs at the limit fill neither the box window nor twice the tapered one");
}
END_TEST

}  // namespace

int main() {
    Suite* suite = suite_create("units");
    TCase* tcase = tcase_create("units");
    tcase_add_loop_test(tcase, arithmetic, 0, std::ssize(kArithmetic));
    tcase_add_loop_test(tcase, rates, 0, std::ssize(kRates));
    tcase_add_test(tcase, scale);
    tcase_add_test(tcase, room);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
