/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The books (books.h) on disk, in StateSaveLocation/slurm_budget_books, so that
 * a killed slurmctld does not lose them. All numbers little-endian:
 *   8 bytes  magic "SBBOOKS\n"
 *   u32      version, 1
 *   u32      number of records
 *   i64      instant up to which usage has been charged and decayed
 *   records  u32 association id, u64 m, i32 e: the usage is m * 2^e
 *   u32      CRC-32 (IEEE) of everything before it
 * The file is there only while slurmctld runs with our plugin, or after it was
 * killed; a shutdown in good order removes it. No Slurm lock is to be held.
 */
#ifndef SLURM_BUDGET_PLUGINS_SLURM_BOOKS_FILE_H
#define SLURM_BUDGET_PLUGINS_SLURM_BOOKS_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

struct books_entry {
	uint32_t assoc_id;
	long double usage;
};

enum books_file_state { BOOKS_FILE_READ, BOOKS_FILE_NONE, BOOKS_FILE_DAMAGED };

/* Reads it into *entries (for free()), *count and *charged_to. One that
 * cannot be used is told of in an error line and set aside under another name. */
enum books_file_state books_file_read(const char *folder, struct books_entry **entries,
				      size_t *count, time_t *charged_to);

/* Writes a new file, flushes it and puts it in the place of the old one. false
 * after one error line; the old file stays. */
bool books_file_write(const char *folder, const struct books_entry *entries, size_t count,
		      time_t charged_to);

/* Removes it. */
void books_file_remove(const char *folder);

#endif
