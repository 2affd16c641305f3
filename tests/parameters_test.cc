// SPDX-License-Identifier: GPL-2.0-or-later
//
// Tests of common/parameters: each key with good and bad values, the error
// lines, the way back to text, and the weights of GPUs and parts of them.
#include "common/parameters.h"

#include <clocale>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tests/check_main.h"

namespace {

using namespace budget;

struct GoodRow {
    const char* why;
    const char* text;
    const char* expected;  // what to_string makes of it, without the keys that keep their defaults
};

const GoodRow kGoodRows[] = {
    {"RK-12: without a window it is 7 days; all defaults", "", ""},
    {"U3: days-hours", "window=3-12", "window=3-12:00:00"},
    {"U3: hours with a suffix", "window=168h", ""},
    {"U3: days with a suffix", "window=14d", "window=14-00:00:00"},
    {"U3: minutes:seconds has units", "window=10:00", "window=00:10:00"},
    {"U3: a second", "window=1s", "window=00:00:01"},
    {"U3: the longest", "window=366d", "window=366-00:00:00"},
    {"U3: shape", "window_shape=tapered", "window_shape=tapered"},
    {"U3: shape", "window_shape=box", ""},
    {"U5: lead, a whole number", "lead=16", "lead=16"},
    {"U5: lead, three decimals", "lead=0.125", "lead=0.125"},
    {"U5: lead, superfluous zeros", "lead=01.50", "lead=1.5"},
    {"U5: no lead", "lead=0.000", ""},
    {"P3: margin", "margin=0.1", "margin=0.1"},
    {"P3: no margin", "margin=0", "margin=0"},
    {"P3: the largest", "margin=10.000", "margin=10"},
    {"Q2: quantum with a suffix", "quantum=30m", "quantum=00:30:00"},
    {"Q2: a bare number is minutes, as for all of Slurm's times", "quantum=20", "quantum=00:20:00"},
    {"Q2: the longest", "quantum=8:00:00", "quantum=08:00:00"},
    {"U1: weights", "gpu_weight=a100:1/h100:2.5", "gpu_weight=a100:1/h100:2.5"},
    {"U1: dots, dashes and underscores in a type", "gpu_weight=nvidia_a100_3g.40gb:0.5/rtx-6000:0.25/1g.10gb+me:0.1429",
     "gpu_weight=nvidia_a100_3g.40gb:0.5/rtx-6000:0.25/1g.10gb+me:0.1429"},
    {"U1: a default", "gpu_weight=h100:3/default:0.5", "gpu_weight=h100:3/default:0.5"},
    {"U1: rounded once to 1/5040", "gpu_weight=x:0.333333333/y:0.3333", "gpu_weight=x:0.3333/y:0.3333"},
    {"U1: the heaviest and the lightest", "gpu_weight=x:1000/y:0.0002", "gpu_weight=x:1000/y:0.0002"},
    {"U1: half a unit is rounded up", "gpu_weight=x:0.0001", "gpu_weight=x:0.0002"},
    {"Q7: the band of jobs without GPUs", "no_gpu_band=first", "no_gpu_band=first"},
    {"Q7: the band of jobs without GPUs", "no_gpu_band=last", "no_gpu_band=last"},
    {"Q7: the band of jobs without GPUs", "no_gpu_band=middle", ""},
    {"C1: the longest minimum", "max_min_runtime=4h", "max_min_runtime=04:00:00"},
    {"C1: of a week", "max_min_runtime=7-0", "max_min_runtime=7-00:00:00"},
    {"C1: of a second", "max_min_runtime=1s", "max_min_runtime=00:00:01"},
    {"C1: the shipped one", "max_min_runtime=8:00:00", ""},
    {"C1: a missing minimum is refused", "missing_min_runtime=refuse", ""},
    {"C1: or makes the job unallocated", "missing_min_runtime=unallocated", "missing_min_runtime=unallocated"},
    {"C1: or is a time", "missing_min_runtime=1h", "missing_min_runtime=01:00:00"},
    {"C1: that of the longest", "missing_min_runtime=8h", "missing_min_runtime=08:00:00"},
    {"C1: which may stand behind it", "missing_min_runtime=10h,max_min_runtime=12h",
     "max_min_runtime=12:00:00,missing_min_runtime=10:00:00"},
    {"C5: no budget", "no_budget=refuse", "no_budget=refuse"},
    {"C5: as shipped", "no_budget=unallocated", ""},
    {"C8: an exempt partition", "exempt_partition=debug", "exempt_partition=debug"},
    {"C8: several, with case and odd characters", "exempt_partition=Debug/debug/gpu-a.b_1:x",
     "exempt_partition=Debug/debug/gpu-a.b_1:x"},
    {"C8: exempt QOS", "exempt_qos=vip/urgent", "exempt_qos=vip/urgent"},
    {"C3: the QOS of unallocated jobs", "unallocated_qos=free", "unallocated_qos=free"},
    {"U11: a part of the unused contract", "unused_contract_charge=0.125", "unused_contract_charge=0.125"},
    {"U11: all of it", "unused_contract_charge=1.000", "unused_contract_charge=1"},
    {"U11: nothing", "unused_contract_charge=0", ""},
    {"several keys in any order", "no_gpu_band=last,lead=1,window=1d", "window=1-00:00:00,lead=1,no_gpu_band=last"},
};

START_TEST(good_row) {
    const GoodRow& row = kGoodRows[_i];
    const Result<Parameters> got = Parameters::parse(row.text);
    ck_assert_msg(got.ok(), "%s: \"%s\" is refused: %s", row.why, row.text, got.ok() ? "" : got.error().c_str());
    const Result<Parameters> expected = Parameters::parse(row.expected);
    ck_assert_msg(expected.ok(), "%s: the row is wrong", row.why);
    ck_assert_msg(got.value() == expected.value(), "%s: \"%s\" is taken for %s", row.why, row.text,
                  to_string(got.value()).c_str());
    const std::string text = to_string(got.value());
    const Result<Parameters> again = Parameters::parse(text);
    ck_assert_msg(again.ok() && again.value() == got.value(), "%s: %s does not come back as it was", row.why,
                  text.c_str());
    if (*row.expected != '\0') {
        std::size_t at = 0;
        const std::string parts = row.expected;
        while (at != std::string::npos) {
            const std::size_t comma = parts.find(',', at);
            const std::string part = parts.substr(at, comma == std::string::npos ? comma : comma - at);
            ck_assert_msg(("," + text + ",").find("," + part + ",") != std::string::npos, "%s: %s is not in %s",
                          row.why, part.c_str(), text.c_str());
            at = comma == std::string::npos ? comma : comma + 1;
        }
    }
}
END_TEST

START_TEST(defaults) {
    const Parameters parameters = Parameters::parse("").value();
    ck_assert_msg(parameters == Parameters(), "an empty text is all defaults");
    ck_assert_msg(to_string(parameters) ==
                      "window=7-00:00:00,window_shape=box,lead=0,margin=0.05,quantum=00:15:00,no_gpu_band=middle,"
                      "max_min_runtime=08:00:00,missing_min_runtime=refuse,no_budget=unallocated,"
                      "unused_contract_charge=0",
                  "the defaults are those of the policy (U3, U5, P3, Q2, Q7, C1, C5, U11): %s",
                  to_string(parameters).c_str());
    ck_assert_msg(parameters.window == 604800 && parameters.lead_millis == 0 && parameters.margin_millis == 50 &&
                      parameters.quantum == 900,
                  "and their numbers too");
}
END_TEST

struct BadRow {
    const char* why;
    const char* text;
    const char* error;  // the whole line, or its start where it ends in *
};

const BadRow kBadRows[] = {
    {"RK-12: a window without a unit", "window=7", "window=7: a time with a unit is needed, such as 7d, 7-0 or 168h"},
    {"RK-12: a window of 0", "window=0", "window=0: *"},
    {"RK-12: in any form", "window=0-0", "window=0-0: *"},
    {"RK-12: a negative window", "window=-7d", "window=-7d: *"},
    {"RK-12: a long number without a unit", "window=99999999999999999999",
     "window=99999999999999999999: a time with a unit*"},
    {"no value", "window=", "window=: *"},
    {"no equals sign", "window", "window: has no value; window=value is needed"},
    {"a window longer than the policy can count", "window=367d", "window=367d: *"},
    {"overflow", "window=999999999999999999d", "window=999999999999999999d: *"},
    {"NaN", "window=nan", "window=nan: *"},
    {"trailing characters", "window=7dx", "window=7dx: *"},
    {"full-width digits",
     "window=\xef\xbc\x97"
     "d",
     "window=???d: *"},
    {"a shape that does not exist", "window_shape=round", "window_shape=round: box or tapered is needed"},
    {"a shape in capitals", "window_shape=BOX", "window_shape=BOX: box or tapered is needed"},
    {"lead too large", "lead=16.001",
     "lead=16.001: a number from 0 to 16 with at most three decimals is needed, such as 0.25"},
    {"lead with four decimals", "lead=0.0005", "lead=0.0005: *"},
    {"lead negative", "lead=-1", "lead=-1: *"},
    {"lead with a sign", "lead=+1", "lead=+1: *"},
    {"lead NaN", "lead=nan", "lead=nan: *"},
    {"lead infinite", "lead=inf", "lead=inf: *"},
    {"lead with an exponent", "lead=1e0", "lead=1e0: *"},
    {"lead with a comma as of some locales makes two pairs", "lead=0,25", "25: unknown key; *"},
    {"lead empty", "lead=", "lead=: *"},
    {"lead of a point", "lead=.", "lead=.: *"},
    {"lead without a whole part", "lead=.5", "lead=.5: *"},
    {"lead without decimals behind the point", "lead=1.", "lead=1.: *"},
    {"lead with two points", "lead=1.2.3", "lead=1.2.3: *"},
    {"lead beyond 64 bits", "lead=18446744073709551617", "lead=18446744073709551617: *"},
    {"lead with trailing characters", "lead=1x", "lead=1x: *"},
    {"lead with a letter among the decimals", "lead=1.x", "lead=1.x: *"},
    {"margin too large", "margin=10.001",
     "margin=10.001: a number from 0 to 10 with at most three decimals is needed, such as 0.05"},
    {"margin negative", "margin=-0.05", "margin=-0.05: *"},
    {"margin in per cent", "margin=5%", "margin=5%: *"},
    {"quantum 0", "quantum=0", "quantum=0: a time above 0 and at most 8 hours is needed, such as 15m or 0:15:00"},
    {"quantum too long", "quantum=8:00:01", "quantum=8:00:01: *"},
    {"quantum negative", "quantum=-15m", "quantum=-15m: *"},
    {"weights without a number", "gpu_weight=a100",
     "gpu_weight=a100: a list of type:number by slashes is needed, such as a100:1/h100:2.5/default:1"},
    {"weights without a type", "gpu_weight=:1", "gpu_weight=:1: a list *"},
    {"no weights", "gpu_weight=", "gpu_weight=: a list *"},
    {"an empty item in the list", "gpu_weight=a100:1/", "gpu_weight=a100:1/: a list *"},
    {"a type that no GRES can have", "gpu_weight=a100=x:1", "gpu_weight=a100=x:1: a list *"},
    {"a full-width type", "gpu_weight=\xef\xbd\x81:1", "gpu_weight=???:1: a list *"},
    {"a weight of 0", "gpu_weight=a100:0",
     "gpu_weight=a100:0: the weight of a100 must be a number from 1/5040 (0.0002) to 1000 with at most nine decimals, "
     "such as 2.5"},
    {"a negative weight", "gpu_weight=a100:-1", "gpu_weight=a100:-1: the weight of a100 *"},
    {"a weight too small for 1/5040", "gpu_weight=a100:0.00009", "gpu_weight=a100:0.00009: the weight of a100 *"},
    {"a weight too large", "gpu_weight=a100:1000.000000001", "gpu_weight=a100:1000.000000001: the weight of a100 *"},
    {"a weight NaN", "gpu_weight=a100:nan", "gpu_weight=a100:nan: the weight of a100 *"},
    {"two colons", "gpu_weight=gpu:a100:1", "gpu_weight=gpu:a100:1: the weight of gpu *"},
    {"a type listed twice", "gpu_weight=a100:1/A100:2",
     "gpu_weight=a100:1/A100:2: A100 is listed twice; each type needs one weight"},
    {"the default listed twice", "gpu_weight=default:1/default:1",
     "gpu_weight=default:1/default:1: default is listed twice; *"},
    {"C1: a longest minimum without a unit", "max_min_runtime=8",
     "max_min_runtime=8: a time with a unit is needed, such as 8h, 8:00:00 or 1-0"},
    {"C1: of 0 there would be no contracts", "max_min_runtime=0",
     "max_min_runtime=0: a time above 0 and at most 7 days is needed, such as 8h, 8:00:00 or 1-0"},
    {"C1: of more than a week", "max_min_runtime=7-0:00:01", "max_min_runtime=7-0:00:01: a time above 0 *"},
    {"C1: UNLIMITED", "max_min_runtime=UNLIMITED", "max_min_runtime=UNLIMITED: a time above 0 *"},
    {"C1: trailing characters", "max_min_runtime=8h!", "max_min_runtime=8h!: a time above 0 *"},
    {"C1: a missing minimum without a unit", "missing_min_runtime=60",
     "missing_min_runtime=60: refuse, unallocated, or a time above 0 with a unit is needed, such as 1h or 1:00:00"},
    {"C1: of 0 is said by its name", "missing_min_runtime=0", "missing_min_runtime=0: refuse, unallocated, *"},
    {"C1: in any form", "missing_min_runtime=0-0", "missing_min_runtime=0-0: refuse, unallocated, *"},
    {"C1: another word", "missing_min_runtime=reject", "missing_min_runtime=reject: refuse, unallocated, *"},
    {"C1: above the longest", "missing_min_runtime=8:00:01",
     "missing_min_runtime=08:00:01: a time of at most max_min_runtime is needed, which is 08:00:00"},
    {"C1: above the longest that comes behind it", "missing_min_runtime=2h,window=1d,max_min_runtime=1h",
     "missing_min_runtime=02:00:00: a time of at most max_min_runtime is needed, which is 01:00:00"},
    {"C5: another word", "no_budget=hold", "no_budget=hold: unallocated or refuse is needed"},
    {"C8: no name",
     "exempt_partition=", "exempt_partition=: a list of names by slashes is needed, such as debug/system"},
    {"C8: an empty name", "exempt_partition=a//b", "exempt_partition=a//b: a list of names *"},
    {"C8: a name twice", "exempt_qos=a/b/a", "exempt_qos=a/b/a: a is listed twice; each name may stand once"},
    {"C8: a blank", "exempt_qos=a b", "exempt_qos=a b: a list of names *"},
    {"C3: two QOS", "unallocated_qos=a/b", "unallocated_qos=a/b: the name of one QOS is needed, such as free"},
    {"C3: no QOS", "unallocated_qos=", "unallocated_qos=: the name of one *"},
    {"U11: more than all", "unused_contract_charge=1.001",
     "unused_contract_charge=1.001: a number from 0 to 1 with at most three decimals is needed, such as 0.5"},
    {"U11: in per cent", "unused_contract_charge=50%", "unused_contract_charge=50%: *"},
    {"U11: negative", "unused_contract_charge=-0.5", "unused_contract_charge=-0.5: *"},
    {"a band that does not exist", "no_gpu_band=top", "no_gpu_band=top: middle, first or last is needed"},
    {"a key given twice", "lead=1,window=7d,lead=1", "lead=1: lead is given twice; each key may stand once"},
    {"an unknown key", "windows_shape=box",
     "windows_shape: unknown key; did you mean window_shape? known are window, window_shape, lead, margin, quantum, "
     "gpu_weight, no_gpu_band, max_min_runtime, missing_min_runtime, no_budget, exempt_partition, exempt_qos, "
     "unallocated_qos, unused_contract_charge"},
    {"an unknown key like none", "half_life=7d", "half_life: unknown key; known are window, *"},
    {"a key in capitals", "Window=7d", "Window: unknown key; did you mean window? *"},
    {"a dash for an underscore", "gpu-weight=a:1", "gpu-weight: unknown key; did you mean gpu_weight? *"},
    {"a blank", "window=7d, lead=1", " lead: unknown key; did you mean lead? *"},
    {"no key", "=7d", ": unknown key; known are *"},
    {"an empty item", "window=7d,,lead=1", "an empty item between commas; key=value is needed, such as window=7d"},
    {"an empty item at the end", "window=7d,", "an empty item between commas; *"},
    {"a comma alone", ",", "an empty item between commas; *"},
    {"a control character stays on the line", "lead=1\n2", "lead=1?2: *"},
    {"the window's message in full", "window=1y",
     "window=1y: a time above 0 and at most 366 days is needed, such as 7d, 7-0 or 168h"},
};

START_TEST(bad_row) {
    const BadRow& row = kBadRows[_i];
    const Result<Parameters> got = Parameters::parse(row.text);
    ck_assert_msg(!got.ok(), "%s: \"%s\" is taken", row.why, row.text);
    std::string expected = row.error;
    std::string error = got.error();
    ck_assert_msg(error.find('\n') == std::string::npos, "%s: the error has several lines", row.why);
    if (expected.back() == '*') {
        expected.pop_back();
        error.resize(std::min(error.size(), expected.size()));
    }
    ck_assert_msg(error == expected, "%s: the error is \"%s\"", row.why, got.error().c_str());
}
END_TEST

START_TEST(a_very_long_text) {
    const Result<Parameters> key = Parameters::parse(std::string(1'000'000, 'x') + "=1");
    ck_assert_msg(!key.ok() && key.error().size() < 300, "a long key is refused in one short line");
    const Result<Parameters> value = Parameters::parse("gpu_weight=" + std::string(1'000'000, '7') + ":1");
    ck_assert_msg(value.ok(), "a long type is only a type");
    const Result<Parameters> number = Parameters::parse("lead=" + std::string(1'000'000, '0') + "1");
    ck_assert_msg(number.ok() && number.value().lead_millis == 1000, "leading zeros are no overflow");
}
END_TEST

START_TEST(no_locale_matters) {
    for (const char* name : {"de_DE.UTF-8", "fr_FR.UTF-8", "tr_TR.UTF-8", "C.UTF-8"})
        std::setlocale(LC_ALL, name);  // what there is
    const Result<Parameters> got = Parameters::parse("lead=0.25,gpu_weight=a100:2.5");
    ck_assert_msg(got.ok() && got.value().lead_millis == 250 && got.value().gpu_weight[0].weight == 12600,
                  "decimals have a point");
    ck_assert_msg(to_string(got.value()).find("lead=0.25,") != std::string::npos, "written too");
    std::setlocale(LC_ALL, "C");
}
END_TEST

START_TEST(random_parameters_come_back) {
    std::mt19937_64 random(11);
    for (int i = rounds(2000); i > 0; --i) {
        Parameters parameters;
        parameters.window = static_cast<Seconds>(1 + random() % kMaxWindow);
        parameters.window_shape = random() % 2 == 0 ? WindowShape::kBox : WindowShape::kTapered;
        parameters.lead_millis = static_cast<std::uint32_t>(random() % (kLargestLeadMillis + 1));
        parameters.margin_millis = static_cast<std::uint32_t>(random() % (kLargestMarginMillis + 1));
        parameters.quantum = static_cast<Seconds>(1 + random() % kLongestQuantum);
        for (std::uint64_t k = random() % 4; k > 0; --k)
            parameters.gpu_weight.push_back(
                {"t" + std::to_string(k), static_cast<Rate>(1 + random() % (random() % 2 == 0 ? kHeaviestGpu : kGpu))});
        if (random() % 2 == 0) parameters.gpu_weight.push_back({"", static_cast<Rate>(1 + random() % 50)});
        parameters.no_gpu_band = static_cast<Parameters::Band>(random() % 3);
        parameters.max_min_runtime = static_cast<Seconds>(1 + random() % kLongestMinRuntime);
        parameters.missing_min_runtime = static_cast<Parameters::Missing>(random() % 3);
        if (parameters.missing_min_runtime == Parameters::Missing::kTime)
            parameters.missing_time =
                static_cast<Seconds>(1 + random() % static_cast<std::uint64_t>(parameters.max_min_runtime));
        parameters.no_budget = static_cast<Parameters::NoBudget>(random() % 2);
        for (std::uint64_t k = random() % 3; k > 0; --k) parameters.exempt_partition.push_back("p" + std::to_string(k));
        for (std::uint64_t k = random() % 3; k > 0; --k) parameters.exempt_qos.push_back("q" + std::to_string(k));
        if (random() % 2 == 0) parameters.unallocated_qos = "free";
        parameters.unused_charge_millis = static_cast<std::uint32_t>(random() % 1001);
        const Result<Parameters> again = Parameters::parse(to_string(parameters));
        if (!again.ok() || again.value() != parameters)
            ck_abort_msg("%s does not come back", to_string(parameters).c_str());
    }
}
END_TEST

START_TEST(every_weight_up_to_two_gpus_comes_back) {
    for (Rate weight = 1; weight <= 2 * kGpu; ++weight) {
        Parameters parameters;
        parameters.gpu_weight = {{"x", weight}};
        const Result<Parameters> again = Parameters::parse(to_string(parameters));
        if (!again.ok() || again.value() != parameters)
            ck_abort_msg("%lld/5040 does not come back", static_cast<long long>(weight));
    }
}
END_TEST

struct WeightRow {
    const char* why;
    const char* parameters;
    TresKind kind;
    Rate weight;
    std::uint64_t parts;
    bool known;
};

constexpr GpuParts kParts{.shards_per_gpu = 8, .mps_per_gpu = 100};

const WeightRow kWeightRows[] = {
    {"U1: a GPU weighs 1", "", {"gpu", ""}, 5040, 1, true},
    {"U1: of any type", "", {"gpu", "a100"}, 5040, 1, true},
    {"U1: a listed type weighs as listed", "gpu_weight=h100:2.5", {"gpu", "h100"}, 12600, 1, true},
    {"U1: letter case is ignored, as Slurm does", "gpu_weight=H100:2.5", {"gpu", "h100"}, 12600, 1, true},
    {"U1: the default of untyped ones", "gpu_weight=h100:2.5/default:0.5", {"gpu", ""}, 2520, 1, true},
    {"U1: the default of unlisted ones", "gpu_weight=h100:2.5/default:0.5", {"gpu", "a100"}, 2520, 1, true},
    {"US-13: a type that a list misses weighs 1, loudly", "gpu_weight=h100:2.5", {"gpu", "a100"}, 5040, 1, false},
    {"U1: an untyped one beside a list weighs 1", "gpu_weight=h100:2.5", {"gpu", ""}, 5040, 1, true},
    {"US-13: a MIG slice weighs its sevenths", "", {"gpu", "1g.5gb"}, 5040, 7, true},
    {"US-13: with the GPU's name before it", "", {"gpu", "nvidia_a100_3g.40gb"}, 3 * 5040, 7, true},
    {"US-13: with attributes behind it", "", {"gpu", "1g.10gb+me"}, 5040, 7, true},
    {"US-13: all seven slices are a GPU", "", {"gpu", "7g.80gb"}, 7 * 5040, 7, true},
    {"US-13: of the listed weight of its GPU",
     "gpu_weight=nvidia_h100:2",
     {"gpu", "nvidia_h100_2g.20gb"},
     2 * 10080,
     7,
     true},
    {"US-13: of the default weight", "gpu_weight=default:2", {"gpu", "a100-4g.20gb"}, 4 * 10080, 7, true},
    {"US-13: without a GPU's name, of the default weight", "gpu_weight=h100:3", {"gpu", "4g.20gb"}, 4 * 5040, 7, true},
    {"US-13: of a GPU that a list misses, loudly", "gpu_weight=h100:3", {"gpu", "a100_4g.20gb"}, 4 * 5040, 7, false},
    {"US-13: a listed profile weighs as listed",
     "gpu_weight=nvidia_a30_1g.6gb:0.25",
     {"gpu", "nvidia_a30_1g.6gb"},
     1260,
     1,
     true},
    {"US-13: eight slices are no profile", "", {"gpu", "8g.80gb"}, 5040, 1, true},
    {"US-13: no slice is none", "", {"gpu", "0g.5gb"}, 5040, 1, true},
    {"US-13: nor is one with digits before it", "", {"gpu", "11g.5gb"}, 5040, 1, true},
    {"US-13: nor letters", "", {"gpu", "x1g.5gb"}, 5040, 1, true},
    {"US-13: nor without a memory size", "", {"gpu", "1g.gb"}, 5040, 1, true},
    {"US-13: nor without slices", "", {"gpu", "g.5gb"}, 5040, 1, true},
    {"US-13: nor a memory size alone", "", {"gpu", "80gb"}, 5040, 1, true},
    {"US-13: nor with nothing behind the plus", "", {"gpu", "1g.5gb+"}, 5040, 1, true},
    {"US-13: a shard weighs its part of a GPU", "", {"shard", ""}, 5040, 8, true},
    {"US-13: of its type's GPU", "gpu_weight=h100:2", {"shard", "h100"}, 10080, 8, true},
    {"US-13: of a MIG slice", "", {"shard", "1g.5gb"}, 5040, 56, true},
    {"US-13: an mps unit", "", {"mps", ""}, 5040, 100, true},
    {"US-13: another GRES weighs as a GPU of the default, loudly",
     "gpu_weight=default:2",
     {"npu", ""},
     10080,
     1,
     false},
};

START_TEST(weight_row) {
    const WeightRow& row = kWeightRows[_i];
    const UnitWeight got = weight_of(Parameters::parse(row.parameters).value(), row.kind, kParts);
    ck_assert_msg(got.weight == row.weight && got.parts == row.parts && got.known == row.known,
                  "%s: got %lld / %llu, %s", row.why, static_cast<long long>(got.weight),
                  static_cast<unsigned long long>(got.parts), got.known ? "known" : "unknown");
}
END_TEST

START_TEST(parts_that_nobody_knows) {
    for (const char* name : {"shard", "mps"}) {
        const UnitWeight got = weight_of(Parameters(), {name, ""}, GpuParts{});
        ck_assert_msg(got.weight == 5040 && got.parts == 1 && !got.known,
                      "US-13: %s without a number per GPU weighs a GPU, loudly", name);
    }
    const UnitWeight tiny = weight_of(Parameters(), {"mps", "1g.5gb"}, GpuParts{.mps_per_gpu = ~std::uint64_t{0}});
    ck_assert_msg(tiny.parts == ~std::uint64_t{0}, "US-13: absurd numbers per GPU do not wrap");
}
END_TEST

struct RateRow {
    const char* why;
    const char* parameters;
    std::vector<TresKind> kinds;
    std::vector<std::uint64_t> counts;
    Rate expected;
};

const std::vector<TresKind> kMixed = {{"gpu", ""}, {"gpu", "a100"}, {"gpu", "a100_1g.5gb"}, {"shard", ""}, {"mps", ""}};

const RateRow kRateRows[] = {
    {"U1: untyped GPUs", "", kMixed, {4}, 4 * 5040},
    {"U1: a typed and an untyped count of the same GPUs are one", "", kMixed, {4, 4}, 4 * 5040},
    {"U1: with the weight of the type", "gpu_weight=a100:2", kMixed, {4, 4}, 8 * 5040},
    {"U1: what is not typed weighs the default", "gpu_weight=a100:2/default:0.5", kMixed, {4, 3}, 3 * 10080 + 2520},
    {"U1: where the untyped count is not tracked", "gpu_weight=a100:2", {{"gpu", "a100"}}, {3}, 6 * 5040},
    {"U1: where it lags behind", "", kMixed, {2, 3}, 3 * 5040},
    {"US-13: 7 slices of one A100 are one GPU, not 7", "", kMixed, {7, 0, 7}, 5040},
    {"US-13: slices and whole GPUs of one count", "", kMixed, {9, 2, 7}, 3 * 5040},
    {"US-13: shard:4 of 8 is half a GPU", "", kMixed, {0, 0, 0, 4}, 2520},
    {"US-13: mps:50 of 100 is half a GPU, exactly", "", kMixed, {0, 0, 0, 0, 50}, 2520},
    {"US-13: one mps unit is rounded once", "", kMixed, {0, 0, 0, 0, 1}, 50},
    {"US-13: and two of them as well, to the nearest", "", kMixed, {0, 0, 0, 0, 2}, 101},
    {"US-13: shards are not taken off the GPUs", "", kMixed, {1, 0, 0, 4}, 5040 + 2520},
    {"U1: the order of the kinds does not matter",
     "gpu_weight=a100:2",
     {{"gpu", "a100"}, {"gpu", ""}},
     {3, 4},
     6 * 5040 + 5040},
    {"U1: no GPUs, no rate", "", kMixed, {0, 0, 0, 0, 0}, 0},
    {"U1: no kinds, no rate", "", {}, {5}, 0},
    {"RK-13: saturates",
     "gpu_weight=a100:1000",
     kMixed,
     {~std::uint64_t{0}, ~std::uint64_t{0} - 5},
     std::numeric_limits<Rate>::max()},
    {"RK-13: the sum saturates",
     "",
     {{"x", ""}, {"y", ""}},
     {1'000'000'000'000'000, 1'000'000'000'000'000},
     std::numeric_limits<Rate>::max()},
};

START_TEST(rate_row) {
    const RateRow& row = kRateRows[_i];
    const GpuRates rates(Parameters::parse(row.parameters).value(), row.kinds, kParts);
    const Rate got = rates.rate(row.counts);
    ck_assert_msg(got == row.expected, "%s: expected %lld, got %lld", row.why, static_cast<long long>(row.expected),
                  static_cast<long long>(got));
}
END_TEST

START_TEST(a_part_of_a_gpu_is_never_free) {
    const GpuRates rates(Parameters(), std::vector<TresKind>{{"mps", ""}}, GpuParts{.mps_per_gpu = 1'000'000});
    ck_assert_msg(rates.rate(std::vector<std::uint64_t>{1}) == 1, "U1: less than half of 1/5040 weighs 1/5040");
    ck_assert_msg(rates.rate(std::vector<std::uint64_t>{0}) == 0, "U1: none weighs nothing");
}
END_TEST

START_TEST(unknown_kinds_are_named) {
    const GpuRates rates(
        Parameters::parse("gpu_weight=a100:1").value(),
        std::vector<TresKind>{{"gpu", ""}, {"gpu", "v100"}, {"npu", ""}, {"gpu", "a100"}, {"shard", ""}}, GpuParts{});
    ck_assert_msg(rates.unknown() == std::vector<std::string>({"gpu:v100", "npu", "shard"}),
                  "US-13: kinds with a stand-in weight are named");
    ck_assert_msg(GpuRates(Parameters(), kMixed, kParts).unknown().empty(), "US-13: and no others");
}
END_TEST

Suite* parameters_suite() {
    Suite* suite = suite_create("parameters");
    TCase* tcase = tcase_create("parameters");
    tcase_add_loop_test(tcase, good_row, 0, std::ssize(kGoodRows));
    tcase_add_test(tcase, defaults);
    tcase_add_loop_test(tcase, bad_row, 0, std::ssize(kBadRows));
    tcase_add_test(tcase, a_very_long_text);
    tcase_add_test(tcase, no_locale_matters);
    tcase_add_test(tcase, random_parameters_come_back);
    tcase_add_test(tcase, every_weight_up_to_two_gpus_comes_back);
    tcase_add_loop_test(tcase, weight_row, 0, std::ssize(kWeightRows));
    tcase_add_test(tcase, parts_that_nobody_knows);
    tcase_add_loop_test(tcase, rate_row, 0, std::ssize(kRateRows));
    tcase_add_test(tcase, a_part_of_a_gpu_is_never_free);
    tcase_add_test(tcase, unknown_kinds_are_named);
    suite_add_tcase(suite, tcase);
    return suite;
}

}  // namespace

int main() {
    return run_suite(parameters_suite());
}
