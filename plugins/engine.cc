// SPDX-License-Identifier: GPL-2.0-or-later
//
// The C functions of engine.h: each hands its views to the one engine of the process
// and lets no exception out. Any thread.
#include "plugins/engine.h"

#include <cstdlib>
#include <cstring>
#include <exception>
#include <span>
#include <string>
#include <vector>

#include "common/fair_tree.h"
#include "plugins/engine_core.h"
#include "plugins/views.h"

namespace budget {
namespace {

static_assert(BUDGET_SHARES_PARENT == kSharesParent);
static_assert(BUDGET_PRIORITY_LOW == kPriorityLow && BUDGET_PRIORITY_HIGH == kPriorityHigh);

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
