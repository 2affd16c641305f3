// SPDX-License-Identifier: GPL-2.0-or-later
//
// Tests of common/queue: bands, which array tasks get records of their own, the
// numbers, and the memory of first-eligible times. Each row says why.
#include "common/queue.h"

#include <algorithm>
#include <string>
#include <vector>

#include "tests/check_main.h"

namespace {

using namespace budget;

// root{a(1), b(1), c(0)}, each a leaf account.
Tree three_teams() {
    const std::vector<Association> associations = {
        {.id = 1, .parent_id = 0, .account = "root"},
        {.id = 2, .parent_id = 1, .account = "a"},
        {.id = 3, .parent_id = 1, .account = "b"},
        {.id = 4, .parent_id = 1, .account = "c", .shares = 0},
    };
    return Tree::build(associations).value();
}

class Queue {
   public:
    void add(std::uint32_t job_id, AssocId team, std::uint32_t gpus, std::uint32_t tasks = 1,
             std::uint32_t number = 0) {
        QueueEntry entry;
        entry.job.job_id = job_id;
        entry.job.leaf = tree_.find(team).value();
        entry.job.run_class = tree_.node(entry.job.leaf).has_budget ? RunClass::kAllocated : RunClass::kUnallocated;
        entry.job.rate = gpus * kGpu;
        entry.job.eligible_since = job_id;
        entry.job.tasks = tasks;
        entry.number = number;
        entries.push_back(entry);
    }

    std::vector<NumberedPlace> place(std::uint32_t startable_gpus) const {
        const std::vector<NodeUsage> usage(tree_.nodes().size());
        return place_queue(tree_, usage, entries, startable_gpus * kGpu, Parameters());
    }

    // "10.0 11.0 10.1 10r": job and task, r for what remains of an array.
    std::string text(std::uint32_t startable_gpus) const {
        std::string line;
        for (const NumberedPlace& place : place(startable_gpus)) {
            if (!line.empty()) line += ' ';
            line += std::to_string(entries[place.entry].job.job_id);
            line += place.rest ? std::string("r") : "." + std::to_string(place.task);
        }
        return line;
    }

    std::vector<QueueEntry> entries;

   private:
    Tree tree_ = three_teams();
};

struct ArrayRow {
    const char* why;
    std::uint32_t startable;
    std::uint32_t tasks_a;
    std::uint32_t tasks_b;  // 0: team b has no job
    std::uint32_t room_a;   // the array's own limit
    const char* places;
};

constexpr std::uint32_t kNoLimit = std::numeric_limits<std::uint32_t>::max();

const ArrayRow kArrayRows[] = {
    {"Q2: an array alone stays one record", 4, 100, 0, kNoLimit, "10.0"},
    {"Q2: tasks that could start alternate, the rest rank behind", 4, 100, 100, kNoLimit,
     "10.0 11.0 10.1 11.1 10r 11r"},
    {"Q2: nothing is split that cannot start", 0, 100, 100, kNoLimit, "10.0 11.0"},
    {"Q2: an array no longer than what could start is split whole", 8, 2, 2, kNoLimit, "10.0 11.0 10r 11r"},
    {"Q2: the last task needs no split of its own", 8, 1, 3, kNoLimit, "10.0 11.0"},
    {"Q2: only as many tasks ahead as the array's limit lets start", 8, 100, 100, 1, "10.0 11.0 10r 11r"},
};

START_TEST(arrays_are_split_for_what_could_start) {
    for (const ArrayRow& row : kArrayRows) {
        Queue queue;
        queue.add(10, 2, 1, row.tasks_a);
        queue.entries.back().task_room = row.room_a;
        if (row.tasks_b > 0) queue.add(11, 3, 1, row.tasks_b);
        const std::string places = queue.text(row.startable);
        ck_assert_msg(places == row.places, "%s: got %s, wanted %s", row.why, places.c_str(), row.places);
    }
}
END_TEST

START_TEST(every_record_has_exactly_one_number_or_splits_and_a_rest) {
    Queue queue;
    for (std::uint32_t i = 0; i < 60; ++i) queue.add(100 + i, 2 + i % 3, 1 + i % 4, 1 + (i * 7) % 30);
    const std::vector<NumberedPlace> places = queue.place(12);
    for (std::uint32_t entry = 0; entry < queue.entries.size(); ++entry) {
        std::uint32_t tasks = 0;
        std::uint32_t rests = 0;
        for (const NumberedPlace& place : places) {
            if (place.entry != entry) continue;
            ck_assert_uint_eq(place.task, tasks);  // in order, none left out
            ++tasks;
            rests += place.rest ? 1 : 0;
        }
        ck_assert_msg(tasks >= 1 && tasks <= queue.entries[entry].job.tasks, "entry %u has %u records", entry, tasks);
        ck_assert_msg(rests == (tasks > 1 ? 1u : 0u), "entry %u: %u records need a rest", entry, tasks);
    }
}
END_TEST

START_TEST(a_split_array_is_not_split_again) {
    Queue queue;
    queue.add(10, 2, 1, 100);
    queue.add(11, 3, 1, 100);
    constexpr std::uint32_t kStartable = 4;
    std::uint32_t new_id = 50;
    std::vector<QueueEntry> records;
    for (const NumberedPlace& place : queue.place(kStartable)) {
        QueueEntry record = queue.entries[place.entry];
        record.job.array_job_id = record.job.job_id;
        record.job.array_task = place.task;
        if (!place.rest) record.job.job_id = new_id++;  // the rest keeps the array's id
        record.job.tasks = place.rest ? record.job.tasks - place.task : 1;
        record.number = place.number;
        records.push_back(record);
    }
    ck_assert_uint_eq(records.size(), 6);
    queue.entries = records;
    for (const NumberedPlace& place : queue.place(kStartable))
        ck_assert_msg(!place.changed && place.task == 0,
                      "Q2: the rest ranks behind the tasks split off, so nothing is due");
}
END_TEST

START_TEST(numbers_fall_inside_the_bands) {
    Queue queue;
    for (std::uint32_t i = 0; i < 50; ++i) queue.add(100 + i, 2 + i % 3, 1, 1, i % 2 ? 0 : 4'000'000'000u);
    const Bands band = bands(Parameters::Band::kMiddle);
    std::uint32_t last = kPriorityHigh;
    std::uint32_t position = 0;
    for (const NumberedPlace& place : queue.place(8)) {
        const bool allocated = queue.entries[place.entry].job.run_class == RunClass::kAllocated;
        ck_assert_uint_lt(place.number, last);
        ck_assert(allocated ? band.allocated.contains(place.number) : band.unallocated.contains(place.number));
        ck_assert_uint_eq(place.position, ++position);
        ck_assert(place.changed);
        last = place.number;
    }
    ck_assert_uint_eq(position, 50);
}
END_TEST

START_TEST(a_second_pass_changes_nothing) {
    Queue queue;
    for (std::uint32_t i = 0; i < 50; ++i) queue.add(100 + i, 2 + i % 3, 1);
    for (const NumberedPlace& place : queue.place(8)) queue.entries[place.entry].number = place.number;
    for (const NumberedPlace& place : queue.place(8)) ck_assert(!place.changed);
}
END_TEST

START_TEST(bands_do_not_overlap) {
    for (const Parameters::Band where :
         {Parameters::Band::kMiddle, Parameters::Band::kFirst, Parameters::Band::kLast}) {
        const Bands all = bands(where);
        std::vector<NumberBand> sorted = {all.allocated, all.no_gpu, all.unallocated};
        std::sort(sorted.begin(), sorted.end(), [](NumberBand x, NumberBand y) { return x.low < y.low; });
        ck_assert_uint_eq(sorted.front().low, kPriorityLow);
        ck_assert_uint_eq(sorted.back().high, kPriorityHigh);
        for (std::size_t i = 0; i + 1 < sorted.size(); ++i) ck_assert_uint_eq(sorted[i].high, sorted[i + 1].low);
        ck_assert_uint_gt(all.allocated.low, all.unallocated.low);  // Q1
        const bool first = all.no_gpu.low > all.allocated.low;
        const bool last = all.no_gpu.low < all.unallocated.low;
        ck_assert(first == (where == Parameters::Band::kFirst) && last == (where == Parameters::Band::kLast));
    }
}
END_TEST

START_TEST(who_is_being_placed_comes_first) {
    Queue queue;
    queue.add(10, 2, 1);
    queue.add(11, 2, 1);
    queue.add(12, 3, 1);
    queue.add(13, 3, 1);
    queue.add(14, 4, 1);
    ck_assert_msg(queue.text(0) == "10.0 12.0 11.0 13.0 14.0", "%s", queue.text(0).c_str());
    queue.entries[3].being_placed = true;
    queue.entries[1].being_placed = true;
    ck_assert_msg(queue.text(0) == "11.0 13.0 10.0 12.0 14.0", "%s", queue.text(0).c_str());  // P3: in their own order
    std::uint32_t position = 0;
    for (const NumberedPlace& place : queue.place(0)) ck_assert_uint_eq(place.position, ++position);
    queue.entries[4].being_placed = true;
    ck_assert_msg(queue.text(0) == "11.0 13.0 10.0 12.0 14.0", "%s",
                  queue.text(0).c_str());  // Q1: never before allocated jobs
}
END_TEST

START_TEST(first_eligible_is_remembered) {
    FirstEligible memory;
    memory.begin_scan();
    ck_assert_msg(!memory.see(7, std::nullopt), "Q3: a job that waits for a dependency is not eligible yet");
    memory.end_scan();
    memory.begin_scan();
    ck_assert(memory.see(7, 100) == 100);
    memory.end_scan();
    memory.begin_scan();
    ck_assert_msg(memory.see(7, 500) == 100, "Q3: a requeue, which resets Slurm's time, does not move it");
    memory.see(8, 300);
    memory.end_scan();
    memory.begin_scan();
    memory.see(8, 300);
    memory.end_scan();
    ck_assert_uint_eq(memory.size(), 1);
    memory.begin_scan();
    ck_assert_msg(memory.see(7, 900) == 900, "a job that has gone is forgotten, its id may be used again");
    memory.end_scan();
}
END_TEST

START_TEST(first_eligible_outlives_the_process) {
    FirstEligible memory;
    memory.begin_scan();
    memory.see(7, 100);
    memory.see(9, std::nullopt);
    memory.see(8, 50);
    memory.end_scan();
    const std::vector<std::pair<std::uint32_t, Seconds>> image = memory.image();
    const std::vector<std::pair<std::uint32_t, Seconds>> wanted = {{7, 100}, {8, 50}};
    ck_assert_msg(image == wanted, "by id, without those never eligible");

    FirstEligible next;
    next.restore(image);
    next.begin_scan();
    ck_assert_msg(next.see(7, 500) == 100, "Q3: remembered over a restart");
    next.end_scan();
    next.begin_scan();
    ck_assert_msg(next.see(8, 500) == 500, "forgotten when it was gone in the first scan");
}
END_TEST

Suite* queue_suite() {
    Suite* suite = suite_create("queue");
    TCase* tests = tcase_create("queue");
    tcase_add_test(tests, arrays_are_split_for_what_could_start);
    tcase_add_test(tests, every_record_has_exactly_one_number_or_splits_and_a_rest);
    tcase_add_test(tests, a_split_array_is_not_split_again);
    tcase_add_test(tests, numbers_fall_inside_the_bands);
    tcase_add_test(tests, a_second_pass_changes_nothing);
    tcase_add_test(tests, bands_do_not_overlap);
    tcase_add_test(tests, who_is_being_placed_comes_first);
    tcase_add_test(tests, first_eligible_is_remembered);
    tcase_add_test(tests, first_eligible_outlives_the_process);
    suite_add_tcase(suite, tests);
    return suite;
}

}  // namespace

int main() {
    return run_suite(queue_suite());
}
