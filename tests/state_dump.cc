// SPDX-License-Identifier: GPL-2.0-or-later
//
// Prints a state file (docs/state_format.md) as lines of words, for people and for
// test scripts; with --usage also what each owner has in the window that ends at
// the instant of saving. Instants in UTC seconds, rates in 1/5040 GPU. Not installed.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/ledger.h"
#include "common/parameters.h"
#include "plugins/ledger_file.h"

namespace {

using namespace budget;

constexpr const char* kUsageText =
    "usage: state_dump [--usage SECONDS] FILE\n"
    "saved INSTANT\n"
    "incomplete_before INSTANT\n"
    "gap_from INSTANT\n"
    "parameters TEXT\n"
    "owner INDEX ACCOUNT USER PARTITION PARENT\n"
    "run JOB RESTART OWNER allocated|unallocated START END|- UNTIL RATE CONTRACT REFUNDED GONE\n"
    "    [AT:RATE[:suspended]]... [resized] [by_itself]\n"
    "first_eligible JOB SINCE\n"
    "usage ACCOUNT USER PARTITION GPUSECONDS     with --usage: allocated, in (saved - SECONDS, saved]\n"
    "A name that is empty is -. Exit status: 0, 1 cannot be used, 2 usage.\n";

// A name as one word of ASCII.
std::string word(std::string_view name) {
    std::string word;
    for (const char c : name) {
        if (c > ' ' && c <= '~' && c != '\\') {
            word += c;
            continue;
        }
        char escaped[8];
        std::snprintf(escaped, sizeof(escaped), "\\x%02x", static_cast<unsigned>(static_cast<unsigned char>(c)));
        word += escaped;
    }
    return word.empty() ? "-" : word;
}

std::string number(std::int64_t value) {
    return std::to_string(value);
}

void print_run(const SavedRun& run) {
    std::string line = "run " + number(run.key.job_id) + " " + number(run.key.restart_count) + " " + number(run.owner);
    line += run.run_class == RunClass::kAllocated ? " allocated " : " unallocated ";
    line += number(run.start) + " " + (run.ended ? number(run.until) : "-") + " " + number(run.until) + " " +
            number(run.rate) + " " + number(run.contract) + " " + number(run.refunded) + " " + number(run.gone);
    for (const RunStep& step : run.steps) {
        line += " " + number(step.at) + ":" + number(step.rate) + (step.suspended ? ":suspended" : "");
    }
    if (run.resized) line += " resized";
    if (run.by_itself) line += " by_itself";
    std::printf("%s\n", line.c_str());
}

void print_state(const State& state) {
    std::printf("saved %s\n", number(state.ledger.now).c_str());
    std::printf("incomplete_before %s\n", number(state.incomplete_before).c_str());
    std::printf("gap_from %s\n", number(state.gap_from).c_str());
    std::printf("parameters %s\n", word(state.parameters).c_str());
    for (std::size_t i = 0; i < state.ledger.owners.size(); ++i) {
        const SavedOwner& owner = state.ledger.owners[i];
        std::printf("owner %zu %s %s %s %u\n", i, word(owner.account).c_str(), word(owner.user).c_str(),
                    word(owner.partition).c_str(), owner.parent);
    }
    for (const SavedRun& run : state.ledger.runs) print_run(run);
    for (const auto& [job_id, since] : state.first_eligible) {
        std::printf("first_eligible %u %s\n", job_id, number(since).c_str());
    }
}

// GPU-seconds: whole ones as an integer, else with three decimals.
std::string gpu_time(Wide value) {
    if (value % kGpu == 0) return number(static_cast<std::int64_t>(value / kGpu));
    char text[64];
    std::snprintf(text, sizeof(text), "%.3f", gpu_seconds(value));
    return text;
}

// The ledger is asked with a tree in which everybody still exists, so that nobody has heirs. Its root is
// one of our own, to which falls what belongs to nobody.
void print_usage(const State& state, Seconds window) {
    const std::vector<SavedOwner>& owners = state.ledger.owners;
    const auto root = static_cast<AssocId>(owners.size() + 1);
    std::vector<Association> associations;
    for (AssocId id = 1; id < owners.size(); ++id) {
        const SavedOwner& owner = owners[id];
        associations.push_back({.id = id,
                                .parent_id = owner.parent == 0 ? root : owner.parent,
                                .account = owner.account,
                                .user = owner.user,
                                .partition = owner.partition});
    }
    associations.push_back({.id = root, .account = "\n"});
    const Result<Parameters> parameters = Parameters::parse(state.parameters);
    const std::uint32_t unused_millis = parameters ? parameters.value().unused_charge_millis : 0;
    Ledger ledger(window, state.ledger, state.ledger.now, unused_millis);
    ledger.set_tree(associations, Tree());
    const std::vector<NodeUsage> own = ledger.own_usage(associations);
    std::printf("usage - - - %s\n", gpu_time(own.back().allocated.box).c_str());
    for (std::size_t i = 0; i + 1 < own.size(); ++i) {
        std::printf("usage %s %s %s %s\n", word(associations[i].account).c_str(), word(associations[i].user).c_str(),
                    word(associations[i].partition).c_str(), gpu_time(own[i].allocated.box).c_str());
    }
}

std::optional<Seconds> window_of(const char* text) {
    char* end = nullptr;
    errno = 0;
    const long long value = std::strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || value <= 0 || value > kMaxWindow) return std::nullopt;
    return value;
}

int dump(const char* path, std::optional<Seconds> window) {
    std::ifstream file(path, std::ios::binary);
    if (!file) {
        std::fprintf(stderr, "state_dump: %s: %s\n", path, std::strerror(errno));
        return 1;
    }
    const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    const std::variant<State, StateFault> decoded = decode(bytes);
    if (const StateFault* fault = std::get_if<StateFault>(&decoded); fault != nullptr) {
        std::fprintf(stderr, "state_dump: %s: %s\n", path, fault->message.c_str());
        return 1;
    }
    const State& state = *std::get_if<State>(&decoded);
    print_state(state);
    if (window) print_usage(state, *window);
    return 0;
}

}  // namespace

int main(int count, char** words) {
    std::optional<Seconds> window;
    int next = 1;
    if (count > 3 && std::strcmp(words[1], "--usage") == 0) {
        window = window_of(words[2]);
        next = window ? 3 : count;
    }
    if (next + 1 != count || words[next][0] == '-') {
        std::fputs(kUsageText, stderr);
        return 2;
    }
    return dump(words[next], window);
}
