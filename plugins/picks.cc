// SPDX-License-Identifier: GPL-2.0-or-later
//
// From the views of a pass to plan() and back; see picks.h.
#include "plugins/picks.h"

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>

#include "common/contract.h"
#include "plugins/views.h"

namespace budget {
namespace {

Holding holding(const budget_holding& view) {
    const bool has_gpus = view.tres != std::numeric_limits<std::uint32_t>::max();
    return {.node = view.node,
            .kind = has_gpus ? static_cast<GpuKind>(view.tres) : GpuKind{0},
            .room = {.gpus = has_gpus ? view.gpus : 0, .cpus = view.cpus, .memory = view.memory}};
}

std::vector<Holding> holdings(const budget_holding* views, std::size_t count) {
    std::vector<Holding> list;
    list.reserve(count);
    for (const budget_holding& view : std::span(views, count)) list.push_back(holding(view));
    return list;
}

// Empty for all.
NodeSet node_set(const std::uint64_t* bits, std::uint32_t count) {
    NodeSet set;
    if (!bits) return set;
    set.resize(count);
    bool all = true;
    for (std::uint32_t n = 0; n < count; ++n) {
        set[n] = bits[n / 64] >> (n % 64) & 1;
        all = all && set[n];
    }
    if (all) set.clear();
    return set;
}

StatedPriority stated(const budget_job& job) {
    return {.qos_priority = job.qos_priority, .nice = job.nice};
}

}  // namespace

Planning::Planning(const budget_pass& pass, const Tree& tree, const Ledger& ledger, const Parameters& parameters,
                   const Notices& notices)
    : pass_(pass),
      tree_(tree),
      parameters_(parameters),
      totals_(holdings(pass.totals, pass.total_count)),
      others_(holdings(pass.others, pass.other_count)) {
    take_up_runs(ledger, notices);
}

void Planning::take_up_runs(const Ledger& ledger, const Notices& notices) {
    for (const budget_job& job : std::span(pass_.jobs, pass_.job_count)) {
        if (job.state != BUDGET_JOB_RUNNING && job.state != BUDGET_JOB_SUSPENDED) continue;
        const Run* run = ledger.find({.job_id = job.job_id, .restart_count = job.restart_count});
        if (!run) continue;
        Incumbent incumbent;
        incumbent.key = run->key;
        incumbent.leaf = tree_.find(job.assoc_id).value_or(kRoot);
        incumbent.run_class = run->run_class;
        incumbent.rate = job.rate;
        incumbent.stated = stated(job);
        incumbent.start = job.start;
        const Seconds contract = run->run_class == RunClass::kAllocated ? run->contract : 0;
        incumbent.protected_until = job.start;
        if (run->run_class == RunClass::kAllocated) incumbent.protected_until += contract + job.suspended_before;
        incumbent.checkpoint =
            contract > 0 && incumbent.protected_until <= pass_.now ? incumbent.protected_until : incumbent.start;
        // P5: on its signal it may have saved its work; and so a pick does not turn to others meanwhile.
        incumbent.checkpoint = std::max(incumbent.checkpoint, notices.end(run->key).value_or(0));
        incumbent.exempt = job.never_victim || job.being_stopped || job.state == BUDGET_JOB_SUSPENDED ||
                           is_exempt(text(job.partitions), text(job.qos), parameters_);
        incumbent.group = job.het_job_id;
        if (job.holding_count > 0) incumbent.holdings = holdings(pass_.holdings + job.first_holding, job.holding_count);
        incumbents_.push_back(std::move(incumbent));
        contracts_.push_back(contract);
        views_.push_back(&job);
    }
}

PlacementRequest Planning::request(const budget_job& job) const {
    PlacementRequest request;
    if (!job.request) return request;
    const budget_request& view = *job.request;
    request.min_nodes = view.min_nodes;
    request.max_nodes = view.max_nodes;
    if (view.tres != std::numeric_limits<std::uint32_t>::max()) request.kind = static_cast<GpuKind>(view.tres);
    request.gpus = view.gpus;
    request.gpus_per_node = view.gpus_per_node;
    request.gpu_chunk = std::max<std::uint32_t>(view.gpu_chunk, 1);
    request.cpus = view.cpus;
    request.cpus_per_node = view.cpus_per_node;
    request.cpus_per_gpu = view.cpus_per_gpu;
    request.memory_per_node = view.memory_per_node;
    request.memory_per_cpu = view.memory_per_cpu;
    request.memory_per_gpu = view.memory_per_gpu;
    request.whole_nodes = view.whole_nodes;
    request.allowed = node_set(view.allowed, pass_.node_count);
    return request;
}

Candidate Planning::candidate(const Waiting& waiting) const {
    const budget_job& job = pass_.jobs[waiting.job];
    return {.job_id = job.job_id,
            .leaf = tree_.find(job.assoc_id).value_or(kRoot),
            .run_class = waiting.run_class,
            .rate = job.rate,
            .contract = waiting.contract,
            .stated = stated(job),
            .request = request(job),
            .modelled = job.request && job.request->modelled,
            .left_to_slurm = waiting.left,
            .being_placed = job.being_placed,
            .group = job.het_job_id,
            .parts = job.het_job_id != 0 ? parts_.at(job.het_job_id) : 0};
}

void Planning::set_queue(std::vector<Waiting> queue) {
    queue_ = std::move(queue);
    std::stable_sort(queue_.begin(), queue_.end(),
                     [](const Waiting& a, const Waiting& b) { return a.number > b.number; });
    if (queue_.size() > kPlacementAttempts) queue_.resize(kPlacementAttempts);
    parts_.clear();
    for (const budget_job& job : std::span(pass_.jobs, pass_.job_count))
        if (job.state == BUDGET_JOB_PENDING && job.het_job_id != 0) ++parts_[job.het_job_id];
    candidates_.clear();
    for (const Waiting& waiting : queue_) candidates_.push_back(candidate(waiting));
}

Plan Planning::make(std::span<const NodeUsage> usage) const {
    const Surroundings surroundings{.node_count = pass_.node_count,
                                    .totals = totals_,
                                    .open = std::vector<bool>(pass_.open, pass_.open + pass_.node_count),
                                    .others = others_};
    return plan(tree_, usage, parameters_, pass_.capacity, surroundings, incumbents_, candidates_, pass_.now,
                kPlacementAttempts);
}

PickedVictim Planning::picked(const Victim& victim) const {
    const Incumbent& run = incumbents_[victim.incumbent];
    PickedVictim picked{.key = run.key,
                        .group = static_cast<std::uint32_t>(run.group),
                        .notice = views_[victim.incumbent]->notice,
                        .signalled = views_[victim.incumbent]->signalled,
                        .right = victim.right,
                        .preemptor_ratio = victim.preemptor_ratio,
                        .victim_ratio = victim.victim_ratio,
                        .run_class = run.run_class,
                        .rate = run.rate,
                        .start = run.start,
                        .contract = contracts_[victim.incumbent],
                        .protected_until = run.protected_until,
                        .leaf = std::string(tree_.name(run.leaf))};
    if (run.run_class == RunClass::kAllocated) picked.latest_start = run.start + pass_.now - run.protected_until;
    return picked;
}

std::vector<Pick> Planning::picks(const Plan& plan, std::span<const Association> associations) const {
    std::vector<Pick> picks;
    for (std::size_t i = 0; i < plan.decisions.size() && i < queue_.size(); ++i) {
        const Decision& decision = plan.decisions[i];
        if (decision.victims.empty()) continue;
        const budget_job& job = pass_.jobs[queue_[i].job];
        // Slurm stops the victims of one part only after it has started the part before, which it then takes back for
        // the lifetime of a credential: others start there meanwhile, and it begins anew.
        if (job.het_job_id != 0) continue;
        Pick pick{.job_id = job.job_id,
                  .ours = decision.outcome == Outcome::kPreempts,
                  .rate = candidates_[i].rate,
                  .leaf = std::string(tree_.name(candidates_[i].leaf))};
        const auto association = std::find_if(associations.begin(), associations.end(),
                                              [&](const Association& each) { return each.id == job.assoc_id; });
        if (association != associations.end()) pick.account = association->account;
        for (const Victim& victim : decision.victims) {
            // What is stopped has to be past its contract, whoever has picked it.
            const Incumbent& run = incumbents_[victim.incumbent];
            if (run.exempt || run.protected_until > pass_.now) continue;
            pick.victims.push_back(picked(victim));
        }
        picks.push_back(std::move(pick));
    }
    return picks;
}

}  // namespace budget
