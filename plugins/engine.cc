// SPDX-License-Identifier: GPL-2.0-or-later
//
// The engine behind engine.h: parameters, one lock and the policy. Converts
// views of Slurm's records to the policy's types and back; decides nothing
// itself. One instance per process, shared by all plugins of slurmctld. Its
// lock is the innermost one; messages are handed out after it is released.
#include "plugins/engine.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/claim.h"
#include "common/fair_tree.h"
#include "common/ledger.h"
#include "common/parameters.h"
#include "common/queue.h"
#include "common/shares.h"
#include "common/snapshot.h"
#include "common/tree.h"

namespace budget {
namespace {

static_assert(BUDGET_SHARES_PARENT == kSharesParent);
static_assert(BUDGET_PRIORITY_LOW == kPriorityLow && BUDGET_PRIORITY_HIGH == kPriorityHigh);

std::string_view text(const char* s) {
    return s ? std::string_view(s) : std::string_view();
}

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
};

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

   private:
    // What is fixed for a job as long as Slurm shows its record.
    struct RunStart {
        std::uint32_t restart_count = 0;
        RunClass run_class = RunClass::kAllocated;
        std::uint64_t scan = 0;
    };

    void weigh(Messages& messages);
    RunClass class_of(std::uint32_t assoc_id) const;
    RunClass fixed_class(const budget_job& job);
    void take_up_run(const budget_job& job);
    void take_up_runs(const budget_pass& pass);
    std::vector<QueueEntry> queue_entries(const budget_pass& pass, std::vector<std::uint32_t>& jobs);
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
    std::unordered_map<std::uint32_t, RunStart> run_starts_;
    std::uint64_t scan_ = 0;

    // Apart from mutex_, so that nobody who holds a lock of Slurm waits for a pass.
    std::atomic<Parameters::Band> band_{Parameters::Band::kMiddle};
    std::mutex rates_mutex_;
    GpuRates rates_;
    std::mutex hints_mutex_;
    std::vector<budget_job> hints_;

    Published<Snapshot> snapshot_;
    std::atomic<budget_log_fn> log_{nullptr};
};

bool Engine::configure(std::string_view parameters, Messages& messages) {
    Result<Parameters> parsed = Parameters::parse(parameters);
    if (!parsed) {
        messages.error("PriorityParameters: " + parsed.error() + "; the last good parameters stay in force");
        return false;
    }
    const std::lock_guard lock(mutex_);
    const bool changed = parameters_ != parsed.value();
    if (parameters_.window != parsed.value().window) ledger_.set_window(parsed.value().window);
    parameters_ = std::move(parsed).value();
    band_.store(parameters_.no_gpu_band);
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
    has_tree_ = true;
    return true;
}

RunClass Engine::class_of(std::uint32_t assoc_id) const {
    const std::optional<NodeIndex> leaf = tree_.find(assoc_id);
    return leaf && tree_.node(*leaf).has_budget ? RunClass::kAllocated : RunClass::kUnallocated;
}

// The class of a run is fixed at its start (C6): that of the first sight.
RunClass Engine::fixed_class(const budget_job& job) {
    const auto [start, is_new] = run_starts_.try_emplace(job.job_id);
    if (is_new || start->second.restart_count != job.restart_count)
        start->second = {.restart_count = job.restart_count, .run_class = class_of(job.assoc_id)};
    start->second.scan = scan_;
    return start->second.run_class;
}

void Engine::take_up_run(const budget_job& job) {
    RunView run;
    run.key = {.job_id = job.job_id, .restart_count = job.restart_count};
    run.assoc = job.assoc_id;
    run.run_class = fixed_class(job);
    run.rate = job.rate;
    run.start = job.start;
    if (job.state == BUDGET_JOB_ENDED) run.end = job.end;
    run.suspended = job.state == BUDGET_JOB_SUSPENDED;
    run.changed = job.changed;
    ledger_.observe(run);
}

void Engine::take_up_runs(const budget_pass& pass) {
    std::vector<budget_job> hints;
    {
        const std::lock_guard lock(hints_mutex_);
        hints.swap(hints_);
    }
    ++scan_;
    ledger_.begin_scan(pass.now);
    for (const budget_job& job : hints) take_up_run(job);
    for (const budget_job& job : std::span(pass.jobs, pass.job_count))
        if (job.state != BUDGET_JOB_PENDING) take_up_run(job);
    ledger_.end_scan();
    ledger_.advance(pass.now);
    std::erase_if(run_starts_, [&](const auto& start) { return start.second.scan != scan_; });
}

std::vector<QueueEntry> Engine::queue_entries(const budget_pass& pass, std::vector<std::uint32_t>& jobs) {
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
        entry.job.run_class = class_of(job.assoc_id);
        entry.job.rate = job.rate;
        entry.job.qos_priority = job.qos_priority;
        entry.job.nice = job.nice;
        entry.job.eligible_since = since.value_or(pass.now);
        entry.job.tasks = std::max<std::uint32_t>(job.tasks, 1);
        entry.job.eligible = job.eligible;
        entry.number = job.priority;
        entry.task_room = job.task_room;
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

bool Engine::pass(budget_pass& pass, Messages& messages) {
    const std::lock_guard lock(mutex_);
    if (!has_tree_) {
        messages.error("no association tree yet, nothing is ranked");
        return false;
    }
    take_up_runs(pass);
    std::vector<std::uint32_t> jobs;  // entry -> job of the pass
    const std::vector<QueueEntry> entries = queue_entries(pass, jobs);
    const std::vector<NodeUsage>& usage = ledger_.node_usage();
    const std::vector<NumberedPlace> places = place_queue(tree_, usage, entries, startable(pass), parameters_);

    auto memory = std::make_unique<PassMemory>();
    for (const NumberedPlace& place : places)
        if (place.changed)
            memory->places.push_back(
                {.job = jobs[place.entry], .task = place.task, .priority = place.number, .rest = place.rest});
    Claims claims(tree_, usage, RunClass::kAllocated, parameters_, pass.capacity);
    fill_shares(*memory, claims);
    publish(pass, entries, places, std::move(claims));

    pass.places = memory->places.data();
    pass.place_count = memory->places.size();
    pass.shares = memory->shares.data();
    pass.share_count = memory->shares.size();
    pass.memory = memory.release();
    return true;
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
    pass->memory = nullptr;
    return guarded(false, [&](Messages& messages) { return Engine::instance().pass(*pass, messages); });
}

void budget_pass_free(struct budget_pass* pass) {
    delete static_cast<budget::PassMemory*>(pass->memory);
    pass->memory = nullptr;
    pass->places = nullptr;
    pass->shares = nullptr;
    pass->place_count = pass->share_count = 0;
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
