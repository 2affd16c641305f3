/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Memory for what a view points at: pieces that stay where they are until the next
 * pass, which uses them again, and names that are kept for good. Of our thread
 * alone. Running out of memory ends slurmctld, as elsewhere in it.
 */
#ifndef SLURM_BUDGET_PLUGINS_SLURM_KEPT_H
#define SLURM_BUDGET_PLUGINS_SLURM_KEPT_H

#include <stddef.h>

/* Begins a pass: all pieces are free again. */
void kept_begin(void);

/* A piece filled with zeros, for any type. */
void *kept_piece(size_t size);

/* The same text at an address that stays; NULL for NULL and "". There are as many as
 * partitions, QOS and their combinations. */
const char *kept_name(const char *text);

/* Room for `needed` elements of a size in a buffer that grows. */
void *kept_grown(void *memory, size_t *room, size_t needed, size_t size);

/* Gives back everything. */
void kept_free(void);

#endif
