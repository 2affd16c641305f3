// SPDX-License-Identifier: GPL-2.0-or-later
//
// Who may be stopped for whom; see verdicts.h.
#include "plugins/verdicts.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <memory>
#include <utility>

namespace budget {
namespace {

constexpr std::uint32_t kAttempts = 2;
constexpr Seconds kLeftFor = 10 * kMinute;
constexpr Seconds kWakeAgain = 10;  // the scheduler, for a pick that stands
constexpr Seconds kTellAgain = kMinute;

// Several questions of one pass of a scheduler are one attempt.
std::int64_t coarse_seconds() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return now.tv_sec;
}

void count_attempt(Attempts& attempts, std::int64_t now) {
    if (attempts.last.exchange(now, std::memory_order_relaxed) < now)
        attempts.count.fetch_add(1, std::memory_order_relaxed);
}

std::string line_of(const Pick& pick) {
    std::string line = "pick for JobId=" + std::to_string(pick.job_id) + ": victims ";
    const char* separator = "";
    for (const PickedVictim& victim : pick.victims) {
        line += separator + std::to_string(victim.key.job_id);
        separator = ",";
    }
    return line;
}

void restart(Attempts& attempts) {
    attempts.count.store(0);
    attempts.stopped.store(false);
}

}  // namespace

struct Verdicts::Asked {
    struct Entry {
        std::uint32_t job_id;
        std::uint32_t restart_count;
        Seconds latest_start;
        std::uint32_t order;
    };
    std::uint64_t of = 0;  // its serial number: another may come to stand at the same address
    std::uint64_t pass = 0;
    std::uint32_t preemptor = 0;
    std::uint64_t filter = 0;                // bit j: there is a victim whose job id ends in these six bits
    std::vector<Entry> entries = {};         // by job id
    std::vector<std::uint32_t> groups = {};  // heterogeneous jobs of which there are parts, as often
    Attempts* attempts = nullptr;

    const Entry* find(RunKey key) const {
        if (!(filter >> (key.job_id & 63) & 1)) return nullptr;
        const auto at = std::lower_bound(entries.begin(), entries.end(), key.job_id,
                                         [](const Entry& entry, std::uint32_t id) { return entry.job_id < id; });
        return at != entries.end() && at->job_id == key.job_id && at->restart_count == key.restart_count ? &*at
                                                                                                         : nullptr;
    }
};

Verdicts::Verdicts(std::int64_t (*clock)()) : clock_(clock ? clock : coarse_seconds) {
    static std::atomic<std::uint64_t> last = 0;
    serial_ = ++last;
}

Verdicts::Asked& Verdicts::asked() {
    thread_local Asked asked;
    return asked;
}

const Pick* Verdicts::Table::find(std::uint32_t job_id) const {
    const auto at = std::lower_bound(picks.begin(), picks.end(), job_id,
                                     [](const Pick& pick, std::uint32_t id) { return pick.job_id < id; });
    return at != picks.end() && at->job_id == job_id ? &*at : nullptr;
}

void Verdicts::look_up(Asked& asked, std::uint32_t preemptor) const {
    asked.of = serial_;
    asked.preemptor = preemptor;
    asked.filter = 0;
    asked.entries.clear();
    asked.groups.clear();
    asked.attempts = nullptr;
    const auto table = table_.pin();
    asked.pass = table ? table->pass : 0;
    const Pick* pick = table ? table->find(preemptor) : nullptr;
    if (!pick) return;
    asked.attempts = table->attempts[static_cast<std::size_t>(pick - table->picks.data())];
    std::uint32_t order = 0;
    for (const PickedVictim& victim : pick->victims) {
        asked.filter |= std::uint64_t{1} << (victim.key.job_id & 63);
        if (victim.group != 0) asked.groups.push_back(victim.group);
        asked.entries.push_back({victim.key.job_id, victim.key.restart_count, victim.latest_start, order++});
    }
    std::sort(asked.entries.begin(), asked.entries.end(),
              [](const Asked::Entry& a, const Asked::Entry& b) { return a.job_id < b.job_id; });
}

Verdicts::Asked& Verdicts::asked_for(std::uint32_t preemptor) {
    Asked& asked = Verdicts::asked();
    if (asked.preemptor != preemptor || asked.pass != published_.load(std::memory_order_acquire) || asked.of != serial_)
        look_up(asked, preemptor);
    return asked;
}

bool Verdicts::stops_parts(std::uint32_t preemptor, std::uint32_t het_job) {
    const Asked& asked = asked_for(preemptor);
    return std::find(asked.groups.begin(), asked.groups.end(), het_job) != asked.groups.end();
}

bool Verdicts::preemptable(std::uint32_t preemptor, RunKey victim, Seconds start) {
    const Asked& asked = asked_for(preemptor);
    const Asked::Entry* entry = asked.find(victim);
    if (!entry || start > entry->latest_start) return false;
    if (voided_[victim.job_id % voided_.size()].load() >= asked.pass) return false;
    if (entry == asked.entries.data() && asked.attempts) count_attempt(*asked.attempts, clock_());
    return true;
}

std::uint32_t Verdicts::victim_order(RunKey victim) const {
    const Asked& asked = Verdicts::asked();
    const Asked::Entry* entry = asked.of == serial_ ? asked.find(victim) : nullptr;
    return entry ? entry->order : std::numeric_limits<std::uint32_t>::max();
}

std::optional<Verdicts::Stop> Verdicts::preempting(RunKey victim) {
    const Asked& asked = Verdicts::asked();
    if (asked.of != serial_) return {};
    const auto table = table_.pin();
    const Pick* pick = table ? table->find(asked.preemptor) : nullptr;
    if (!pick) return {};
    const auto at = std::find_if(pick->victims.begin(), pick->victims.end(),
                                 [&](const PickedVictim& each) { return each.key == victim; });
    if (at == pick->victims.end()) return {};
    if (Attempts* attempts = table->attempts[static_cast<std::size_t>(pick - table->picks.data())])
        attempts->stopped.store(true);
    preempted_.fetch_add(1);
    return Stop{
        .job_id = pick->job_id, .ours = pick->ours, .leaf = pick->leaf, .account = pick->account, .victim = *at};
}

// A pass whose views were collected before the change may be under way, or may not have begun yet.
void Verdicts::contract_changed(std::uint32_t job_id) {
    voided_[job_id % voided_.size()].store(passes_.load() + 1);
}

std::vector<std::uint32_t> Verdicts::drop_failed(Seconds now) {
    std::vector<std::uint32_t> dropped;
    for (const auto& [job_id, standing] : standing_) {
        const Attempts* attempts = standing.attempts;
        if (!attempts || attempts->count.load() < kAttempts || attempts->stopped.load()) continue;
        left_[job_id] = {.until = now + kLeftFor};
        dropped.push_back(job_id);
    }
    std::sort(dropped.begin(), dropped.end());
    for (const std::uint32_t job_id : dropped) {
        spare_attempts_.push_back(standing_[job_id].attempts);
        standing_.erase(job_id);
    }
    left_count_.fetch_add(dropped.size());
    std::erase_if(left_, [&](const auto& each) { return each.second.until <= now; });
    return dropped;
}

bool Verdicts::is_left(std::uint32_t job_id, const PlacementRequest& request, Seconds now) {
    const auto at = left_.find(job_id);
    if (at == left_.end()) return false;
    Left& left = at->second;
    if (!left.request) left.request = request;
    if (left.until > now && *left.request == request) return true;
    left_.erase(at);
    return false;
}

Attempts* Verdicts::new_attempts() {
    if (spare_attempts_.empty()) return &all_attempts_.emplace_back();
    Attempts* attempts = spare_attempts_.back();
    spare_attempts_.pop_back();
    restart(*attempts);
    return attempts;
}

void Verdicts::take_up(const Pick& pick, Seconds now, News& news) {
    Standing& standing = standing_[pick.job_id];
    std::vector<RunKey> victims;
    for (const PickedVictim& victim : pick.victims) victims.push_back(victim.key);
    const bool is_new = !standing.seen || pick.ours != (standing.attempts != nullptr);
    const bool changed = is_new || victims != standing.victims;
    if (is_new && standing.attempts) spare_attempts_.push_back(std::exchange(standing.attempts, nullptr));
    if (is_new && pick.ours) {
        standing.attempts = new_attempts();
        picks_.fetch_add(1);
    } else if (changed && standing.attempts && standing.attempts->stopped.load()) {
        restart(*standing.attempts);
    }
    if (pick.ours && (is_new || (changed && now >= standing.told + kTellAgain))) {
        standing.told = now;
        news.lines.push_back(line_of(pick));
    }
    if (changed || now >= standing.woken + kWakeAgain) {
        standing.woken = now;
        news.wake = true;
    }
    standing.seen = true;
    standing.victims = std::move(victims);
    standing.pass = passes_.load();
}

void Verdicts::forget_gone() {
    std::erase_if(standing_, [&](const auto& each) {
        if (each.second.pass == passes_.load()) return false;
        if (each.second.attempts) spare_attempts_.push_back(each.second.attempts);
        return true;
    });
}

Verdicts::News Verdicts::publish(std::vector<Pick> picks, Seconds now) {
    News news;
    auto table = std::make_unique<Table>();
    table->pass = passes_.load();
    std::stable_sort(picks.begin(), picks.end(), [](const Pick& a, const Pick& b) { return a.job_id < b.job_id; });
    // Tasks of an array record have one job id: the first in the queue is the one that Slurm looks at.
    picks.erase(
        std::unique(picks.begin(), picks.end(), [](const Pick& a, const Pick& b) { return a.job_id == b.job_id; }),
        picks.end());
    std::erase_if(picks, [](const Pick& pick) { return pick.held_back; });
    for (const Pick& pick : picks) {
        take_up(pick, now, news);
        table->attempts.push_back(standing_[pick.job_id].attempts);
    }
    forget_gone();
    table->picks = std::move(picks);
    const std::uint64_t pass = table->pass;
    table_.publish(std::move(table));
    published_.store(pass, std::memory_order_release);
    return news;
}

namespace {

// GPU weight in GPUs, as in a tag.
std::string gpus(Rate rate) {
    char shown[32];
    std::snprintf(shown, sizeof(shown), "%.3f", static_cast<double>(rate) / static_cast<double>(kGpu));
    std::string number = shown;
    number.erase(number.find_last_not_of('0') + 1);
    if (number.back() == '.') number.pop_back();
    return number;
}

PreemptedFor::Reason reason_of(Right right) {
    using Reason = PreemptedFor::Reason;
    if (right == Right::kUnallocated) return Reason::kUnallocated;
    return right == Right::kClaim ? Reason::kClaim : Reason::kPriority;
}

std::int64_t millis(double ratio) {
    return std::llround(ratio * 1000);
}

}  // namespace

std::string to_string(const Verdicts::Stop& stop, Seconds now) {
    const PickedVictim& victim = stop.victim;
    std::string line = "preempting JobId=" + std::to_string(victim.key.job_id) +
                       " restart=" + std::to_string(victim.key.restart_count) + " leaf=\"" + victim.leaf +
                       "\" class=" + (victim.run_class == RunClass::kAllocated ? "allocated" : "unallocated") +
                       " contract=" + std::to_string(victim.contract) + " start=" + std::to_string(victim.start) +
                       " over=" + std::to_string(now - victim.protected_until) + " gpus=" + gpus(victim.rate) +
                       " for JobId=" + std::to_string(stop.job_id) + " leaf=\"" + stop.leaf +
                       "\" right=" + std::string(name_of(reason_of(victim.right)));
    if (victim.right == Right::kClaim)
        line +=
            " ratios=" + millis_text(millis(victim.preemptor_ratio)) + "/" + millis_text(millis(victim.victim_ratio));
    return line + (stop.ours ? " pick=ours" : " pick=slurm");
}

PreemptedFor reason(const Verdicts::Stop& stop, Seconds now, bool names) {
    const PickedVictim& victim = stop.victim;
    PreemptedFor reason{.job_id = stop.job_id,
                        .reason = reason_of(victim.right),
                        .over = std::max<Seconds>(now - victim.protected_until, 0)};
    if (names) reason.account = stop.account;
    if (victim.right != Right::kClaim) return reason;
    reason.preemptor_ratio_millis = millis(victim.preemptor_ratio);
    reason.victim_ratio_millis = millis(victim.victim_ratio);
    return reason;
}

}  // namespace budget
