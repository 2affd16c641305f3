// SPDX-License-Identifier: GPL-2.0-or-later
//
// Ranking, splitting and numbering of the pending jobs; see queue.h.
#include "queue.h"

#include <algorithm>
#include <cassert>

namespace budget {

namespace {

// Tasks of one array that get records of their own at the most: a bound on the
// work of one pass, far above what one pass starts.
constexpr std::uint32_t kMaxTasksAhead = 512;

// How many tasks of the record could start at the next pass, and one more, so
// that the rest of the array never stands where a startable task would.
std::uint32_t tasks_ahead(const QueueEntry& entry, Rate startable) {
    const Rate rate = std::max<Rate>(entry.job.rate, 1);
    const Rate fit = startable / rate + 1;
    const auto bound = static_cast<std::uint32_t>(std::min<Rate>(fit, kMaxTasksAhead));
    const std::uint32_t room = std::max<std::uint32_t>(entry.task_room, 1);
    return std::min({entry.job.tasks, bound, room});
}

std::vector<PendingJob> pending_jobs(std::span<const QueueEntry> entries, Rate startable) {
    std::vector<PendingJob> jobs;
    jobs.reserve(entries.size());
    for (const QueueEntry& entry : entries) {
        PendingJob job = entry.job;
        job.tasks_ahead = tasks_ahead(entry, startable);
        job.eligible = job.eligible && entry.task_room > 0;
        jobs.push_back(job);
    }
    return jobs;
}

// How many tasks of each entry get records of their own: those before the last
// unbroken run of its places, and none behind the point at which the jobs ahead
// that can start at all have taken everything that can become free.
std::vector<std::uint32_t> splits(std::span<const Place> places, std::span<const QueueEntry> entries, Rate startable) {
    std::vector<std::uint32_t> last(entries.size(), 0);  // the last place each entry has
    for (const Place& place : places) last[place.job] = std::max(last[place.job], place.task);
    std::vector<std::uint32_t> split(entries.size(), 0);
    Rate taken = 0;
    for (std::size_t i = 0; i + 1 < places.size() && taken < startable; ++i) {
        const std::uint32_t entry = places[i].job;
        const PendingJob& job = entries[entry].job;
        if (places[i + 1].job != entry) split[entry] = std::min(places[i].task + 1, last[entry]);
        if (job.eligible && job.rate <= startable) taken += job.rate;
    }
    return split;
}

// The places as records: tasks split off, then the rest of the array as one.
std::vector<NumberedPlace> records(std::span<const Place> places, std::span<const QueueEntry> entries, Rate startable) {
    const std::vector<std::uint32_t> split = splits(places, entries, startable);
    std::vector<NumberedPlace> result;
    result.reserve(entries.size());
    for (const Place& place : places) {
        if (place.task > split[place.job]) continue;  // part of the rest
        NumberedPlace record;
        record.entry = place.job;
        record.task = place.task;
        record.rest = split[place.job] > 0 && place.task == split[place.job];
        result.push_back(record);
    }
    return result;
}

void number_band(std::span<NumberedPlace> places, std::span<const QueueEntry> entries, NumberBand band) {
    std::vector<std::uint32_t> numbers;
    numbers.reserve(places.size());
    for (const NumberedPlace& place : places) numbers.push_back(place.task == 0 ? entries[place.entry].number : 0);
    renumber(numbers, band);
    for (std::size_t i = 0; i < places.size(); ++i) {
        places[i].number = numbers[i];
        places[i].changed = places[i].task > 0 || numbers[i] != entries[places[i].entry].number;
    }
}

}  // namespace

Bands bands(Parameters::Band no_gpu) {
    constexpr std::uint32_t kWide = std::uint32_t{1} << 30;
    constexpr std::uint32_t kNarrow = std::uint32_t{1} << 28;
    switch (no_gpu) {
        case Parameters::Band::kFirst:
            return {.allocated = {kNarrow, kWide},
                    .no_gpu = {kWide, kPriorityHigh},
                    .unallocated = {kPriorityLow, kNarrow}};
        case Parameters::Band::kLast:
            return {.allocated = {kWide + kNarrow, kPriorityHigh},
                    .no_gpu = {kPriorityLow, kWide},
                    .unallocated = {kWide, kWide + kNarrow}};
        case Parameters::Band::kMiddle:
            break;
    }
    return {.allocated = {kWide + kNarrow, kPriorityHigh},
            .no_gpu = {kNarrow, kWide + kNarrow},
            .unallocated = {kPriorityLow, kNarrow}};
}

std::vector<NumberedPlace> place_queue(const Tree& tree, std::span<const NodeUsage> usage,
                                       std::span<const QueueEntry> entries, Rate startable,
                                       const Parameters& parameters) {
    const std::vector<PendingJob> jobs = pending_jobs(entries, startable);
    const std::vector<Place> places = order(tree, usage, jobs, parameters);
    std::vector<NumberedPlace> result = records(places, entries, startable);
    const auto first_unallocated = std::find_if(result.begin(), result.end(), [&](const NumberedPlace& place) {
        return class_in_queue(tree, entries[place.entry].job) == RunClass::kUnallocated;
    });
    std::stable_partition(result.begin(), first_unallocated, [&](const NumberedPlace& place) {
        return entries[place.entry].being_placed && place.task == 0;
    });
    for (std::size_t i = 0; i < result.size(); ++i) result[i].position = static_cast<std::uint32_t>(i + 1);
    const auto allocated_count = static_cast<std::size_t>(first_unallocated - result.begin());
    const Bands band = bands(parameters.no_gpu_band);
    number_band(std::span(result).first(allocated_count), entries, band.allocated);
    number_band(std::span(result).subspan(allocated_count), entries, band.unallocated);
    return result;
}

void FirstEligible::begin_scan() {
    ++scan_;
}

std::optional<Seconds> FirstEligible::see(std::uint32_t job_id, std::optional<Seconds> eligible_time) {
    Memory& memory = jobs_[job_id];
    memory.scan = scan_;
    if (!memory.since) memory.since = eligible_time;
    return memory.since;
}

void FirstEligible::end_scan() {
    std::erase_if(jobs_, [&](const auto& job) { return job.second.scan != scan_; });
}

std::vector<std::pair<std::uint32_t, Seconds>> FirstEligible::image() const {
    std::vector<std::pair<std::uint32_t, Seconds>> image;
    for (const auto& [job_id, memory] : jobs_)
        if (memory.since) image.emplace_back(job_id, *memory.since);
    std::sort(image.begin(), image.end());
    return image;
}

void FirstEligible::restore(std::span<const std::pair<std::uint32_t, Seconds>> image) {
    for (const auto& [job_id, since] : image) jobs_.try_emplace(job_id, Memory{.since = since, .scan = scan_});
}

}  // namespace budget
