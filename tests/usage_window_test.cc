// SPDX-License-Identifier: GPL-2.0-or-later
//
// Tests of common/usage_window.h (rule U3): exact at both edges, against figures
// worked out by hand and against a model that goes second by second.

#include "common/usage_window.h"

#include <check.h>

#include <algorithm>
#include <iterator>
#include <random>
#include <vector>

#include "check_main.h"

namespace {

using budget::Edge;
using budget::OwnerIndex;
using budget::Rate;
using budget::Seconds;
using budget::Usage;
using budget::UsageWindow;
using budget::Wide;

void run(UsageWindow& window, OwnerIndex owner, Seconds start, Seconds end, Rate rate) {
    window.add_edge({.at = start, .change = rate, .owner = owner});
    window.add_edge({.at = end, .change = -rate, .owner = owner});
}

Usage usage_at(UsageWindow& window, Seconds now, OwnerIndex owner = 0) {
    window.advance(now);
    window.settle();
    return window.usage(owner);
}

bool is(const Usage& usage, Wide box, Wide tapered2, Rate running) {
    return usage.box == box && usage.tapered2 == tapered2 && usage.running == running;
}

// One run of rate 3 from 100 to 104, seen through a window of 10 seconds. A second that
// began b seconds ago counts 3 in the box, and 3 x (2 (10 - b) + 1) in tapered2.
const struct {
    const char* why;
    Seconds now;
    Wide box;
    Wide tapered2;
    Rate running;
} kPasses[] = {
    {"U3: before its start", 99, 0, 0, 0},
    {"U3: at its start nothing is used, but it runs", 100, 0, 0, 3},
    {"U3: after a second", 101, 3, 3 * 19, 3},
    {"U3: inside", 103, 9, 3 * (19 + 17 + 15), 3},
    {"U3: at its end all is used, and it has ended", 104, 12, 3 * (19 + 17 + 15 + 13), 0},
    {"U3: whole in the window, older", 110, 12, 3 * (7 + 5 + 3 + 1), 0},
    {"U3: the first second has left", 111, 9, 3 * (5 + 3 + 1), 0},
    {"U3: one second is left", 113, 3, 3 * 1, 0},
    {"U3: gone to the second", 114, 0, 0, 0},
    {"RK-11: and stays gone", 1'000'000, 0, 0, 0},
};

START_TEST(passes) {
    const auto& row = kPasses[_i];
    UsageWindow step_by_step(10);
    step_by_step.add_owner();
    run(step_by_step, 0, 100, 104, 3);
    for (const auto& earlier : kPasses) {
        if (earlier.now < row.now) usage_at(step_by_step, earlier.now);
    }
    ck_assert_msg(is(usage_at(step_by_step, row.now), row.box, row.tapered2, row.running), "%s", row.why);

    UsageWindow at_once(10);
    at_once.add_owner();
    run(at_once, 0, 100, 104, 3);
    ck_assert_msg(is(usage_at(at_once, row.now), row.box, row.tapered2, row.running), "in one step: %s", row.why);

    UsageWindow afterwards(10);
    afterwards.add_owner();
    usage_at(afterwards, row.now);
    run(afterwards, 0, 100, 104, 3);
    ck_assert_msg(is(afterwards.usage(0), row.box, row.tapered2, row.running), "added late: %s", row.why);
    usage_at(afterwards, row.now + 1);
    usage_at(at_once, row.now + 1);
    const Usage later = at_once.usage(0);
    ck_assert_msg(is(afterwards.usage(0), later.box, later.tapered2, later.running), "and later on: %s", row.why);
}
END_TEST

START_TEST(longer_than_the_window) {
    UsageWindow window(7 * budget::kDay);
    window.add_owner();
    window.add_edge({.at = 0, .change = 8, .owner = 0});
    ck_assert_msg(usage_at(window, 10 * budget::kDay).box == Wide{8} * 168 * budget::kHour,
                  "US-09: of ten days seven count");
    window.add_edge({.at = 11 * budget::kDay, .change = -8, .owner = 0});
    ck_assert_msg(usage_at(window, 12 * budget::kDay).box == Wide{8} * 144 * budget::kHour,
                  "US-09: a day after its end six count");
}
END_TEST

START_TEST(never_backwards) {
    UsageWindow window(10);
    window.add_owner();
    run(window, 0, 100, 104, 3);
    usage_at(window, 110);
    ck_assert_msg(is(usage_at(window, 90), 12, 3 * (7 + 5 + 3 + 1), 0) && window.now() == 110, "US-16: now stays");
    window.add_edge({.at = 95, .change = 1, .owner = 0});
    ck_assert_msg(window.usage(0).box == 12 + 10, "an edge before the window counts at once");
}
END_TEST

START_TEST(edges_leave) {
    UsageWindow window(10);
    window.add_owner();
    for (Seconds at = 1; at <= 100'000; ++at) {
        window.add_edge({.at = at, .change = at % 2 == 1 ? 1 : -1, .owner = 0});
        window.advance(at);
    }
    window.settle();
    ck_assert_msg(window.edges() == 10, "those before the window are dropped: %zu", window.edges());
    ck_assert_msg(window.usage(0).box == 5, "every second second of ten");
    usage_at(window, 100'011);
    ck_assert_msg(window.edges() == 0 && window.usage(0).box == 0, "all of them, when time goes on");
    run(window, 0, 100, 200, 1);
    ck_assert_msg(window.edges() == 0 && window.usage(0).box == 0, "one that comes too late is not kept");
}
END_TEST

START_TEST(future_edges_wait) {
    UsageWindow window(10);
    window.add_owner();
    run(window, 0, 500, 505, 7);
    ck_assert_msg(is(usage_at(window, 100), 0, 0, 0), "US-16: a start in the future is not charged");
    run(window, 0, 95, 98, 2);
    ck_assert_msg(usage_at(window, 101).box == 6, "nor does it hold up others");
    ck_assert_msg(is(usage_at(window, 502), 14, 7 * (19 + 17), 7), "until its time comes");
}
END_TEST

START_TEST(absurd) {
    UsageWindow window(budget::kMaxWindow);
    window.add_owner();
    const int runs = 4000;
    for (int i = 0; i < runs; ++i) window.add_edge({.at = i, .change = budget::kMaxRate, .owner = 0});
    const Seconds now = budget::kMaxWindow + runs;
    const Usage usage = usage_at(window, now);
    const Wide full = Wide{budget::kMaxRate} * budget::kMaxWindow * runs;
    ck_assert_msg(usage.box == full && budget::gpu_seconds(full) > 1.8e19, "RK-13: more than 1.8e19 GPU-s, exact");
    ck_assert_msg(usage.tapered2 == full * budget::kMaxWindow, "RK-13: tapered too");
    ck_assert_msg(usage.running == budget::kMaxRate * runs, "RK-13: and the rate");
    const Usage far = usage_at(window, budget::kMaxInstant);
    ck_assert_msg(far.box == full && far.tapered2 == usage.tapered2, "RS-11: in the farthest future");
    Usage sum = far;
    for (int i = 0; i < 64; ++i) sum += sum;
    ck_assert_msg(sum.box == budget::kWideMax && sum.tapered2 == budget::kWideMax && sum.running > 0,
                  "RK-13: sums are held at the limit");
}
END_TEST

// The rate of each owner in each second, added up anew for every look.
class Model {
   public:
    static constexpr Seconds kEnd = 700;
    static constexpr OwnerIndex kOwners = 3;

    explicit Model(Seconds length) : length_(length), rate_(kOwners, std::vector<Rate>(kEnd)) {}

    void add_edge(const Edge& edge) {
        for (Seconds s = edge.at; s < kEnd; ++s) rate_[edge.owner][static_cast<std::size_t>(s)] += edge.change;
    }

    Usage usage(OwnerIndex owner, Seconds now) const {
        Usage usage;
        for (Seconds s = std::max<Seconds>(now - length_, 0); s < now; ++s) {
            const Wide rate = rate_[owner][static_cast<std::size_t>(s)];
            usage.box += rate;
            usage.tapered2 += rate * (2 * (length_ - (now - s)) + 1);
        }
        usage.running = rate_[owner][static_cast<std::size_t>(now)];
        return usage;
    }

   private:
    Seconds length_;
    std::vector<std::vector<Rate>> rate_;
};

// Adds runs early and late, takes some back, moves on by fits and starts.
START_TEST(as_second_by_second) {
    std::mt19937 random(static_cast<unsigned>(_i));
    const auto up_to = [&](Seconds n) { return static_cast<Seconds>(random() % static_cast<unsigned>(n + 1)); };
    const Seconds length = 1 + up_to(60);
    UsageWindow window(length);
    Model model(length);
    for (OwnerIndex owner = 0; owner < Model::kOwners; ++owner) window.add_owner();
    std::vector<Edge> added;
    const auto add = [&](const Edge& edge) {
        window.add_edge(edge);
        model.add_edge(edge);
    };
    for (Seconds now = 0; now < Model::kEnd - 1; now += up_to(up_to(9) == 0 ? 2 * length : 2)) {
        const auto owner = static_cast<OwnerIndex>(up_to(Model::kOwners - 1));
        const Seconds start = std::clamp<Seconds>(now + 5 - up_to(up_to(5) == 0 ? 90 : 10), 0, Model::kEnd - 1);
        const Rate rate = up_to(5);
        for (const Edge& edge : {Edge{.at = start, .change = rate, .owner = owner},
                                 Edge{.at = start + up_to(40), .change = -rate, .owner = owner}}) {
            add(edge);
            added.push_back(edge);
        }
        if (up_to(2) == 0) {  // takes a run back
            const auto pick = static_cast<std::size_t>(up_to(std::ssize(added) / 2 - 1)) * 2;
            for (std::size_t i = pick; i < pick + 2; ++i) {
                add({.at = added[i].at, .change = -added[i].change, .owner = added[i].owner});
                added[i].change = 0;
            }
        }
        for (OwnerIndex each = 0; each < Model::kOwners; ++each) {
            const Usage should = model.usage(each, now);
            const Usage usage = usage_at(window, now, each);
            ck_assert_msg(is(usage, should.box, should.tapered2, should.running),
                          "U3: seed %d, owner %u at %ld: box %.0f, should be %.0f", _i, each, static_cast<long>(now),
                          static_cast<double>(usage.box), static_cast<double>(should.box));
        }
    }
}
END_TEST

}  // namespace

int main() {
    Suite* suite = suite_create("usage_window");
    TCase* tcase = tcase_create("usage_window");
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, passes, 0, std::ssize(kPasses));
    tcase_add_test(tcase, longer_than_the_window);
    tcase_add_test(tcase, never_backwards);
    tcase_add_test(tcase, edges_leave);
    tcase_add_test(tcase, future_edges_wait);
    tcase_add_test(tcase, absurd);
    tcase_add_loop_test(tcase, as_second_by_second, 0, rounds(40));
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
