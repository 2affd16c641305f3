// SPDX-License-Identifier: GPL-2.0-or-later
//
// The checks of `sbudget doctor`; see doctor.h. One function a subject, in the order in
// which they are shown. Why a line is needed stands in slurm-budget(5).
#include "doctor.h"

#include <glob.h>
#include <json-c/json.h>
#include <stdio.h>

#include <charconv>
#include <fstream>
#include <string_view>

#include "common/parameters.h"
#include "common/time_text.h"
#include "plugin_file.h"

namespace budget {

namespace {

constexpr std::uint32_t kQueueExpected = 1000;
constexpr std::uint32_t kSlowBackfill = 30;
constexpr std::uint32_t kShortestKillWait = 5;
constexpr std::uint32_t kLongestKillWait = 600;
constexpr std::size_t kColumns = 80;

std::vector<std::string> words_of(std::string_view list) {
    std::vector<std::string> words;
    while (!list.empty()) {
        const std::string_view word = list.substr(0, list.find(','));
        list.remove_prefix(std::min(word.size() + 1, list.size()));
        if (!word.empty()) words.emplace_back(word);
    }
    return words;
}

std::string lower(std::string_view text) {
    std::string result(text);
    for (char& c : result)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return result;
}

bool has_word(std::string_view list, std::string_view word) {
    for (const std::string& other : words_of(list))
        if (lower(other) == lower(word)) return true;
    return false;
}

// The number of key=number in a list; nothing if it is not there.
std::optional<std::uint32_t> number_in(std::string_view list, std::string_view key) {
    for (const std::string& word : words_of(list)) {
        if (!lower(word).starts_with(std::string(key) + "=")) continue;
        std::uint32_t number = 0;
        std::from_chars(word.data() + key.size() + 1, word.data() + word.size(), number);
        return number;
    }
    return std::nullopt;
}

// The list with key=... replaced, or added.
std::string with_number(std::string_view list, std::string_view key, std::uint32_t number) {
    std::string result;
    for (const std::string& word : words_of(list))
        if (!lower(word).starts_with(std::string(key) + "=")) result += word + ",";
    return result + std::string(key) + "=" + std::to_string(number);
}

class Findings {
   public:
    void good(std::string subject, std::string what) { add(Severity::kGood, subject, what, ""); }
    void wrong(std::string subject, std::string what, std::string line) { add(Severity::kWrong, subject, what, line); }
    void advise(std::string subject, std::string what, std::string line) {
        add(Severity::kAdvice, subject, what, line);
    }
    // A word to be added to a list by commas.
    void add_word(Severity severity, const std::string& key, const std::string& present, const std::string& word,
                  std::string what) {
        add(severity, key, std::move(what), key + "=" + (present.empty() ? "" : present + ",") + word);
        if (!present.empty()) all_.back().shorter = key + "=...," + word;
    }
    // A key=number of it.
    void add_number(const std::string& key, const std::string& present, std::string_view name, std::uint32_t number,
                    std::string what) {
        add(Severity::kAdvice, key, std::move(what), key + "=" + with_number(present, name, number));
        if (!present.empty()) all_.back().shorter = key + "=...," + std::string(name) + "=" + std::to_string(number);
    }
    std::vector<Finding> take() && { return std::move(all_); }

   private:
    void add(Severity severity, std::string subject, std::string what, std::string line) {
        all_.push_back({severity, std::move(subject), std::move(what), std::move(line)});
    }
    std::vector<Finding> all_;
};

// major << 16 | minor << 8 of 22.05.8; 0 if it cannot be read.
std::uint32_t release_of(std::string_view version) {
    unsigned parts[3] = {0, 0, 0};
    if (sscanf(std::string(version).c_str(), "%u.%u.%u", &parts[0], &parts[1], &parts[2]) < 2) return 0;
    return parts[0] << 16 | (parts[1] & 255) << 8 | (parts[2] & 255);
}

std::string shown(const std::string& text) {
    return text.empty() ? "not set" : printable(text);
}

// A key that has to have one value.
void expect(Findings& findings, const std::string& key, const std::string& has, const std::string& wanted,
            const std::string& otherwise) {
    if (has == wanted)
        findings.good(key, wanted);
    else
        findings.wrong(key, shown(has) + ": " + otherwise, key + "=" + wanted);
}

std::optional<Parameters> parsed(const Configuration& conf) {
    Result<Parameters> parameters = Parameters::parse(conf.priority_parameters);
    if (!parameters) return std::nullopt;
    return std::move(parameters).value();
}

// --- the budgets ---

void look_at_priority(const Configuration& conf, Findings& findings) {
    expect(findings, "PriorityType", conf.priority_type, "priority/budget",
           "the queue is not ordered by budgets, and nothing is charged to them");
    const Result<Parameters> parameters = Parameters::parse(conf.priority_parameters);
    if (parameters)
        findings.good("PriorityParameters", conf.priority_parameters.empty() ? "all defaults" : "can be read");
    else
        findings.wrong("PriorityParameters", parameters.error(), "PriorityParameters=" + to_string(Parameters{}));
    if (!conf.fair_tree)
        findings.wrong("PriorityFlags", "NO_FAIR_TREE is not supported, and sshare believes it",
                       "PriorityFlags without NO_FAIR_TREE");
    else if (conf.depth_oblivious)
        findings.wrong("PriorityFlags", "DEPTH_OBLIVIOUS is not supported", "PriorityFlags without DEPTH_OBLIVIOUS");
    else
        findings.good("PriorityFlags", "nothing that is not supported");
}

// What the site has added to the TRES that Slurm counts anyway.
std::string added_tres(std::string_view tres) {
    std::string added;
    for (const std::string& word : words_of(tres))
        if (!has_word("cpu,mem,energy,node,billing,fs/disk,vmem,pages", word))
            added += (added.empty() ? "" : ",") + word;
    return added;
}

void look_at_accounting(const Configuration& conf, Findings& findings) {
    expect(findings, "AccountingStorageType", conf.accounting_type, "accounting_storage/slurmdbd",
           "there are no budgets without slurmdbd");
    std::string missing;
    if (!has_word(conf.accounting_tres, "gres/gpu")) missing = "gres/gpu";
    if (const std::optional<Parameters> parameters = parsed(conf))
        for (const GpuWeight& weight : parameters->gpu_weight) {
            const std::string tres = "gres/gpu:" + weight.type;
            if (!weight.type.empty() && !has_word(conf.accounting_tres, tres))
                missing += (missing.empty() ? "" : ",") + tres;
        }
    if (missing.empty())
        findings.good("AccountingStorageTRES", "GPUs are counted");
    else
        findings.add_word(Severity::kWrong, "AccountingStorageTRES", added_tres(conf.accounting_tres), missing,
                          "GPUs that Slurm does not count are not charged: " + missing + " is missing");
    std::string enforce;
    if (!conf.enforces_associations) enforce += " associations";
    if (!conf.enforces_limits) enforce += " limits";
    if (!conf.enforces_qos) enforce += " qos";
    if (enforce.empty())
        findings.good("AccountingStorageEnforce", "associations, limits and qos");
    else
        findings.wrong("AccountingStorageEnforce", "missing:" + enforce,
                       "AccountingStorageEnforce=associations,limits,qos");
}

// --- contracts ---

void look_at_preemption(const Configuration& conf, Findings& findings) {
    expect(findings, "PreemptType", conf.preempt_type, "preempt/contract",
           "nobody gives way by budget, and contracts protect from nothing");
    const PreemptMode& mode = conf.preempt_mode;
    if (mode.requeue && !mode.suspend && !mode.cancel && !mode.gang)
        findings.good("PreemptMode", "REQUEUE");
    else
        findings.wrong("PreemptMode", to_string(mode) + ": who gives way has to be requeued", "PreemptMode=REQUEUE");
    if (conf.preempt_exempt_time == 0)
        findings.good("PreemptExemptTime", "not set");
    else
        findings.wrong("PreemptExemptTime",
                       std::to_string(conf.preempt_exempt_time) + " s: protects every run, the unallocated ones too",
                       "PreemptExemptTime=0");
    if (!has_word(conf.submit_plugins, "contract") && !has_word(conf.submit_plugins, "job_submit/contract"))
        findings.add_word(Severity::kWrong, "JobSubmitPlugins", conf.submit_plugins, "contract",
                          shown(conf.submit_plugins) + ": nobody takes up --min-runtime");
    else if (words_of(conf.submit_plugins).back().find("contract") == std::string::npos)
        findings.advise("JobSubmitPlugins", "contract is not the last: it has to see what the others have changed",
                        "JobSubmitPlugins with contract at its end");
    else
        findings.good("JobSubmitPlugins", "contract");
    if (conf.requeue)
        findings.good("JobRequeue", "1");
    else
        findings.wrong("JobRequeue", "0: a job that gives way ends instead of being requeued", "JobRequeue=1");
    if (conf.kill_wait < kShortestKillWait || conf.kill_wait > kLongestKillWait)
        findings.advise(
            "KillWait",
            std::to_string(conf.kill_wait) + " s: it is the time that a job has between SIGTERM and its end",
            "KillWait=30");
    else
        findings.good("KillWait", std::to_string(conf.kill_wait) + " s");
}

bool is_wrong_mode(const PreemptMode& mode) {
    return mode.given && (mode.suspend || mode.cancel || mode.gang);
}

void look_at_partitions(const Configuration& conf, Findings& findings) {
    bool all_good = true;
    for (const PartitionTerms& partition : conf.partitions) {
        const std::string subject = "partition " + partition.name;
        if (is_wrong_mode(partition.mode)) {
            findings.wrong(subject, "PreemptMode=" + to_string(partition.mode) + ": who gives way has to be requeued",
                           "PartitionName=" + partition.name + " ... PreemptMode=REQUEUE");
            all_good = false;
        }
        if (partition.grace_time > 0) {
            findings.wrong(subject,
                           "GraceTime=" + std::to_string(partition.grace_time) +
                               ": cannot be taken back, and its jobs end instead of being requeued",
                           "PartitionName=" + partition.name + " ... GraceTime=0");
            all_good = false;
        }
    }
    if (all_good) findings.good("partitions", "no PreemptMode or GraceTime that is in the way");
}

void look_at_qos(const Configuration& conf, Findings& findings) {
    if (!conf.qos) {
        findings.advise("QOS",
                        "slurmdbd does not tell: their PreemptMode, PreemptExemptTime and GraceTime are not known", "");
        return;
    }
    bool all_good = true;
    const auto told = [&](const QosTerms& qos, const std::string& what, const std::string& setting) {
        findings.wrong("QOS " + qos.name, what, "sacctmgr modify qos " + qos.name + " set " + setting);
        all_good = false;
    };
    for (const QosTerms& qos : *conf.qos) {
        if (is_wrong_mode(qos.mode))
            told(qos, "PreemptMode=" + to_string(qos.mode) + ": who gives way has to be requeued",
                 "preemptmode=cluster");
        if (qos.exempt_time > 0)
            told(qos, "PreemptExemptTime=" + format_duration(qos.exempt_time) + " protects its unallocated runs too",
                 "preemptexempttime=-1");
        if (qos.grace_time > 0)
            told(qos,
                 "GraceTime=" + format_duration(qos.grace_time) +
                     ": cannot be taken back, and its jobs end instead of being requeued",
                 "gracetime=0");
    }
    if (all_good) findings.good("QOS", "nothing in the way");
}

// Names in our parameters that do not exist.
void look_at_names(const Configuration& conf, Findings& findings) {
    const std::optional<Parameters> parameters = parsed(conf);
    if (!parameters) return;
    const auto missing = [&](const std::string& key, const std::string& name, const std::string& line) {
        findings.wrong("PriorityParameters", key + ": there is no " + name, line);
    };
    const auto exists = [](const auto& all, const std::string& name) {
        for (const auto& one : all)
            if (lower(one.name) == lower(name)) return true;
        return false;
    };
    for (const std::string& name : parameters->exempt_partition)
        if (!exists(conf.partitions, name))
            missing("exempt_partition", "partition " + name, "PartitionName=" + name + " ..., or leave it out");
    if (!conf.qos) return;
    std::vector<std::pair<std::string, std::string>> wanted;
    for (const std::string& name : parameters->exempt_qos) wanted.emplace_back("exempt_qos", name);
    if (!parameters->unallocated_qos.empty()) wanted.emplace_back("unallocated_qos", parameters->unallocated_qos);
    for (const auto& [key, name] : wanted)
        if (!exists(*conf.qos, name)) missing(key, "QOS " + name, "sacctmgr add qos " + name);
}

// --- the schedulers ---

void look_at_number(const Configuration& conf, Findings& findings, const char* key, std::uint32_t slurms_default,
                    const char* why) {
    const std::uint32_t number = number_in(conf.scheduler_parameters, key).value_or(slurms_default);
    if (number >= kQueueExpected) return;
    findings.add_number("SchedulerParameters", conf.scheduler_parameters, key, 5 * kQueueExpected,
                        std::string(key) + " is " + std::to_string(number) + ": " + why);
}

void look_at_backfill(const Configuration& conf, Findings& findings) {
    expect(findings, "SchedulerType", conf.scheduler_type, "sched/backfill",
           "jobs behind one that waits for its place are not looked at");
    expect(findings, "SelectType", conf.select_type, "select/cons_tres", "only this one places jobs by GPUs");
    if (has_word(conf.scheduler_parameters, "bf_continue"))
        findings.good("SchedulerParameters", "bf_continue");
    else
        findings.add_word(Severity::kWrong, "SchedulerParameters", conf.scheduler_parameters, "bf_continue",
                          "without bf_continue backfill begins anew whenever a number has changed");
    if (const std::uint32_t interval = number_in(conf.scheduler_parameters, "bf_interval").value_or(kSlowBackfill);
        interval > kSlowBackfill)
        findings.add_number("SchedulerParameters", conf.scheduler_parameters, "bf_interval", kSlowBackfill,
                            "bf_interval is " + std::to_string(interval) + ": the order is acted upon late");
    look_at_number(conf, findings, "bf_max_job_test", 500, "later jobs are not looked at by backfill");
    look_at_number(conf, findings, "default_queue_depth", 100, "later jobs are not looked at");
}

// Where this release wants options of preemption: from 23.11 in a line of their own.
void look_at_victims(const Configuration& conf, Findings& findings) {
    const std::string key = conf.preempt_parameters ? "PreemptParameters" : "SchedulerParameters";
    const std::string& list = conf.preempt_parameters ? *conf.preempt_parameters : conf.scheduler_parameters;
    const std::string signal_key = conf.preempt_parameters ? key : "SlurmctldParameters";
    const std::string& signal_list = conf.preempt_parameters ? list : conf.slurmctld_parameters;
    if (!has_word(list, "preempt_strict_order"))
        findings.add_word(Severity::kAdvice, key, list, "preempt_strict_order",
                          "without preempt_strict_order Slurm puts the victims in an order of its own");
    const std::uint32_t wanted = std::max(conf.gpus_per_node, 2U);
    if (const std::uint32_t count = number_in(list, "preempt_reorder_count").value_or(1); count < wanted)
        findings.add_number(key, list, "preempt_reorder_count", wanted,
                            "preempt_reorder_count is " + std::to_string(count) +
                                ": needless victims are not taken out; about the GPUs of a node is right");
    if (!has_word(signal_list, "preempt_send_user_signal"))
        findings.add_word(Severity::kAdvice, signal_key, signal_list, "preempt_send_user_signal",
                          has_word(list, "preempt_send_user_signal")
                              ? "preempt_send_user_signal has no effect in " + key + " of this release"
                              : "without preempt_send_user_signal a job's own --signal is not sent when it gives way");
}

// --- files ---

void look_at_plugin(const Configuration& conf, Findings& findings, const std::string& name, bool micro) {
    const std::string file = find_plugin(conf.plugin_dir, name);
    const std::uint32_t release = release_of(conf.version);
    if (file.empty()) {
        findings.advise(name, "not in PluginDir on this machine (" + conf.plugin_dir + ")", "");
        return;
    }
    const std::optional<std::uint32_t> version = plugin_version(file);
    const std::uint32_t mask = micro ? 0xffffff : 0xffff00;
    if (!version || release == 0)
        findings.advise(name, "cannot tell which release of Slurm it was built for", "");
    else if ((*version & mask) != (release & mask))
        findings.wrong(name, "built for Slurm " + release_text(*version) + ", this is " + conf.version,
                       "build and install slurm-budget for Slurm " + conf.version);
    else
        findings.good(name, "built for Slurm " + release_text(*version));
}

std::optional<std::string> text_of_file(const std::string& file) {
    std::ifstream stream(file);
    if (!stream) return std::nullopt;
    return std::string(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
}

// Does the file, or one that it includes, load our SPANK plugin? Nothing: it cannot be read.
std::optional<bool> loads_spank_plugin(const std::string& file, int depth) {
    const std::optional<std::string> text = text_of_file(file);
    if (!text) return std::nullopt;
    std::string_view rest = *text;
    while (!rest.empty()) {
        std::string_view line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(std::min(line.size() + 1, rest.size()));
        line = line.substr(0, line.find('#'));
        line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
        if ((line.starts_with("required") || line.starts_with("optional")) &&
            line.find("spank_contract.so") != std::string_view::npos)
            return true;
        if (!line.starts_with("include") || depth == 0) continue;
        std::string pattern(line.substr(7));
        pattern.erase(0, pattern.find_first_not_of(" \t"));
        pattern.erase(pattern.find_last_not_of(" \t\r") + 1);
        glob_t matches{};
        bool found = false;
        if (glob(pattern.c_str(), 0, nullptr, &matches) == 0)
            for (std::size_t i = 0; i < matches.gl_pathc && !found; i++)
                found = loads_spank_plugin(matches.gl_pathv[i], depth - 1).value_or(false);
        globfree(&matches);
        if (found) return true;
    }
    return false;
}

void look_at_files(const Configuration& conf, Findings& findings) {
    look_at_plugin(conf, findings, "priority_budget.so", true);
    look_at_plugin(conf, findings, "preempt_contract.so", true);
    look_at_plugin(conf, findings, "job_submit_contract.so", true);
    look_at_plugin(conf, findings, "spank_contract.so", false);
    const std::optional<bool> loads = loads_spank_plugin(conf.plugstack_file, 4);
    const std::string line = "required spank_contract.so";
    if (!loads)
        findings.advise("PlugStackConfig",
                        conf.plugstack_file +
                            " cannot be read here: there is no --min-runtime "
                            "where it does not load spank_contract.so",
                        line);
    else if (!*loads)
        findings.wrong("PlugStackConfig",
                       conf.plugstack_file +
                           " does not load spank_contract.so: there is no "
                           "--min-runtime",
                       line);
    else
        findings.good("PlugStackConfig", "loads spank_contract.so");
}

// --- showing it ---

const char* name_of(Severity severity) {
    switch (severity) {
        case Severity::kWrong:
            return "wrong";
        case Severity::kAdvice:
            return "advice";
        case Severity::kGood:
            break;
    }
    return "good";
}

// Prints text from a column on, broken between words.
void print_wrapped(std::string_view text, std::size_t column) {
    const std::size_t width = kColumns - column;
    while (text.size() > width) {
        std::size_t end = text.rfind(' ', width);
        if (end == std::string_view::npos || end == 0) end = std::min(width, text.size());
        printf("%.*s\n%*s", static_cast<int>(end), text.data(), static_cast<int>(column), "");
        text.remove_prefix(end);
        if (text.starts_with(' ')) text.remove_prefix(1);
    }
    printf("%.*s\n", static_cast<int>(text.size()), text.data());
}

void print_table(const std::vector<Finding>& findings) {
    constexpr std::size_t kColumn = 33;
    std::size_t counts[3] = {};
    bool shortened = false;
    for (const Finding& finding : findings) {
        counts[static_cast<std::size_t>(finding.severity)]++;
        printf("%-7s %-24s ", name_of(finding.severity), finding.subject.c_str());
        if (finding.subject.size() > kColumn - 9) printf("\n%*s", static_cast<int>(kColumn), "");
        print_wrapped(finding.what, kColumn);
        if (finding.line.empty()) continue;
        constexpr std::size_t kMargin = 10;
        const bool is_short = kMargin + finding.line.size() <= kColumns || finding.shorter.empty();
        shortened |= !is_short;
        printf("   write: ");
        print_wrapped(is_short ? finding.line : finding.shorter, kMargin);
    }
    printf("%zu wrong, %zu to consider, %zu good\n", counts[0], counts[1], counts[2]);
    if (shortened) printf("(... is what the line has already)\n");
}

void print_json(const Configuration& conf, const std::vector<Finding>& findings) {
    json_object* root = json_object_new_object();
    json_object* list = json_object_new_array();
    int wrong = 0;
    for (const Finding& finding : findings) {
        json_object* item = json_object_new_object();
        json_object_object_add(item, "severity", json_object_new_string(name_of(finding.severity)));
        json_object_object_add(item, "subject", json_object_new_string(finding.subject.c_str()));
        json_object_object_add(item, "what", json_object_new_string(finding.what.c_str()));
        json_object_object_add(item, "write",
                               finding.line.empty() ? nullptr : json_object_new_string(finding.line.c_str()));
        json_object_array_add(list, item);
        if (finding.severity == Severity::kWrong) wrong++;
    }
    json_object_object_add(root, "slurm_version", json_object_new_string(conf.version.c_str()));
    json_object_object_add(root, "wrong", json_object_new_int(wrong));
    json_object_object_add(root, "findings", list);
    printf("%s\n", json_object_to_json_string_ext(root, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(root);
}

}  // namespace

std::vector<Finding> examine(const Configuration& configuration) {
    Findings findings;
    look_at_priority(configuration, findings);
    look_at_accounting(configuration, findings);
    look_at_preemption(configuration, findings);
    look_at_partitions(configuration, findings);
    look_at_qos(configuration, findings);
    look_at_names(configuration, findings);
    look_at_backfill(configuration, findings);
    look_at_victims(configuration, findings);
    look_at_files(configuration, findings);
    return std::move(findings).take();
}

int run_doctor(bool json) {
    const Result<Configuration> configuration = read_configuration();
    if (!configuration) {
        fprintf(stderr, "sbudget doctor: %s\n", configuration.error().c_str());
        return 3;
    }
    const std::vector<Finding> findings = examine(configuration.value());
    if (json)
        print_json(configuration.value(), findings);
    else
        print_table(findings);
    for (const Finding& finding : findings)
        if (finding.severity == Severity::kWrong) return 1;
    return 0;
}

}  // namespace budget
