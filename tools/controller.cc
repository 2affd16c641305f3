// SPDX-License-Identifier: GPL-2.0-or-later
//
// Reading the controller's configuration; see controller.h. The lists and texts of a
// reply are Slurm's until it is freed: everything is copied.
#include "controller.h"

#include <errno.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <slurm/slurmdb.h>

#include <string.h>

#include <algorithm>
#include <fstream>
#include <string_view>

namespace budget {

namespace {

// Bits of AccountingStorageEnforce, which Slurm's public headers do not name.
constexpr unsigned kEnforceAssociations = 0x01;
constexpr unsigned kEnforceLimits = 0x02;
constexpr unsigned kEnforceQos = 0x08;

std::string text_of(const char* text) {
    return text != nullptr && std::string_view(text) != "(null)" ? text : "";
}

std::uint32_t seconds_of(std::uint32_t seconds) {
    return seconds == NO_VAL || seconds == INFINITE ? 0 : seconds;
}

PreemptMode mode_of(unsigned bits) {
    return PreemptMode{.requeue = (bits & PREEMPT_MODE_REQUEUE) != 0,
                       .suspend = (bits & PREEMPT_MODE_SUSPEND) != 0,
                       .cancel = (bits & PREEMPT_MODE_CANCEL) != 0,
                       .gang = (bits & PREEMPT_MODE_GANG) != 0};
}

PreemptMode partition_mode(unsigned bits) {
    return bits == NO_VAL16 ? PreemptMode{.given = false} : mode_of(bits);
}

// Of a QOS 0 is the cluster's mode, off is a bit of its own.
PreemptMode qos_mode(unsigned bits) {
    return bits == 0 || bits == NO_VAL16 ? PreemptMode{.given = false} : mode_of(bits);
}

// Releases from 23.11 on have them.
template <typename Conf>
std::optional<std::string> preempt_parameters_of(const Conf& conf) {
    if constexpr (requires { conf.preempt_params; })
        return text_of(conf.preempt_params);
    else
        return std::nullopt;
}

std::string plugstack_of(const slurm_conf_t& conf) {
    const std::string given = text_of(conf.plugstack);
    const std::string file = text_of(conf.slurm_conf);
    return !given.empty() ? given : file.substr(0, file.find_last_of('/') + 1) + "plugstack.conf";
}

// Flags as they stand in the file: priority/budget takes those that it does not support
// out of slurmctld's memory, where sshare on its own machine still reads them.
std::string flags_in_file(const std::string& file) {
    std::ifstream stream(file);
    std::string flags;
    for (std::string line; std::getline(stream, line);)
        if (strncasecmp(line.c_str(), "PriorityFlags=", 14) == 0) flags = line.substr(14);
    return flags;
}

Configuration copied(const slurm_conf_t& conf) {
    const unsigned enforced = conf.accounting_storage_enforce;
    return Configuration{.version = text_of(conf.version),
                         .file = text_of(conf.slurm_conf),
                         .plugin_dir = text_of(conf.plugindir),
                         .plugstack_file = plugstack_of(conf),
                         .priority_type = text_of(conf.priority_type),
                         .priority_parameters = text_of(conf.priority_params),
                         .fair_tree = (conf.priority_flags & PRIORITY_FLAGS_FAIR_TREE) != 0,
                         .depth_oblivious = (conf.priority_flags & PRIORITY_FLAGS_DEPTH_OBLIVIOUS) != 0,
                         .preempt_type = text_of(conf.preempt_type),
                         .preempt_mode = mode_of(conf.preempt_mode),
                         .preempt_exempt_time = seconds_of(conf.preempt_exempt_time),
                         .preempt_parameters = preempt_parameters_of(conf),
                         .scheduler_parameters = text_of(conf.sched_params),
                         .slurmctld_parameters = text_of(conf.slurmctld_params),
                         .scheduler_type = text_of(conf.schedtype),
                         .select_type = text_of(conf.select_type),
                         .accounting_type = text_of(conf.accounting_storage_type),
                         .accounting_tres = text_of(conf.accounting_storage_tres),
                         .enforces_associations = (enforced & kEnforceAssociations) != 0,
                         .enforces_limits = (enforced & kEnforceLimits) != 0,
                         .enforces_qos = (enforced & kEnforceQos) != 0,
                         .requeue = conf.job_requeue != 0,
                         .kill_wait = conf.kill_wait,
                         .submit_plugins = text_of(conf.job_submit_plugins)};
}

std::vector<PartitionTerms> read_partitions() {
    std::vector<PartitionTerms> partitions;
    partition_info_msg_t* reply = nullptr;
    if (slurm_load_partitions(0, &reply, SHOW_ALL) != SLURM_SUCCESS) return partitions;
    for (std::uint32_t i = 0; i < reply->record_count; i++) {
        const partition_info_t& partition = reply->partition_array[i];
        partitions.push_back(
            {text_of(partition.name), partition_mode(partition.preempt_mode), seconds_of(partition.grace_time)});
    }
    slurm_free_partition_info_msg(reply);
    return partitions;
}

// GPUs in a node's Gres, as in gpu:a100:4(S:0-1),gpu:h100:4,nic:2.
std::uint32_t gpus_in(std::string_view gres) {
    std::uint32_t sum = 0;
    while (!gres.empty()) {
        std::string_view item = gres.substr(0, gres.find(','));
        gres.remove_prefix(std::min(item.size() + 1, gres.size()));
        item = item.substr(0, item.find('('));
        if (!item.starts_with("gpu:")) continue;
        std::uint32_t count = 0;
        for (char c : item.substr(item.rfind(':') + 1)) {
            if (c < '0' || c > '9' || count > 100000) break;
            count = count * 10 + static_cast<std::uint32_t>(c - '0');
        }
        sum += count;
    }
    return sum;
}

std::uint32_t read_gpus_per_node() {
    std::uint32_t most = 0;
    node_info_msg_t* reply = nullptr;
    if (slurm_load_node(0, &reply, SHOW_ALL) != SLURM_SUCCESS) return most;
    for (std::uint32_t i = 0; i < reply->record_count; i++)
        most = std::max(most, gpus_in(text_of(reply->node_array[i].gres)));
    slurm_free_node_info_msg(reply);
    return most;
}

std::optional<std::vector<QosTerms>> read_qos() {
    std::uint16_t flags = 0;
    void* connection = slurmdb_connection_get(&flags);
    if (connection == nullptr) return std::nullopt;
    slurmdb_qos_cond_t all{};
    auto* list = slurmdb_qos_get(connection, &all);
    slurmdb_connection_close(&connection);
    if (list == nullptr) return std::nullopt;
    std::vector<QosTerms> terms;
    auto* walk = slurm_list_iterator_create(list);
    while (const auto* qos = static_cast<const slurmdb_qos_rec_t*>(slurm_list_next(walk)))
        terms.push_back({text_of(qos->name), qos_mode(qos->preempt_mode), seconds_of(qos->preempt_exempt_time),
                         seconds_of(qos->grace_time)});
    slurm_list_iterator_destroy(walk);
    slurm_list_destroy(list);
    return terms;
}

}  // namespace

std::string to_string(const PreemptMode& mode) {
    std::string text;
    for (const auto& [set, name] : {std::pair{mode.gang, "GANG"}, std::pair{mode.suspend, "SUSPEND"},
                                    std::pair{mode.cancel, "CANCEL"}, std::pair{mode.requeue, "REQUEUE"}})
        if (set) text += (text.empty() ? "" : ",") + std::string(name);
    return text.empty() ? "OFF" : text;
}

Result<Configuration> read_configuration() {
    slurm_conf_t* conf = nullptr;
    if (slurm_load_ctl_conf(0, &conf) != SLURM_SUCCESS)
        return Error{std::string("slurmctld cannot be asked: ") + slurm_strerror(errno) +
                     "; is it running (scontrol ping), and is SLURM_CONF right?"};
    Configuration configuration = copied(*conf);
    slurm_free_ctl_conf(conf);
    const std::string flags = flags_in_file(configuration.file);
    if (strcasestr(flags.c_str(), "NO_FAIR_TREE") != nullptr) configuration.fair_tree = false;
    if (strcasestr(flags.c_str(), "DEPTH_OBLIVIOUS") != nullptr) configuration.depth_oblivious = true;
    configuration.gpus_per_node = read_gpus_per_node();
    configuration.partitions = read_partitions();
    if (configuration.accounting_type.ends_with("/slurmdbd")) configuration.qos = read_qos();
    return configuration;
}

}  // namespace budget
