// SPDX-License-Identifier: GPL-2.0-or-later
//
// The engine behind engine.h: parameters, one lock and the policy. Converts
// views of Slurm's records to the policy's types and back; decides nothing
// itself. One instance per process, shared by all plugins of slurmctld. Its
// lock is the innermost one; messages are handed out after it is released.
#ifndef SLURM_BUDGET_PLUGINS_ENGINE_CORE_H
#define SLURM_BUDGET_PLUGINS_ENGINE_CORE_H

#include <atomic>
#include <deque>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/claim.h"
#include "common/contract.h"
#include "common/ledger.h"
#include "common/parameters.h"
#include "common/queue.h"
#include "common/rebuild.h"
#include "common/run_tag.h"
#include "common/run_terms.h"
#include "common/snapshot.h"
#include "common/tree.h"
#include "plugins/engine.h"
#include "plugins/ledger_file.h"
#include "plugins/notices.h"
#include "plugins/picks.h"
#include "plugins/verdicts.h"
#include "plugins/views.h"

namespace budget {

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

}  // namespace budget

#endif
