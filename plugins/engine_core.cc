// SPDX-License-Identifier: GPL-2.0-or-later
//
// A pass and what lies between two; see engine_core.h.
#include "plugins/engine_core.h"

#include <algorithm>
#include <ctime>
#include <memory>
#include <unordered_map>

#include "common/shares.h"
#include "common/time_text.h"
#include "plugins/terms.h"

namespace budget {

namespace {

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

}  // namespace

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

}  // namespace budget
