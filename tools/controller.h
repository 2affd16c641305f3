// SPDX-License-Identifier: GPL-2.0-or-later
//
// The running controller's configuration, as plain values: what `scontrol show config`
// shows, partitions, the GPUs of nodes, and slurmdbd's QOS. Times in seconds unless a
// name says otherwise. Read once, by one thread.
#ifndef SLURM_BUDGET_TOOLS_CONTROLLER_H
#define SLURM_BUDGET_TOOLS_CONTROLLER_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/result.h"

namespace budget {

// PreemptMode of the cluster, a partition or a QOS.
struct PreemptMode {
    bool given = true;  // false: the cluster's holds
    bool requeue = false;
    bool suspend = false;
    bool cancel = false;
    bool gang = false;
    bool off() const { return !requeue && !suspend && !cancel; }
};
std::string to_string(const PreemptMode& mode);

struct PartitionTerms {
    std::string name;
    PreemptMode mode;
    std::uint32_t grace_time = 0;
};

struct QosTerms {
    std::string name;
    PreemptMode mode;
    std::uint32_t exempt_time = 0;
    std::uint32_t grace_time = 0;
};

// Texts that are not set are empty.
struct Configuration {
    std::string version;  // of slurmctld, as in 22.05.8
    std::string file;     // slurm.conf
    std::string plugin_dir;
    std::string plugstack_file;
    std::string priority_type;
    std::string priority_parameters;
    bool fair_tree = true;  // false: PriorityFlags=NO_FAIR_TREE
    bool depth_oblivious = false;
    std::string preempt_type;
    PreemptMode preempt_mode;
    std::uint32_t preempt_exempt_time = 0;
    std::optional<std::string> preempt_parameters;  // nothing: this release has none
    std::string scheduler_parameters;
    std::string slurmctld_parameters;
    std::string scheduler_type;
    std::string select_type;
    std::string accounting_type;
    std::string accounting_tres;
    bool enforces_associations = false;
    bool enforces_limits = false;
    bool enforces_qos = false;
    bool requeue = false;
    std::uint32_t kill_wait = 0;
    std::string submit_plugins;
    std::uint32_t gpus_per_node = 0;  // the most that a node has
    std::vector<PartitionTerms> partitions;
    std::optional<std::vector<QosTerms>> qos;  // nothing: slurmdbd does not tell
};

// Fails where slurmctld cannot be reached or does not tell.
Result<Configuration> read_configuration();

}  // namespace budget

#endif
