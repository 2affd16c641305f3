// SPDX-License-Identifier: GPL-2.0-or-later
//
// Tests of common/time_text: every form of a duration, and what is none.
#include "common/time_text.h"

#include <limits>
#include <string>

#include "tests/check_main.h"

namespace {

using namespace budget;

struct DurationRow {
    const char* why;
    const char* text;
    Seconds expected;  // negative: refused
};

const DurationRow kDurationRows[] = {
    {"C1: minutes", "90", 5400},
    {"C1: minutes:seconds", "2:30", 150},
    {"C1: hours:minutes:seconds", "1:02:03", 3723},
    {"C1: days-hours", "7-0", 7 * kDay},
    {"C1: days-hours:minutes", "1-2:03", kDay + 2 * kHour + 180},
    {"C1: days-hours:minutes:seconds", "1-02:03:04", kDay + 2 * kHour + 184},
    {"C1: s", "90s", 90},
    {"C1: m", "15m", 900},
    {"C1: h", "8h", 8 * kHour},
    {"C1: d", "7d", 7 * kDay},
    {"C1: nothing is a time", "0", 0},
    {"C1: in every form", "0-0:0:0", 0},
    {"leading zeros", "0008h", 8 * kHour},
    {"fields may exceed what the next one holds, as in Slurm", "0-36:90:120", 36 * kHour + 92 * 60},
    {"the longest", "36500d", kLongestDuration},
    {"more than the longest", "36501d", -1},
    {"the longest and a second", "36500-0:0:1", -1},
    {"beyond 64 bits", "99999999999999999999999999999999d", -1},
    {"beyond 64 bits in a field", "0:18446744073709551617:0", -1},
    {"empty", "", -1},
    {"a suffix alone", "h", -1},
    {"an unknown suffix", "7w", -1},
    {"a long suffix", "15min", -1},
    {"two suffixes", "1h30m", -1},
    {"a capital suffix", "7D", -1},
    {"a sign", "+5", -1},
    {"a negative number", "-5", -1},
    {"a negative suffix form", "-7d", -1},
    {"Slurm's code for unlimited", "-1", -1},
    {"no limit is no duration", "UNLIMITED", -1},
    {"a fraction", "1.5h", -1},
    {"an exponent", "1e3", -1},
    {"hexadecimal", "0x10", -1},
    {"NaN", "nan", -1},
    {"a blank before", " 5", -1},
    {"a blank behind", "5 ", -1},
    {"a blank before the suffix", "5 m", -1},
    {"an empty field", "1::2", -1},
    {"an empty field at the end", "1:", -1},
    {"an empty field at the start", ":1", -1},
    {"too many fields", "1:2:3:4", -1},
    {"too many fields behind days", "1-2:3:4:5", -1},
    {"days alone", "7-", -1},
    {"two dashes", "1-2-3", -1},
    {"a dash behind a colon", "1:2-3", -1},
    {"fields and a suffix", "1:30h", -1},
    {"days and a suffix", "1-2h", -1},
    {"full-width digits",
     "\xef\xbc\x97"
     "d",
     -1},
    {"a thousands separator", "1,000", -1},
};

START_TEST(duration_row) {
    const DurationRow& row = kDurationRows[_i];
    const Result<Seconds> got = parse_duration(row.text);
    if (row.expected >= 0) {
        ck_assert_msg(got.ok(), "%s: \"%s\" is refused: %s", row.why, row.text, got.ok() ? "" : got.error().c_str());
        ck_assert_msg(got.value() == row.expected, "%s: \"%s\" is %lld", row.why, row.text,
                      static_cast<long long>(got.value()));
        const Result<Seconds> again = parse_duration(format_duration(row.expected));
        ck_assert_msg(again.ok() && again.value() == row.expected, "%s: \"%s\" does not come back", row.why, row.text);
        return;
    }
    ck_assert_msg(!got.ok(), "%s: \"%s\" is taken for %lld", row.why, row.text,
                  got.ok() ? static_cast<long long>(got.value()) : 0);
    ck_assert_msg(got.error().rfind(printable(row.text) + ": ", 0) == 0, "%s: the error does not name the text: %s",
                  row.why, got.error().c_str());
    ck_assert_msg(got.error().find('\n') == std::string::npos, "%s: the error has several lines", row.why);
}
END_TEST

struct FormatRow {
    Seconds duration;
    const char* expected;
};

const FormatRow kFormatRows[] = {
    {0, "00:00:00"},
    {59, "00:00:59"},
    {900, "00:15:00"},
    {kDay - 1, "23:59:59"},
    {kDay, "1-00:00:00"},
    {7 * kDay + 3723, "7-01:02:03"},
    {-90, "-00:01:30"},
    {std::numeric_limits<Seconds>::max(), "106751991167300-15:30:07"},
    {std::numeric_limits<Seconds>::min(), "-106751991167300-15:30:08"},
};

START_TEST(format_row) {
    const FormatRow& row = kFormatRows[_i];
    const std::string got = format_duration(row.duration);
    ck_assert_msg(got == row.expected, "expected %s, got %s", row.expected, got.c_str());
}
END_TEST

START_TEST(bare_numbers) {
    ck_assert_msg(is_bare_number("7") && is_bare_number("007"), "digits alone are a bare number");
    ck_assert_msg(!is_bare_number("") && !is_bare_number("7d") && !is_bare_number("7:0") && !is_bare_number("-7"),
                  "nothing else is");
}
END_TEST

START_TEST(foreign_text_fits_a_line) {
    ck_assert_msg(printable("a\nb\tc\x7f\xff\x1b[31m") == "a?b?c???[31m", "control characters: %s",
                  printable("a\nb\tc\x7f\xff\x1b[31m").c_str());
    ck_assert_msg(printable(std::string(64, 'x')) == std::string(64, 'x'), "what fits is not cut");
    ck_assert_msg(printable(std::string(65, 'x')) == std::string(64, 'x') + "...", "what is long is cut");
}
END_TEST

Suite* time_text_suite() {
    Suite* suite = suite_create("time_text");
    TCase* tcase = tcase_create("time_text");
    tcase_add_loop_test(tcase, duration_row, 0, std::ssize(kDurationRows));
    tcase_add_loop_test(tcase, format_row, 0, std::ssize(kFormatRows));
    tcase_add_test(tcase, bare_numbers);
    tcase_add_test(tcase, foreign_text_fits_a_line);
    suite_add_tcase(suite, tcase);
    return suite;
}

}  // namespace

int main() {
    return run_suite(time_text_suite());
}
