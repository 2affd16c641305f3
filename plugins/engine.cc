// SPDX-License-Identifier: GPL-2.0-or-later
//
// The engine behind engine.h: parameters, one lock and the policy. Converts
// views of Slurm's records to the policy's types and back; decides nothing
// itself. One instance per process, shared by all plugins of slurmctld. Its
// lock is the innermost one; messages are handed out after it is released.
#include "plugins/engine.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/claim.h"
#include "common/contract.h"
#include "common/fair_tree.h"
#include "common/ledger.h"
#include "common/parameters.h"
#include "common/queue.h"
#include "common/rebuild.h"
#include "common/run_tag.h"
#include "common/run_terms.h"
#include "common/shares.h"
#include "common/snapshot.h"
#include "common/time_text.h"
#include "common/tree.h"
#include "plugins/ledger_file.h"
#include "plugins/notices.h"
#include "plugins/picks.h"
#include "plugins/terms.h"
#include "plugins/verdicts.h"
#include "plugins/views.h"

namespace budget {
namespace {

static_assert(BUDGET_SHARES_PARENT == kSharesParent);
static_assert(BUDGET_PRIORITY_LOW == kPriorityLow && BUDGET_PRIORITY_HIGH == kPriorityHigh);

// Lines for the log, collected under the lock and handed out after it.
class Messages {
   public:
    void error(std::string line) { lines_.emplace_back(BUDGET_LOG_ERROR, std::move(line)); }
    void info(std::string line) { lines_.emplace_back(BUDGET_LOG_INFO, std::move(line)); }
    void send(budget_log_fn log) const {
        if (!log) return;
        for (const auto& [level, line] : lines_) log(level, line.c_str());
    }

   private:
    std::vector<std::pair<budget_log_level, std::string>> lines_;
};

// The association list of Slurm with names of our own, so that it outlives the call.
class Associations {
   public:
    Associations() = default;
    explicit Associations(std::span<const budget_association> views) {
        list_.reserve(views.size());
        for (const budget_association& view : views)
            list_.push_back({.id = view.id,
                             .parent_id = view.parent_id,
                             .account = keep(view.account),
                             .user = keep(view.user),
                             .partition = keep(view.partition),
                             .shares = view.shares});
    }
    std::span<const Association> list() const { return list_; }

   private:
    std::string_view keep(const char* s) { return text(s).empty() ? std::string_view() : names_.emplace_back(s); }

    std::deque<std::string> names_;  // stable addresses
    std::vector<Association> list_;
};

// What a pass hands to its caller.
struct PassMemory {
    std::vector<budget_place> places;
    std::vector<budget_share> shares;
    std::vector<budget_tagging> taggings;
    std::vector<budget_signal> signals;
};

// A clock that is put back by more is believed; by more than the second, runs may have been forgotten. What two
// controllers' clocks differ by is less.
constexpr Seconds kClockJitter = 5 * kMinute;
constexpr Seconds kClockAstray = kHour;

// A message that would come again and again is logged as often at most.
constexpr Seconds kLogAgain = 10 * kMinute;

// Before the instant of saving, what slurmctld's database and its memory may still differ in.
constexpr Seconds kGapMargin = kMinute;

// An instant as Slurm's log and commands show it.
std::string instant(Seconds at) {
    const std::time_t time = at;
    std::tm parts{};
    char shown[32] = "?";
    if (localtime_r(&time, &parts)) std::strftime(shown, sizeof(shown), "%FT%T", &parts);
    return shown;
}

std::optional<Seconds> time_limit(const budget_job& job) {
    return job.time_limit > 0 ? std::optional<Seconds>(job.time_limit) : std::nullopt;
}

class Engine {
   public:
    static Engine& instance() {
        static Engine engine;
        return engine;
    }

    void set_log(budget_log_fn to) { log_.store(to); }
    void send(const Messages& messages) const { messages.send(log_.load()); }

    bool configure(std::string_view parameters, Messages& messages);
    Bands number_bands() const { return bands(band_.load()); }
    void set_tres(std::vector<TresKind> kinds, GpuParts parts, Messages& messages);
    Rate rate(std::span<const std::uint64_t> counts);
    bool set_tree(std::span<const budget_association> views, Messages& messages);
    bool pass(budget_pass& pass, Messages& messages);
    void job_ended(const budget_job& job);
    bool rank(std::uint32_t job_id, budget_rank& rank) const;

    void use_contracts() { uses_contracts_.store(true); }
    void use_preemption() { preempts_.store(true); }
    bool preempts() const { return preempts_.load(); }
    Verdicts& verdicts() { return verdicts_; }
    std::string preempting(RunKey victim, Seconds now, bool names, std::string_view comment, Messages& messages);

    void load(const std::string& folder, Seconds now, Messages& messages);
    bool save(const std::string& folder, Messages& messages);
    budget_gap gap(Seconds now);
    bool fill_gap(const budget_gap& part, std::string_view text, char delimiter, std::string_view slurm_user,
                  Messages& messages);
    void gap_failed(Seconds now, std::string_view reason, Messages& messages);

   private:
    void weigh(Messages& messages);
    RunClass class_of(std::uint32_t assoc_id) const;
    RunView run_view(const budget_job& job) const;
    void take_up_run(const budget_job& job) { ledger_.observe(run_view(job)); }
    bool is_job_exempt(const budget_job& job) const {
        return job.never_victim || is_exempt(text(job.partitions), text(job.qos), parameters_);
    }
    std::vector<std::optional<RunTag>> pending_tags(const budget_pass& pass) const;
    std::vector<PendingTerms> settle_pending(const budget_pass& pass,
                                             std::span<const std::optional<RunTag>> tags) const;
    void take_up_tags(const budget_pass& pass, std::span<const std::optional<RunTag>> pending,
                      PassMemory& memory) const;
    void follow_clock(Seconds now, Messages& messages);
    void restore(const State& state, Seconds now, Messages& messages);
    State state() const;
    void tell_of_past(const Gap::Part& part, const PastCounts& counts, bool is_all, Messages& messages);
    void take_up_runs(const budget_pass& pass);
    std::vector<QueueEntry> queue_entries(const budget_pass& pass, std::span<const PendingTerms> pending,
                                          std::vector<std::uint32_t>& jobs);
    std::vector<Waiting> waiting(const budget_pass& pass, std::span<const PendingTerms> pending,
                                 std::span<const QueueEntry> entries, std::span<const NumberedPlace> places,
                                 std::span<const std::uint32_t> jobs) const;
    void pick_victims(budget_pass& pass, std::vector<Waiting> queue, PassMemory& memory, Messages& messages);
    Rate startable(const budget_pass& pass);
    void publish(const budget_pass& pass, std::span<const QueueEntry> entries, std::span<const NumberedPlace> places,
                 Claims claims);
    void fill_shares(PassMemory& memory, const Claims& claims);

    std::mutex mutex_;
    Parameters parameters_;
    std::vector<TresKind> kinds_;
    GpuParts parts_;
    Associations associations_;
    Tree tree_;
    bool has_tree_ = false;
    Ledger ledger_{Parameters().window};
    FirstEligible first_eligible_;
    Seconds loaded_at_ = 0;  // runs from before were not seen starting

    // What was before (U10).
    Gap gap_;
    bool all_wanted_ = false;        // the usage of the whole window, however long that will be
    bool fetching_all_ = false;      // gap_ is that
    Seconds incomplete_before_ = 0;  // 0: usage is complete
    PastCounts fetched_;             // by the parts of the gap so far
    Seconds gap_logged_ = 0;

    // The file; its own lock, since writing takes long.
    std::mutex file_mutex_;
    FileCalls file_calls_;
    StateFile file_{file_calls_};
    Seconds save_failed_logged_ = 0;

    // Apart from mutex_, so that nobody who holds a lock of Slurm waits for a pass.
    std::atomic<Parameters::Band> band_{Parameters::Band::kMiddle};
    std::mutex rates_mutex_;
    GpuRates rates_;
    std::mutex hints_mutex_;
    std::vector<budget_job> hints_;

    std::atomic<bool> uses_contracts_{false};
    std::atomic<bool> preempts_{false};
    Notices notices_;
    Verdicts verdicts_;

    Published<Snapshot> snapshot_;
    std::atomic<budget_log_fn> log_{nullptr};
};

bool Engine::configure(std::string_view parameters, Messages& messages) {
    Result<Parameters> parsed = Parameters::parse(parameters);
    if (!parsed) {
        messages.error("PriorityParameters: " + parsed.error() + "; the last good parameters stay in force");
        const std::lock_guard lock(mutex_);
        Terms::instance().set_parameters(parameters_);
        return false;
    }
    const std::lock_guard lock(mutex_);
    const bool changed = parameters_ != parsed.value();
    if (parameters_.window < parsed.value().window) all_wanted_ = true;
    if (parameters_.window != parsed.value().window) ledger_.set_window(parsed.value().window);
    parameters_ = std::move(parsed).value();
    ledger_.set_unused_charge(parameters_.unused_charge_millis);
    band_.store(parameters_.no_gpu_band);
    Terms::instance().set_parameters(parameters_);
    weigh(messages);
    if (changed || !has_tree_) messages.info("parameters in force: " + to_string(parameters_));
    return true;
}

void Engine::set_tres(std::vector<TresKind> kinds, GpuParts parts, Messages& messages) {
    const std::lock_guard lock(mutex_);
    kinds_ = std::move(kinds);
    parts_ = parts;
    weigh(messages);
}

void Engine::weigh(Messages& messages) {
    GpuRates rates(parameters_, kinds_, parts_);
    for (const std::string& kind : rates.unknown())
        messages.error("no weight is known for gres/" + kind +
                       ": it counts as one whole GPU of the default; add it to gpu_weight= in PriorityParameters");
    const std::lock_guard lock(rates_mutex_);
    rates_ = std::move(rates);
}

Rate Engine::rate(std::span<const std::uint64_t> counts) {
    const std::lock_guard lock(rates_mutex_);
    return rates_.rate(counts);
}

bool Engine::set_tree(std::span<const budget_association> views, Messages& messages) {
    Associations associations(views);
    Result<Tree> tree = Tree::build(associations.list());
    if (!tree) {
        messages.error("association tree: " + tree.error() + "; the last good tree stays in force");
        return false;
    }
    const std::lock_guard lock(mutex_);
    associations_ = std::move(associations);
    tree_ = std::move(tree).value();
    ledger_.set_tree(associations_.list(), tree_);
    Terms::instance().set_tree(associations_.list(), tree_);
    has_tree_ = true;
    return true;
}

RunClass Engine::class_of(std::uint32_t assoc_id) const {
    const std::optional<NodeIndex> leaf = tree_.find(assoc_id);
    return leaf && tree_.node(*leaf).has_budget ? RunClass::kAllocated : RunClass::kUnallocated;
}

RunView Engine::run_view(const budget_job& job) const {
    RunView run;
    run.key = {.job_id = job.job_id, .restart_count = job.restart_count};
    run.assoc = job.assoc_id;
    run.rate = job.rate;
    run.start = job.start;
    if (job.state == BUDGET_JOB_ENDED) run.end = job.end;
    run.suspended = job.state == BUDGET_JOB_SUSPENDED;
    run.changed = job.changed;
    run.suspended_before = job.suspended_before;
    run.submitted = job.submitted;
    run.by_itself = job.by_itself;
    RunSigns signs = {.by_budget = class_of(job.assoc_id),
                      .seen_starting = job.start >= loaded_at_,
                      .broken = job.broken,
                      .by_operator = job.by_operator,
                      .never_victim = job.never_victim,
                      .contracts_in_force = uses_contracts_.load(),
                      .longest = parameters_.max_min_runtime,
                      .now = ledger_.now(),
                      .time_limit = time_limit(job)};
    if (job.tag.readable) signs.tag = tag_of(job.tag);
    const Run* known = ledger_.find(run.key);
    // What has ended stays with whom it was charged to: of a requeued job the account may be another by now.
    if (known && run.end && !is_another_job(*known, run)) run.assoc = 0;
    settle_terms(run, known, signs);
    return run;
}

// By job of the pass; nothing of those that are not pending, and of those whose record need not say anything.
std::vector<std::optional<RunTag>> Engine::pending_tags(const budget_pass& pass) const {
    std::vector<std::optional<RunTag>> tags(pass.job_count);
    std::unordered_map<std::uint32_t, std::vector<std::size_t>> het_jobs;
    for (std::size_t i = 0; i < pass.job_count; ++i) {
        const budget_job& job = pass.jobs[i];
        if (job.state != BUDGET_JOB_PENDING) continue;
        if (job.tag.readable) tags[i] = tag_of(job.tag);
        tags[i] = pending_tag(tags[i], time_limit(job), is_job_exempt(job), uses_contracts_.load(), parameters_);
        if (job.het_job_id != 0 && uses_contracts_.load()) het_jobs[job.het_job_id].push_back(i);
    }
    for (const auto& [job_id, indices] : het_jobs) {
        std::vector<PendingPart> parts;
        for (const std::size_t i : indices) {
            const std::optional<NodeIndex> leaf = tree_.find(pass.jobs[i].assoc_id);
            parts.push_back({.tag = *tags[i],
                             .without_budget = leaf && !tree_.node(*leaf).has_budget,
                             .time_limit = time_limit(pass.jobs[i])});
        }
        settle_parts(parts);
        for (std::size_t part = 0; part < parts.size(); ++part) tags[indices[part]] = parts[part].tag;
    }
    return tags;
}

std::vector<PendingTerms> Engine::settle_pending(const budget_pass& pass,
                                                 std::span<const std::optional<RunTag>> tags) const {
    std::vector<PendingTerms> terms(pass.job_count);
    for (std::size_t i = 0; i < pass.job_count; ++i) {
        const budget_job& job = pass.jobs[i];
        if (job.state != BUDGET_JOB_PENDING) continue;
        const bool has_budget = class_of(job.assoc_id) == RunClass::kAllocated;
        terms[i] = pending_terms(tags[i], has_budget, time_limit(job), is_job_exempt(job), uses_contracts_.load(),
                                 parameters_);
    }
    return terms;
}

// What the records of runs that are on and of pending jobs have to bear, where they do not.
void Engine::take_up_tags(const budget_pass& pass, std::span<const std::optional<RunTag>> pending,
                          PassMemory& memory) const {
    for (std::size_t i = 0; i < pass.job_count; ++i) {
        const budget_job& job = pass.jobs[i];
        budget_tag wanted{};
        if (job.state == BUDGET_JOB_RUNNING || job.state == BUDGET_JOB_SUSPENDED) {
            const Run* run = ledger_.find({.job_id = job.job_id, .restart_count = job.restart_count});
            if (!run) continue;
            wanted = shown_tag(tag_for(*run, job.rate, job.beyond_tres, uses_contracts_.load()));
        } else if (job.state == BUDGET_JOB_PENDING && uses_contracts_.load()) {
            wanted = shown_tag(*pending[i]);
            wanted.rate = job.tag.rate;
            wanted.has_reason = job.tag.has_reason;  // why its last run was stopped
        } else {
            continue;
        }
        if (job.tag.readable && tag_of(job.tag) == tag_of(wanted) && job.tag.has_reason == wanted.has_reason) continue;
        memory.taggings.push_back({.job = static_cast<std::uint32_t>(i), .tag = wanted});
    }
}

void Engine::take_up_runs(const budget_pass& pass) {
    std::vector<budget_job> hints;
    {
        const std::lock_guard lock(hints_mutex_);
        hints.swap(hints_);
    }
    ledger_.begin_scan(pass.now);
    for (const budget_job& job : hints) take_up_run(job);
    for (const budget_job& job : std::span(pass.jobs, pass.job_count))
        if (job.state != BUDGET_JOB_PENDING) take_up_run(job);
    ledger_.end_scan();
    ledger_.advance(pass.now);
}

std::vector<QueueEntry> Engine::queue_entries(const budget_pass& pass, std::span<const PendingTerms> pending,
                                              std::vector<std::uint32_t>& jobs) {
    std::vector<QueueEntry> entries;
    first_eligible_.begin_scan();
    for (std::size_t i = 0; i < pass.job_count; ++i) {
        const budget_job& job = pass.jobs[i];
        std::optional<Seconds> eligible_time;
        if (job.eligible_time > 0 && job.eligible_time <= pass.now) eligible_time = job.eligible_time;
        const std::optional<Seconds> since = first_eligible_.see(job.job_id, eligible_time);
        if (job.state != BUDGET_JOB_PENDING || job.held) continue;
        QueueEntry entry;
        entry.job.job_id = job.job_id;
        entry.job.array_job_id = job.array_job_id;
        entry.job.array_task = job.array_task;
        entry.job.leaf = tree_.find(job.assoc_id).value_or(kRoot);
        entry.job.run_class = pending[i].run_class;
        entry.job.contract = pending[i].contract;
        entry.job.rate = job.rate;
        entry.job.qos_priority = job.qos_priority;
        entry.job.nice = job.nice;
        entry.job.eligible_since = since.value_or(pass.now);
        entry.job.tasks = std::max<std::uint32_t>(job.tasks, 1);
        entry.job.eligible = job.eligible;
        entry.number = job.priority;
        entry.task_room = job.task_room;
        entry.being_placed = job.being_placed;
        entries.push_back(entry);
        jobs.push_back(static_cast<std::uint32_t>(i));
    }
    first_eligible_.end_scan();
    return entries;
}

// What could be free at the next pass of the scheduler: what is idle, and what
// the largest run now on gives back should it end.
Rate Engine::startable(const budget_pass& pass) {
    Rate largest = 0;
    for (const budget_job& job : std::span(pass.jobs, pass.job_count))
        if (job.state == BUDGET_JOB_RUNNING) largest = std::max(largest, job.rate);
    return std::max<Rate>(pass.capacity - ledger_.running(), 0) + largest;
}

void Engine::fill_shares(PassMemory& memory, const Claims& claims) {
    std::vector<Wide> own;
    own.reserve(associations_.list().size());
    for (const NodeUsage& usage : ledger_.own_usage(associations_.list())) own.push_back(usage.allocated.box);
    for (const Share& share : shares(associations_.list(), tree_, own, claims))
        memory.shares.push_back({.assoc_id = share.assoc,
                                 .norm_shares = share.norm_shares,
                                 .usage_raw = share.gpu_seconds,
                                 .usage_norm = share.of_cluster,
                                 .usage_efctv = share.of_parent,
                                 .level_fs = share.level_fs,
                                 .fs_factor = share.fs_factor});
}

void Engine::publish(const budget_pass& pass, std::span<const QueueEntry> entries,
                     std::span<const NumberedPlace> places, Claims claims) {
    std::vector<Rank> ranks;
    ranks.reserve(places.size());
    for (const NumberedPlace& place : places) {
        if (place.task != 0) continue;
        const PendingJob& job = entries[place.entry].job;
        ranks.push_back({.job_id = job.job_id,
                         .priority = place.number,
                         .position = place.position,
                         .leaf = job.leaf,
                         .run_class = class_in_queue(tree_, job),
                         .eligible_since = job.eligible_since});
    }
    snapshot_.publish(std::make_unique<const Snapshot>(pass.now, std::move(ranks), std::move(claims)));
}

// Whoever could start now as far as it is up to the job: the places of the queue, and jobs with an
// operator's number, which stand where that puts them (Q6).
std::vector<Waiting> Engine::waiting(const budget_pass& pass, std::span<const PendingTerms> pending,
                                     std::span<const QueueEntry> entries, std::span<const NumberedPlace> places,
                                     std::span<const std::uint32_t> jobs) const {
    std::vector<Waiting> queue;
    if (pass.node_count == 0) return queue;
    for (const NumberedPlace& place : places) {
        const QueueEntry& entry = entries[place.entry];
        if (!entry.job.eligible || entry.task_room == 0 || (place.rest && place.task > 0)) continue;
        queue.push_back({.job = jobs[place.entry],
                         .number = place.number,
                         .run_class = class_in_queue(tree_, entry.job),
                         .contract = entry.job.contract});
    }
    for (std::size_t i = 0; i < pass.job_count; ++i) {
        const budget_job& job = pass.jobs[i];
        if (job.state != BUDGET_JOB_PENDING || !job.held || job.priority == 0 || !job.eligible) continue;
        queue.push_back({.job = static_cast<std::uint32_t>(i),
                         .number = job.priority,
                         .run_class = pending[i].run_class,
                         .contract = pending[i].contract});
    }
    return queue;
}

// P1 to P5: who is to be stopped for whom. Where nothing is known of nodes nobody is.
void Engine::pick_victims(budget_pass& pass, std::vector<Waiting> queue, PassMemory& memory, Messages& messages) {
    pass.wake_scheduler = false;
    pass.next_look = 0;
    if (pass.node_count == 0) {
        verdicts_.publish({}, pass.now);
        return;
    }
    for (const std::uint32_t job_id : verdicts_.drop_failed(pass.now))
        messages.info(
            "pick for JobId=" + std::to_string(job_id) +
            " dropped: Slurm has tried it twice and placed nobody; it chooses among the rightful victims now (" +
            std::to_string(verdicts_.left_to_slurm()) + " of " + std::to_string(verdicts_.picks()) + " picks so far)");
    notices_.forget([this](RunKey key) {
        const Run* run = ledger_.find(key);
        return run && !run->ended;
    });
    Planning planning(pass, tree_, ledger_, parameters_, notices_);
    for (Waiting& each : queue) {
        const budget_job& job = pass.jobs[each.job];
        each.left = verdicts_.may_be_left() && verdicts_.is_left(job.job_id, planning.request(job), pass.now);
    }
    planning.set_queue(std::move(queue));
    const Plan plan = planning.make(ledger_.node_usage());
    std::vector<Pick> picks = planning.picks(plan, associations_.list());
    const Notices::News notices = notices_.hold_back(picks, pass.now);
    for (const std::string& line : notices.lines) messages.info(line);
    for (const RunKey& run : notices.signals) memory.signals.push_back({run.job_id, run.restart_count});
    const Verdicts::News news = verdicts_.publish(std::move(picks), pass.now);
    for (const std::string& line : news.lines) messages.info(line);
    pass.wake_scheduler = news.wake;
    pass.next_look = plan.next_look.value_or(0);
    if (notices.next_look && (pass.next_look == 0 || *notices.next_look < pass.next_look))
        pass.next_look = *notices.next_look;
}

// Tells the log, and the victim's owner by its comment, which is returned.
std::string Engine::preempting(RunKey victim, Seconds now, bool names, std::string_view comment, Messages& messages) {
    const std::optional<Verdicts::Stop> stop = verdicts_.preempting(victim);
    if (!stop) return {};
    messages.info(to_string(*stop, now));
    RunTag tag =
        read_tag(comment).value_or(RunTag{.run_class = stop->victim.run_class, .contract = stop->victim.contract});
    tag.preempted = reason(*stop, now, names);
    return put_tag(tag, comment);
}

bool Engine::pass(budget_pass& pass, Messages& messages) {
    const std::lock_guard lock(mutex_);
    if (!has_tree_) {
        messages.error("no association tree yet, nothing is ranked");
        return false;
    }
    follow_clock(pass.now, messages);
    verdicts_.begin_pass();
    take_up_runs(pass);
    std::vector<std::uint32_t> jobs;  // entry -> job of the pass
    const std::vector<std::optional<RunTag>> tags = pending_tags(pass);
    const std::vector<PendingTerms> pending = settle_pending(pass, tags);
    const std::vector<QueueEntry> entries = queue_entries(pass, pending, jobs);
    const std::vector<NodeUsage>& usage = ledger_.node_usage();
    const std::vector<NumberedPlace> places = place_queue(tree_, usage, entries, startable(pass), parameters_);

    auto memory = std::make_unique<PassMemory>();
    for (const NumberedPlace& place : places)
        if (place.changed)
            memory->places.push_back(
                {.job = jobs[place.entry], .task = place.task, .priority = place.number, .rest = place.rest});
    Claims claims(tree_, usage, RunClass::kAllocated, parameters_, pass.capacity);
    fill_shares(*memory, claims);
    take_up_tags(pass, tags, *memory);
    pick_victims(pass, waiting(pass, pending, entries, places, jobs), *memory, messages);
    publish(pass, entries, places, std::move(claims));

    pass.places = memory->places.data();
    pass.place_count = memory->places.size();
    pass.shares = memory->shares.data();
    pass.share_count = memory->shares.size();
    pass.taggings = memory->taggings.data();
    pass.tagging_count = memory->taggings.size();
    pass.signals = memory->signals.data();
    pass.signal_count = memory->signals.size();
    pass.memory = memory.release();
    return true;
}

// The policy's time never runs backwards. A clock that was put back by more than it may jitter is
// followed by a ledger that begins anew at that instant, with the same runs.
void Engine::follow_clock(Seconds now, Messages& messages) {
    const Seconds back = ledger_.now() - now;
    if (back <= kClockJitter) return;
    messages.error("the clock was put back by " + format_duration(back) + ": the window now ends at " + instant(now));
    if (back > kClockAstray) all_wanted_ = true;
    ledger_ = Ledger(parameters_.window, ledger_.image(), now, parameters_.unused_charge_millis);
    ledger_.set_tree(associations_.list(), tree_);
}

void Engine::restore(const State& state, Seconds now, Messages& messages) {
    if (Result<Parameters> parsed = Parameters::parse(state.parameters)) {
        parameters_ = std::move(parsed).value();
        band_.store(parameters_.no_gpu_band);
    } else {
        messages.error("parameters of the saved state: " + parsed.error() + "; they are passed over");
    }
    const Seconds saved = state.ledger.now;
    const Seconds begin = saved > now && saved - now <= kClockJitter ? saved : now;  // time never runs backwards
    loaded_at_ = begin;
    ledger_ = Ledger(parameters_.window, state.ledger, begin, parameters_.unused_charge_millis);
    first_eligible_.restore(state.first_eligible);
    incomplete_before_ = state.incomplete_before;
    if (saved > now + kClockAstray) {
        messages.error("the saved state is of " + instant(saved) + ", which is yet to come: the clock is or was wrong");
        all_wanted_ = true;
        return;
    }
    gap_.open(std::min(saved, now) - kGapMargin);
    if (state.gap_from > 0) gap_.open(state.gap_from);
    fetching_all_ = state.gap_from > 0 && state.gap_from <= saved - parameters_.window;
    messages.info("usage as saved at " + instant(saved) + ": " + std::to_string(ledger_.run_count()) + " runs");
}

void Engine::load(const std::string& folder, Seconds now, Messages& messages) {
    const std::scoped_lock lock(mutex_, file_mutex_);
    const StateFile::Loaded loaded = file_.load(folder);
    loaded_at_ = now;
    ledger_ = Ledger(parameters_.window,
                     parameters_.unused_charge_millis);  // of a controller that was active before in this process
    first_eligible_ = {};
    notices_ = {};
    gap_ = {};
    incomplete_before_ = 0;
    has_tree_ = false;
    if (loaded.found == StateFile::Found::kRead) {
        restore(loaded.state, now, messages);
        return;
    }
    all_wanted_ = true;
    if (loaded.found == StateFile::Found::kUnusable)
        messages.error(loaded.message + "; usage is rebuilt from the accounting database");
    else
        messages.info("no saved state in " + folder + ": usage is rebuilt from the accounting database");
}

State Engine::state() const {
    const Seconds begin = ledger_.now() - parameters_.window;
    return {.ledger = ledger_.image(),
            .first_eligible = first_eligible_.image(),
            .parameters = to_string(parameters_),
            .incomplete_before = incomplete_before_ > begin ? incomplete_before_ : 0,
            .gap_from = all_wanted_ ? std::max<Seconds>(begin - kDay, 1) : gap_.from()};
}

bool Engine::save(const std::string& folder, Messages& messages) {
    std::unique_lock lock(mutex_);
    if (!has_tree_ || ledger_.now() == 0) return true;  // nothing was seen that the file does not have
    const State state = this->state();
    lock.unlock();
    const std::lock_guard file_lock(file_mutex_);
    const Result<std::size_t> saved = file_.save(folder, state);
    if (saved) {
        save_failed_logged_ = 0;
        return true;
    }
    if (save_failed_logged_ == 0 || state.ledger.now >= save_failed_logged_ + kMinute) {
        save_failed_logged_ = state.ledger.now;
        messages.error(saved.error() + "; usage since the last save would have to be rebuilt after a restart");
    }
    return false;
}

budget_gap Engine::gap(Seconds now) {
    const std::lock_guard lock(mutex_);
    if (!has_tree_) return {};
    if (all_wanted_) {  // a day more tells whether the database reaches back far enough
        gap_.open(now - parameters_.window - kDay);
        all_wanted_ = false;
        fetching_all_ = true;
    }
    const std::optional<Gap::Part> part = gap_.next(now);
    return part ? budget_gap{true, part->from, part->to} : budget_gap{};
}

// Says what the answers brought, once all are there.
void Engine::tell_of_past(const Gap::Part& part, const PastCounts& counts, bool is_all, Messages& messages) {
    fetched_.runs += counts.runs;
    fetched_.changes += counts.changes;
    fetched_.untagged += counts.untagged;
    fetched_.rows.no_end = std::max(fetched_.rows.no_end, counts.rows.no_end);
    fetched_.rows.unreadable += counts.rows.unreadable;
    if (counts.oldest) fetched_.oldest = std::min(fetched_.oldest.value_or(*counts.oldest), *counts.oldest);
    if (!is_all) return;
    std::string line = "usage rebuilt from the accounting database: " + std::to_string(fetched_.changes) + " of " +
                       std::to_string(fetched_.runs) + " runs were not known";
    if (fetched_.untagged > 0)
        line += ", " + std::to_string(fetched_.untagged) +
                " of them without a tag, and charged if they have a budget today";
    if (fetched_.rows.no_end > 0)
        line +=
            "; " + std::to_string(fetched_.rows.no_end) + " rows without an end, counted only if slurmctld has the job";
    if (fetched_.rows.unreadable > 0) line += "; " + std::to_string(fetched_.rows.unreadable) + " rows cannot be read";
    messages.info(line);
    const Seconds begin = part.to - parameters_.window;
    if (fetching_all_ && fetched_.oldest.value_or(part.to) > begin) {
        incomplete_before_ = fetched_.oldest.value_or(part.to);
        messages.info("the accounting database has no run from before " + instant(incomplete_before_) +
                      ": what ran earlier in the window is not counted");
    }
    fetching_all_ = false;
    fetched_ = {};
    gap_logged_ = 0;
}

bool Engine::fill_gap(const budget_gap& part, std::string_view text, char delimiter, std::string_view slurm_user,
                      Messages& messages) {
    const std::lock_guard lock(mutex_);
    RowRates rates(parameters_, parts_);
    const Result<PastCounts> counts = take_up_past(ledger_, tree_, text, delimiter, slurm_user, rates);
    if (!counts) {
        messages.error("answer of sacct: " + counts.error());
        gap_.failed(part.to);
        return false;
    }
    const Gap::Part filled{.from = part.from, .to = part.to};
    tell_of_past(filled, counts.value(), gap_.filled(filled), messages);
    return true;
}

void Engine::gap_failed(Seconds now, std::string_view reason, Messages& messages) {
    const std::lock_guard lock(mutex_);
    gap_.failed(now);
    if (gap_logged_ != 0 && now < gap_logged_ + kLogAgain) return;
    gap_logged_ = now;
    messages.error("what ran since " + instant(gap_.from()) + " cannot be had from the accounting database (" +
                   std::string(reason) + "): the queue is ordered without what was not seen of it; trying again");
}

bool Engine::rank(std::uint32_t job_id, budget_rank& rank) const {
    const auto snapshot = snapshot_.pin();
    const Rank* job = snapshot ? snapshot->find(job_id) : nullptr;
    if (!job) return false;
    rank = {.priority = job->priority,
            .position = job->position,
            .ratio = snapshot->claims().ratio(job->leaf).value_or(-1),
            .allocated = job->run_class == RunClass::kAllocated,
            .eligible_since = job->eligible_since,
            .pass_time = snapshot->pass_time()};
    return true;
}

void Engine::job_ended(const budget_job& job) {
    const std::lock_guard lock(hints_mutex_);
    hints_.push_back(job);
}

// Nothing gets out of the library: a failure is one error line and the harmless answer.
template <typename Answer, typename Call>
Answer guarded(Answer harmless, Call call) noexcept {
    Messages messages;
    Answer answer = harmless;
    try {
        answer = call(messages);
    } catch (const std::exception& failure) {
        try {
            messages.error(std::string("engine failed: ") + failure.what());
        } catch (...) {
        }
    }
    Engine::instance().send(messages);
    return answer;
}

}  // namespace
}  // namespace budget

using budget::Engine;
using budget::guarded;
using budget::Messages;

void budget_engine_set_log(budget_log_fn log) {
    Engine::instance().set_log(log);
}

bool budget_engine_configure(const char* parameters) {
    return guarded(
        false, [&](Messages& messages) { return Engine::instance().configure(budget::text(parameters), messages); });
}

struct budget_band budget_engine_no_gpu_band(void) {
    return guarded(budget_band{BUDGET_PRIORITY_LOW, BUDGET_PRIORITY_HIGH}, [](Messages&) {
        const budget::NumberBand band = Engine::instance().number_bands().no_gpu;
        return budget_band{band.low, band.high};
    });
}

uint32_t budget_engine_provisional_priority(void) {
    return guarded(BUDGET_PRIORITY_LOW, [](Messages&) { return Engine::instance().number_bands().allocated.low; });
}

void budget_engine_set_tres(const struct budget_tres* tres, size_t count, uint64_t shards_per_gpu,
                            uint64_t mps_per_gpu) {
    guarded(false, [&](Messages& messages) {
        std::vector<budget::TresKind> kinds;
        for (const budget_tres& kind : std::span(tres, count))
            kinds.push_back({std::string(budget::text(kind.name)), std::string(budget::text(kind.type))});
        Engine::instance().set_tres(std::move(kinds), {shards_per_gpu, mps_per_gpu}, messages);
        return true;
    });
}

int64_t budget_engine_rate(const uint64_t* counts, size_t count) {
    return guarded(int64_t{0}, [&](Messages&) { return Engine::instance().rate(std::span(counts, count)); });
}

bool budget_engine_set_tree(const struct budget_association* associations, size_t count) {
    return guarded(false, [&](Messages& messages) {
        return Engine::instance().set_tree(std::span(associations, count), messages);
    });
}

bool budget_engine_pass(struct budget_pass* pass) {
    pass->places = nullptr;
    pass->place_count = 0;
    pass->shares = nullptr;
    pass->share_count = 0;
    pass->taggings = nullptr;
    pass->tagging_count = 0;
    pass->signals = nullptr;
    pass->signal_count = 0;
    pass->memory = nullptr;
    return guarded(false, [&](Messages& messages) { return Engine::instance().pass(*pass, messages); });
}

void budget_pass_free(struct budget_pass* pass) {
    delete static_cast<budget::PassMemory*>(pass->memory);
    pass->memory = nullptr;
    pass->places = nullptr;
    pass->shares = nullptr;
    pass->taggings = nullptr;
    pass->signals = nullptr;
    pass->place_count = pass->share_count = pass->tagging_count = pass->signal_count = 0;
}

void budget_engine_job_ended(const struct budget_job* job) {
    guarded(false, [&](Messages&) {
        Engine::instance().job_ended(*job);
        return true;
    });
}

bool budget_engine_rank(uint32_t job_id, struct budget_rank* rank) {
    return guarded(false, [&](Messages&) { return Engine::instance().rank(job_id, *rank); });
}

void budget_engine_use_contracts(void) {
    Engine::instance().use_contracts();
}

void budget_engine_use_preemption(void) {
    Engine::instance().use_contracts();
    Engine::instance().use_preemption();
}

bool budget_engine_preempts(void) {
    return Engine::instance().preempts();
}

void budget_engine_contract_changed(uint32_t job_id) {
    Engine::instance().verdicts().contract_changed(job_id);
}

bool budget_engine_preemptable(uint32_t preemptor, uint32_t victim, uint32_t victim_restarts, int64_t victim_start) {
    try {
        return Engine::instance().verdicts().preemptable(preemptor, {victim, victim_restarts}, victim_start);
    } catch (...) {
        return false;  // no memory
    }
}

bool budget_engine_stops_parts(uint32_t preemptor, uint32_t het_job) {
    try {
        return Engine::instance().verdicts().stops_parts(preemptor, het_job);
    } catch (...) {
        return false;  // no memory
    }
}

uint32_t budget_engine_victim_order(uint32_t victim, uint32_t victim_restarts) {
    return Engine::instance().verdicts().victim_order({victim, victim_restarts});
}

char* budget_engine_preempting(uint32_t victim, uint32_t victim_restarts, int64_t now, bool names,
                               const char* comment) {
    return guarded(static_cast<char*>(nullptr), [&](Messages& messages) -> char* {
        const std::string tagged =
            Engine::instance().preempting({victim, victim_restarts}, now, names, budget::text(comment), messages);
        return tagged.empty() ? nullptr : strdup(tagged.c_str());
    });
}

struct budget_tag budget_engine_read_tag(const char* comment) {
    const std::optional<budget::RunTag> tag = budget::read_tag(budget::text(comment));
    return tag ? budget::shown_tag(*tag) : budget_tag{};
}

char* budget_engine_put_tag(const struct budget_tag* tag, const char* comment) {
    return guarded(static_cast<char*>(nullptr), [&](Messages&) {
        budget::RunTag wanted = budget::tag_of(*tag);
        if (tag->has_reason)
            if (std::optional<budget::RunTag> before = budget::read_tag(budget::text(comment)))
                wanted.preempted = std::move(before->preempted);
        return strdup(budget::put_tag(wanted, budget::text(comment)).c_str());
    });
}

void budget_engine_load(const char* folder, int64_t now) {
    guarded(false, [&](Messages& messages) {
        Engine::instance().load(folder, now, messages);
        return true;
    });
}

bool budget_engine_save(const char* folder) {
    return guarded(false, [&](Messages& messages) { return Engine::instance().save(folder, messages); });
}

struct budget_gap budget_engine_gap(int64_t now) {
    return guarded(budget_gap{}, [&](Messages&) { return Engine::instance().gap(now); });
}

const char* budget_engine_accounting_columns(void) {
    return budget::kAccountingColumns.data();
}

bool budget_engine_fill_gap(const struct budget_gap* gap, const char* text, size_t size, char delimiter,
                            const char* slurm_user) {
    return guarded(false, [&](Messages& messages) {
        return Engine::instance().fill_gap(*gap, std::string_view(text, size), delimiter, budget::text(slurm_user),
                                           messages);
    });
}

void budget_engine_gap_failed(int64_t now, const char* reason) {
    guarded(false, [&](Messages& messages) {
        Engine::instance().gap_failed(now, budget::text(reason), messages);
        return true;
    });
}

void budget_fair_tree(struct budget_fair_tree_row* rows, size_t count) {
    guarded(false, [&](Messages&) {
        std::vector<budget::FairTreeRow> tree;
        tree.reserve(count);
        for (const budget_fair_tree_row& row : std::span(rows, count))
            tree.push_back({.id = row.id,
                            .parent_id = row.parent_id,
                            .shares = row.shares,
                            .is_user = row.user,
                            .usage = row.usage});
        budget::fair_tree(tree);
        for (size_t i = 0; i < count; ++i) rows[i].fs_factor = tree[i].fs_factor;
        return true;
    });
}
