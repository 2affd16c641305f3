// SPDX-License-Identifier: GPL-2.0-or-later
//
// Tests of common/snapshot: what a pass decided can be looked up, and a value
// stays whole and alive under its readers while new ones are published. The
// thread tests are to be run under the thread sanitizer as well.
#include "common/snapshot.h"

#include <atomic>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "tests/check_main.h"

namespace {

using namespace budget;

// root{a(1), b(1)}
Tree two_teams() {
    const std::vector<Association> associations = {
        {.id = 1, .parent_id = 0, .account = "root"},
        {.id = 2, .parent_id = 1, .account = "a"},
        {.id = 3, .parent_id = 1, .account = "b"},
    };
    return Tree::build(associations).value();
}

Snapshot sample() {
    const Tree tree = two_teams();
    std::vector<NodeUsage> usage(tree.nodes().size());
    usage[tree.find(3).value()].allocated.box = 100;
    usage[kRoot].allocated.box = 100;
    std::vector<Rank> ranks = {
        {.job_id = 30, .priority = 700, .position = 3, .leaf = tree.find(3).value(), .eligible_since = 5},
        {.job_id = 10, .priority = 900, .position = 1, .leaf = tree.find(2).value(), .eligible_since = 7},
        {.job_id = 20, .priority = 600, .position = 4, .run_class = RunClass::kUnallocated},
        {.job_id = 10, .priority = 800, .position = 2, .leaf = tree.find(2).value()},
    };
    return Snapshot(1234, std::move(ranks), Claims(tree, usage, RunClass::kAllocated, Parameters(), kGpu));
}

START_TEST(ranks_are_found) {
    const Snapshot snapshot = sample();
    ck_assert_msg(snapshot.pass_time() == 1234, "the pass has a time");
    ck_assert_msg(snapshot.size() == 3, "tasks of one job are one");
    const Rank* rank = snapshot.find(10);
    ck_assert_msg(rank != nullptr && rank->position == 1 && rank->priority == 900 && rank->eligible_since == 7,
                  "an array shows its first place");
    ck_assert_msg(snapshot.find(30) != nullptr && snapshot.find(30)->priority == 700, "the last id is found");
    ck_assert_msg(snapshot.find(20)->run_class == RunClass::kUnallocated, "with its class");
    for (std::uint32_t id : {0U, 9U, 11U, 25U, 31U, ~0U})
        ck_assert_msg(snapshot.find(id) == nullptr, "job %u was not ranked", id);
}
END_TEST

// P3 without the tree, the usage and the parameters that it came from.
START_TEST(claims_outlive_what_they_came_from) {
    const Snapshot snapshot = sample();
    const NodeIndex a = snapshot.find(10)->leaf;
    const NodeIndex b = snapshot.find(30)->leaf;
    ck_assert_msg(snapshot.claims().better(a, b) && !snapshot.claims().better(b, a), "P3: a may take from b");
    ck_assert_msg(snapshot.claims().ratio(a) == 0.0 && snapshot.claims().size() == 3, "U5: ratios are kept");
}
END_TEST

START_TEST(an_empty_pass) {
    const Snapshot snapshot(0, {}, Claims());
    ck_assert_msg(snapshot.find(1) == nullptr && snapshot.size() == 0 && snapshot.claims().size() == 0,
                  "nothing is found");
}
END_TEST

// A value that knows whether it is alive, and whether it is whole.
struct Probe {
    static inline std::atomic<int> alive = 0;
    explicit Probe(std::uint64_t n) : a(n), b(~n) { ++alive; }
    ~Probe() {
        a = 1;
        b = 1;
        --alive;
    }
    bool whole() const { return a == ~b; }
    std::uint64_t a;
    std::uint64_t b;
};

START_TEST(the_newest_is_pinned) {
    Published<Probe> published;
    ck_assert_msg(!published.pin(), "nothing before the first publish");
    published.publish(std::make_unique<Probe>(1));
    ck_assert_msg(published.pin() && published.pin()->a == 1, "then the first");
    published.publish(std::make_unique<Probe>(2));
    ck_assert_msg((*published.pin()).a == 2, "then the second");
    ck_assert_msg(Probe::alive == 1, "and the first is freed, as nobody reads it");
}
END_TEST

START_TEST(a_pin_keeps_its_value) {
    {
        Published<Probe> published;
        published.publish(std::make_unique<Probe>(1));
        auto first = published.pin();
        auto again = published.pin();
        for (std::uint64_t n = 2; n < 50; ++n) published.publish(std::make_unique<Probe>(n));
        ck_assert_msg(first->a == 1 && again->whole() && published.pin()->a == 49, "old readers read on");
        ck_assert_msg(Probe::alive == 2, "only what is read and the newest are alive");
        auto moved = std::move(first);
        ck_assert_msg(!first && moved->a == 1, "a moved pin is empty");
        moved = published.pin();
        published.publish(std::make_unique<Probe>(50));
        ck_assert_msg(again->a == 1 && moved->a == 49 && Probe::alive == 3, "each reader its own");
        again = {};
        moved = {};
        published.publish(std::make_unique<Probe>(51));
        ck_assert_msg(Probe::alive == 1, "values without readers go with the next publish");
    }
    ck_assert_msg(Probe::alive == 0, "and the last with its owner");
}
END_TEST

START_TEST(many_readers_and_a_writer) {
    constexpr std::uint64_t kPublishes = 20'000;
    {
        Published<Probe> published;
        published.publish(std::make_unique<Probe>(1));
        std::atomic<bool> broken = false;
        std::atomic<bool> done = false;
        std::vector<std::thread> readers;
        for (int i = 0; i < 4; ++i) {
            readers.emplace_back([&, i] {
                std::uint64_t last = 0;
                auto held = published.pin();
                for (std::uint64_t n = 0; !done; ++n) {
                    const auto pin = published.pin();
                    if (!pin || !pin->whole() || pin->a < last || !held->whole()) broken = true;
                    last = pin->a;
                    if (n % 64 == static_cast<std::uint64_t>(i)) held = published.pin();
                    std::this_thread::yield();
                }
            });
        }
        for (std::uint64_t n = 2; n <= kPublishes; ++n) published.publish(std::make_unique<Probe>(n));
        done = true;
        for (std::thread& reader : readers) reader.join();
        ck_assert_msg(!broken, "readers see whole values that never get older");
        ck_assert_msg(published.pin()->a == kPublishes, "and the last one at last");
        published.publish(std::make_unique<Probe>(0));
        ck_assert_msg(Probe::alive == 1, "nothing is left over");
    }
    ck_assert_msg(Probe::alive == 0, "nothing at all");
}
END_TEST

Suite* snapshot_suite() {
    Suite* suite = suite_create("snapshot");
    TCase* tcase = tcase_create("snapshot");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, ranks_are_found);
    tcase_add_test(tcase, claims_outlive_what_they_came_from);
    tcase_add_test(tcase, an_empty_pass);
    tcase_add_test(tcase, the_newest_is_pinned);
    tcase_add_test(tcase, a_pin_keeps_its_value);
    tcase_add_test(tcase, many_readers_and_a_writer);
    suite_add_tcase(suite, tcase);
    return suite;
}

}  // namespace

int main() {
    return run_suite(snapshot_suite());
}
