/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * What Slurm's plugins ask of the policy. Plain C, no type of Slurm: views of
 * its records in, answers out. Instants are UTC seconds, GPU weight is in
 * 1/5040 GPU. All functions may be called from any thread; the engine's lock is
 * the innermost one, nothing of Slurm is called under it. Strings and arrays of
 * a view are read during the call only; those of an answer belong to the engine
 * and live until budget_answer_free. Rules are cited from slurm-budget(7).
 */
#ifndef SLURM_BUDGET_PLUGINS_ENGINE_H
#define SLURM_BUDGET_PLUGINS_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* fairshare=parent as Slurm stores it */
#define BUDGET_SHARES_PARENT 0x7fffffffu

/* Where priority numbers lie (Q6). */
#define BUDGET_PRIORITY_LOW (1u << 20)
#define BUDGET_PRIORITY_HIGH (1u << 31)

enum budget_log_level { BUDGET_LOG_ERROR, BUDGET_LOG_INFO, BUDGET_LOG_DEBUG };

/* Takes one line without newline. May be called from any thread of a caller;
 * never while the engine's lock is held. */
typedef void (*budget_log_fn)(enum budget_log_level level, const char *line);

void budget_engine_set_log(budget_log_fn log);

/* PriorityParameters of slurm.conf (NULL or "" is all defaults). Returns true
 * and takes them over, or false after one error line that names key, value and
 * accepted form; then the last good set stays in force. */
bool budget_engine_configure(const char *parameters);

/* Seconds between two passes at the most that the policy needs (1), and the
 * position of the band of jobs without GPUs: the number to add to what
 * priority/multifactor gives, and the highest sum allowed (Q7). */
struct budget_band {
	uint32_t low;  /* add this */
	uint32_t high; /* keep the sum below this */
};
struct budget_band budget_engine_no_gpu_band(void);

/* The lowest number of the allocated band: what a job gets that no pass has
 * seen yet, behind all that have been ranked. */
uint32_t budget_engine_provisional_priority(void);

/* One kind of GPU that Slurm counts (a TRES of the gres family). */
struct budget_tres {
	const char *name; /* "gpu", "shard", "mps" or another GRES name */
	const char *type; /* "a100", "1g.5gb", ...; NULL or "" if untyped */
};

/* The GPU-like TRES in the order in which the counts of a job view come.
 * per_gpu: how many shards or mps units make one GPU on this cluster (0: unknown). */
void budget_engine_set_tres(const struct budget_tres *tres, size_t count,
			    uint64_t shards_per_gpu, uint64_t mps_per_gpu);

/* U1: the rate of a job that holds counts[i] of TRES i. Saturates. */
int64_t budget_engine_rate(const uint64_t *counts, size_t count);

/* An association. Roots: parent_id 0. */
struct budget_association {
	uint32_t id;
	uint32_t parent_id;
	uint32_t shares; /* raw share or BUDGET_SHARES_PARENT */
	const char *account;
	const char *user;      /* NULL or "" for an account */
	const char *partition; /* NULL or "" if not bound to one */
};

/* The tree in force from now on. false after one error line: the old tree stays. */
bool budget_engine_set_tree(const struct budget_association *associations, size_t count);

enum budget_job_state {
	BUDGET_JOB_PENDING,
	BUDGET_JOB_RUNNING, /* has an allocation: running, configuring, completing without an end */
	BUDGET_JOB_SUSPENDED,
	BUDGET_JOB_ENDED, /* this run is over; the record may be pending again under the next restart count */
};

/* What stands at the front of a job's admin_comment (U10): of a pending job what it will have, of a run
 * what it has. */
struct budget_tag {
	bool readable; /* false: there is none, or it cannot be read */
	bool allocated;
	int64_t contract; /* seconds; -1: nobody asked for any (kNotAsked in common/run_tag.h) */
	int64_t rate;     /* as charged, where AllocTRES does not tell; else 0 */
	bool has_reason;  /* it also says why the last run was stopped; budget_engine_put_tag keeps that if set */
};
struct budget_tag budget_engine_read_tag(const char *comment);

/* The comment with this tag in front, in place of the one it may have, for free(); NULL
 * if there is no memory. */
char *budget_engine_put_tag(const struct budget_tag *tag, const char *comment);

/* Part of a node that somebody holds, or that it has in all: its GPUs of one TRES (by index, see
 * budget_engine_set_tres; of several there is a holding each), cores and memory (MB) in one of them. */
struct budget_holding {
	uint32_t node; /* index into the nodes of the pass */
	uint32_t tres; /* UINT32_MAX: no GPUs */
	uint32_t gpus;
	uint32_t cpus;
	uint64_t memory;
};

/* What a pending job asks for; 0: no such demand. See common/placement.h. */
struct budget_request {
	uint32_t min_nodes, max_nodes;
	uint32_t tres; /* kind of all its GPUs; UINT32_MAX: any */
	uint32_t gpus, gpus_per_node, gpu_chunk;
	uint32_t cpus, cpus_per_node, cpus_per_gpu;
	uint64_t memory_per_node, memory_per_cpu, memory_per_gpu;
	bool whole_nodes;
	bool modelled; /* false: it asks for more than this can say (features, licences, shards, a reservation) */
	const uint64_t *allowed; /* bit n: may use node n; NULL: any */
};

/* A job record of Slurm that concerns GPUs (others are not shown). */
struct budget_job {
	uint32_t job_id;
	uint32_t restart_count;
	uint32_t assoc_id; /* 0: has none */
	enum budget_job_state state;
	bool eligible;      /* pending: may start as far as it is up to the job (Q2) */
	bool held;          /* pending with priority 0, or a priority set by an operator: not numbered */
	uint32_t array_job_id; /* of a record of a job array, else 0 */
	uint32_t array_task;   /* its task, or the first of its pending tasks */
	uint32_t tasks;     /* pending tasks of an array record, else 1 */
	uint32_t task_room; /* how many more tasks the array's own limit (%N) lets start; UINT32_MAX: no limit */
	uint32_t priority;  /* Slurm's number now */
	uint32_t qos_priority;
	int64_t nice;       /* 0 is neutral */
	int64_t rate;       /* budget_engine_rate of what it holds or asks for */
	int64_t eligible_time; /* begin time, for a job that was never seen eligible before */
	int64_t start;      /* run: start time */
	int64_t end;        /* run: end time, 0 while it runs */
	int64_t changed;    /* run: when it was last resized, suspended or resumed; 0 unknown */
	int64_t suspended_before; /* run: how long it was suspended, but for a suspension that lasts */
	int64_t submitted;  /* run that is on: when the job was submitted; 0 unknown */
	bool broken;        /* run: the cluster ended it (failed node, boot or launch; U7) */
	bool beyond_tres;   /* run: rate is not what AllocTRES tells (a node held without asking for its GPUs) */
	bool by_operator;   /* run: ended by an operator who is neither its owner nor a coordinator (U7) */
	bool by_itself;     /* run: ended by its script, its owner or its time limit (U11) */
	struct budget_tag tag; /* as its record has it */
	uint32_t het_job_id;   /* of a part of a heterogeneous job, else 0 (C7) */
	int64_t time_limit;    /* seconds; 0: none */
	const char *partitions; /* those asked for, or the one it runs in */
	const char *qos;
	bool never_victim;  /* in a partition with PreemptMode=OFF, or in a reservation (C8); pending: in all it asks for */
	bool being_stopped; /* run: is going already */
	int64_t notice;     /* run: its own signal comes so many seconds before a stop (P7); 0: it has none */
	bool signalled;     /* run: that was sent */
	bool being_placed;  /* pending: Slurm stops others for it */
	const struct budget_request *request; /* pending: what it asks for; NULL: cannot be told */
	uint32_t first_holding, holding_count; /* run: in the holdings of the pass */
};

/* A run whose record has to bear this tag. */
struct budget_tagging {
	uint32_t job; /* index into the jobs of the pass */
	struct budget_tag tag;
};

/* A run whose own signal is to be sent now, if it still was not (P7). */
struct budget_signal {
	uint32_t job_id;
	uint32_t restart_count;
};

/* A place in the queue. */
struct budget_place {
	uint32_t job;      /* index into the jobs of the pass */
	uint32_t task;     /* 0: the record itself or its first task; k: the task to be split off as k-th */
	uint32_t priority; /* the number to set */
	bool rest;         /* the number of what remains of the array after the splits */
};

/* What sshare shows of an association. */
struct budget_share {
	uint32_t assoc_id;
	double norm_shares;      /* entitled part among siblings (B2) */
	long double usage_raw;   /* GPU-seconds in the window, plain */
	long double usage_norm;  /* of the cluster's */
	long double usage_efctv; /* of the parent's */
	long double level_fs;    /* entitled over used among siblings; INFINITY if unused */
	double fs_factor;        /* leaf: (0,1] by the order of claims, 1 first */
};

struct budget_pass {
	/* in */
	int64_t now;
	int64_t capacity; /* GPU weight of the nodes neither down nor drained */
	const struct budget_job *jobs;
	size_t job_count;
	uint32_t node_count; /* 0: nothing is known of nodes, nobody preempts */
	const bool *open;    /* by node: takes new work */
	const struct budget_holding *totals; /* what the nodes have */
	size_t total_count;
	const struct budget_holding *holdings; /* what the jobs hold */
	size_t holding_count;
	const struct budget_holding *others; /* what jobs hold that are not shown */
	size_t other_count;
	/* out, valid until budget_pass_free */
	const struct budget_place *places; /* only those whose number or record has to change, in order */
	size_t place_count;
	const struct budget_share *shares; /* every association of the tree */
	size_t share_count;
	const struct budget_tagging *taggings;
	size_t tagging_count;
	const struct budget_signal *signals;
	size_t signal_count;
	bool wake_scheduler; /* somebody can be placed now by preemption whom the scheduler should look at (P3) */
	int64_t next_look;   /* when a contract or a notice ends that somebody waits for; 0: none */
	void *memory; /* the engine's */
};

/* One pass: takes up the runs (U2), moves the window, ranks the pending jobs
 * (Q), publishes the result. Returns false after one error line if there is no
 * tree yet or something is broken; then there are no answers. */
bool budget_engine_pass(struct budget_pass *pass);
void budget_pass_free(struct budget_pass *pass);

/* --- contracts --- */

/* Are contracts in force: is preempt/contract or job_submit/contract loaded? Without, a run whose record
 * has no tag has no contract. Kept until the process ends. */
void budget_engine_use_contracts(void);

/* preempt/contract is loaded: passes look for whom to place by it. Kept until the process ends. */
void budget_engine_use_preemption(void);
bool budget_engine_preempts(void);

/* A run's contract has been changed by somebody; whatever the last pass said of stopping it is void. No lock, no wait. */
void budget_engine_contract_changed(uint32_t job_id);

/* A job as it is submitted, or would be after an update; common/contract.h says more. */
struct budget_submission {
	bool gpus;
	bool system;
	uint32_t assoc_id;      /* 0: unknown */
	const char *partitions; /* those asked for, or the default one */
	const char *qos;
	bool never_victim;       /* by its partitions' PreemptMode=OFF or a reservation (C8) */
	const char *min_runtime; /* as written; NULL: not stated */
	int64_t time_limit;      /* seconds; the one that will apply; 0: none */
	int64_t time_min;        /* seconds; 0: none */
	bool requeueable;
	bool interactive;
	bool in_het_job; /* a component of a heterogeneous job (C7) */
	/* of an update */
	bool update;
	bool pending;
	bool by_operator;
	bool limit_changes;    /* the update may give another time limit: itself, a partition, a QOS, an account */
	struct budget_tag tag; /* as the record has it */
};

struct budget_terms {
	bool failed;    /* the engine cannot tell (message says why): the job is accepted as it is */
	bool refused;
	char *message;  /* lines for the owner: the refusal, or notices; NULL: none; for free() */
	bool has_tag;   /* false: outside the contract */
	struct budget_tag tag;
	int64_t time_min;      /* seconds, to be set instead; 0: as it is */
	const char *qos;       /* to be set; NULL: as it is; for free() by budget_terms_free */
};

/* C1 to C9. Never waits for a pass. If the engine fails the job is accepted as it is. */
void budget_engine_terms(const struct budget_submission *submission, struct budget_terms *terms);
void budget_terms_free(struct budget_terms *terms);

/* The value of the word min-runtime=TIME in a job's comment and the comment without it, for free(); NULL: there is none. */
char *budget_engine_take_token(const char *comment, char **rest);

/* How long what stands in the place of a tag at the front of a comment is, readable or not, with the blank
 * behind it; 0: none. */
size_t budget_engine_tag_length(const char *comment);

/* --- preemption: what the last pass decided. No lock; callers hold Slurm's job write lock. --- */

/* May this run be stopped for that pending job? The first question in a row for another preemptor counts
 * as an attempt of the scheduler to place it. */
bool budget_engine_preemptable(uint32_t preemptor, uint32_t victim, uint32_t victim_restarts, int64_t victim_start);

/* May parts of this heterogeneous job be stopped for it? (Slurm stops all of them or none.) */
bool budget_engine_stops_parts(uint32_t preemptor, uint32_t het_job);

/* Who goes first: ascending. */
uint32_t budget_engine_victim_order(uint32_t victim, uint32_t victim_restarts);

/* The run is about to be stopped for somebody: logs one line with both sides, and returns the comment with the
 * reason for its owner in its tag, for free(); NULL: leave it. names: the accounts may be told (PrivateData). */
char *budget_engine_preempting(uint32_t victim, uint32_t victim_restarts, int64_t now, bool names,
			       const char *comment);

/* A hint that a run has ended (U2), cheap; taken up by the next pass. */
void budget_engine_job_ended(const struct budget_job *job);

/* What the last pass said of a pending job, for sprio; false if it did not rank it. */
struct budget_rank {
	uint32_t priority;
	uint32_t position;  /* 1 is first */
	double ratio;       /* r of its leaf; negative if the leaf has no budget */
	bool allocated;
	int64_t eligible_since;
	int64_t pass_time;
};
bool budget_engine_rank(uint32_t job_id, struct budget_rank *rank);

/* State on disk, in folder/slurm_budget_state (docs/state_format.md). Loading: once, before
 * budget_engine_configure and the first pass; a file that cannot be used is kept under another
 * name and told of in an error line. Without a usable one the usage of the whole window, and with
 * one that since it was written, has to be fetched from the accounting database. */
void budget_engine_load(const char *folder, int64_t now);

/* Writes it; no lock of Slurm held. false after an error line (the first time, then once
 * a minute): the old file stays. */
bool budget_engine_save(const char *folder);

/* What has to be fetched next (U10): a part of at most a day. */
struct budget_gap {
	bool wanted;  /* false: nothing has to, or not yet */
	int64_t from; /* what ran between these two instants */
	int64_t to;
};
struct budget_gap budget_engine_gap(int64_t now);

/* What `sacct -P` said of that gap or of more, with these columns: header and rows, their fields
 * parted by `delimiter`. Jobs of root and of slurm_user (the name of SlurmUser) are not charged (C8).
 * The same row may come any number of times. false after one error line: then the gap is
 * wanted again later. */
const char *budget_engine_accounting_columns(void);
bool budget_engine_fill_gap(const struct budget_gap *gap, const char *text, size_t size,
			    char delimiter, const char *slurm_user);

/* It could not be fetched, for this reason (one line): it will be wanted again half a minute later. Logs,
 * but not each time. */
void budget_engine_gap_failed(int64_t now, const char *reason);

/* Slurm's own fair tree, for jobs without GPUs (Q7): fills in fs_factor of
 * every user from usage (as priority/multifactor keeps it) and raw shares. */
struct budget_fair_tree_row {
	uint32_t id;
	uint32_t parent_id; /* 0: the root account */
	uint32_t shares;    /* raw share or BUDGET_SHARES_PARENT */
	bool user;
	long double usage;
	double fs_factor; /* out */
};
void budget_fair_tree(struct budget_fair_tree_row *rows, size_t count);

#ifdef __cplusplus
}
#endif
#endif
