// SPDX-License-Identifier: GPL-2.0-or-later
//
// The terms of submissions and updates; see terms.h, and engine.h for the C
// functions. Converts views to the policy's types and back, decides nothing.
#include "plugins/terms.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <string>

#include "common/run_tag.h"
#include "plugins/views.h"

namespace budget {

namespace {

std::optional<Seconds> unless_none(std::int64_t seconds) {
    return seconds > 0 ? std::optional<Seconds>(seconds) : std::nullopt;
}

ContractRequest request_of(const budget_submission& submission) {
    ContractRequest request{.gpus = submission.gpus,
                            .system = submission.system,
                            .partitions = text(submission.partitions),
                            .qos = text(submission.qos),
                            .never_victim = submission.never_victim,
                            .time_limit = unless_none(submission.time_limit),
                            .time_min = unless_none(submission.time_min),
                            .requeueable = submission.requeueable,
                            .interactive = submission.interactive,
                            .in_het_job = submission.in_het_job};
    if (submission.min_runtime) request.stated = text(submission.min_runtime);
    return request;
}

// The refusal, or the notices, a line each.
std::string lines(const ContractAnswer& answer) {
    if (answer.refusal) return *answer.refusal;
    std::string all;
    for (const std::string& notice : answer.notices) all += (all.empty() ? "" : "\n") + notice;
    return all;
}

}  // namespace

Terms& Terms::instance() {
    static Terms terms;
    return terms;
}

void Terms::publish() {
    if (has_parameters_) published_.publish(std::make_unique<const Basis>(basis_));
}

void Terms::set_parameters(const Parameters& parameters) {
    basis_.parameters = parameters;
    has_parameters_ = true;
    publish();
}

void Terms::set_tree(std::span<const Association> associations, const Tree& tree) {
    basis_.leaves.clear();
    for (const Association& association : associations)
        if (const std::optional<NodeIndex> leaf = tree.find(association.id))
            basis_.leaves.push_back({.assoc_id = association.id, .has_budget = tree.node(*leaf).has_budget});
    std::sort(basis_.leaves.begin(), basis_.leaves.end(),
              [](const Leaf& a, const Leaf& b) { return a.assoc_id < b.assoc_id; });
    publish();
}

std::optional<bool> Terms::Basis::has_budget(std::uint32_t assoc_id) const {
    const auto leaf = std::lower_bound(leaves.begin(), leaves.end(), assoc_id,
                                       [](const Leaf& a, std::uint32_t id) { return a.assoc_id < id; });
    if (leaf == leaves.end() || leaf->assoc_id != assoc_id) return std::nullopt;
    return leaf->has_budget;
}

void Terms::settle(const budget_submission& submission, budget_terms& terms) const {
    const auto basis = published_.pin();
    if (!basis) {
        terms.failed = true;
        terms.message = strdup("priority/budget is not loaded: write PriorityType=priority/budget");
        return;
    }
    ContractRequest request = request_of(submission);
    request.has_budget = basis->has_budget(submission.assoc_id);
    ContractChange change{.job = request,
                          .pending = submission.pending,
                          .by_operator = submission.by_operator,
                          .limit_changes = submission.limit_changes};
    if (submission.tag.readable) change.tag = tag_of(submission.tag);
    const ContractAnswer answer =
        submission.update ? amend_contract(change, basis->parameters) : settle_contract(request, basis->parameters);
    const std::string message = lines(answer);
    if (!message.empty()) terms.message = strdup(message.c_str());
    terms.refused = answer.refusal.has_value();
    if (terms.refused) return;
    if (answer.in_unallocated_qos) terms.qos = strdup(basis->parameters.unallocated_qos.c_str());
    terms.time_min = answer.time_min.value_or(0);
    terms.has_tag = answer.tag.has_value();
    if (!answer.tag) return;
    terms.tag = shown_tag(*answer.tag);
    terms.tag.has_reason = submission.tag.has_reason;
}

}  // namespace budget

void budget_engine_terms(const struct budget_submission* submission, struct budget_terms* terms) {
    *terms = {};
    try {
        budget::Terms::instance().settle(*submission, *terms);
    } catch (const std::exception& failure) {
        budget_terms_free(terms);
        *terms = {};
        terms->failed = true;
        terms->message = strdup(failure.what());
    }
}

void budget_terms_free(struct budget_terms* terms) {
    free(terms->message);
    free(const_cast<char*>(terms->qos));
    terms->message = nullptr;
    terms->qos = nullptr;
}

char* budget_engine_take_token(const char* comment, char** rest) {
    *rest = nullptr;
    try {
        const budget::CommentToken token = budget::take_token(budget::text(comment));
        if (!token.value) return nullptr;
        char* value = strdup(token.value->c_str());
        if (value) *rest = strdup(token.rest.c_str());
        return value;
    } catch (const std::exception&) {
        return nullptr;
    }
}

size_t budget_engine_tag_length(const char* comment) {
    const std::string_view whole = budget::text(comment);
    return whole.size() - budget::behind_tag(whole).size();
}
