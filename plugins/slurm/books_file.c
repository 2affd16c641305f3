/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Reading and writing the file of the books; the format stands in books_file.h.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "plugins/slurm/books_file.h"
#include "plugins/slurm/compat.h"

#define FILE_MAGIC "SBBOOKS\n"
#define FILE_VERSION 1
#define HEAD_SIZE 24
#define RECORD_SIZE 16
#define TAIL_SIZE 4

static void path_of(char *path, size_t size, const char *folder, const char *suffix)
{
	snprintf(path, size, "%s/slurm_budget_books%s", folder, suffix);
}

static uint32_t crc32_of(const uint8_t *data, size_t size)
{
	return (uint32_t)crc32_z(0, data, size);
}

static void put32(uint8_t *at, uint32_t value)
{
	value = htole32(value);
	memcpy(at, &value, sizeof(value));
}

static void put64(uint8_t *at, uint64_t value)
{
	value = htole64(value);
	memcpy(at, &value, sizeof(value));
}

static uint32_t get32(const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return le32toh(value);
}

static uint64_t get64(const uint8_t *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return le64toh(value);
}

/* Usage is never negative; what rounding has left below zero counts as none. */
static void put_entry(uint8_t *at, const struct books_entry *entry)
{
	int exponent = 0;
	long double usage = isfinite(entry->usage) && entry->usage > 0 ? entry->usage : 0;
	long double fraction = frexpl(usage, &exponent);

	put32(at, entry->assoc_id);
	put64(at + 4, (uint64_t)ldexpl(fraction, 64));
	put32(at + 12, (uint32_t)(exponent - 64));
}

static void get_entry(const uint8_t *at, struct books_entry *entry)
{
	entry->assoc_id = get32(at);
	entry->usage = ldexpl((long double)get64(at + 4), (int32_t)get32(at + 12));
}

/* The whole file for free(), NULL with errno if it cannot be read. */
static uint8_t *read_whole(const char *path, size_t *size)
{
	struct stat status;
	uint8_t *data = NULL;
	ssize_t got = -1;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return NULL;
	if (!fstat(fd, &status)) {
		data = malloc((size_t)status.st_size + 1);
		got = data != NULL ? read(fd, data, (size_t)status.st_size) : -1;
	}
	close(fd);
	if (got < 0) {
		free(data);
		return NULL;
	}
	*size = (size_t)got;
	return data;
}

/* What is wrong with it, or NULL. */
static const char *fault_of(const uint8_t *data, size_t size)
{
	if (size < HEAD_SIZE + TAIL_SIZE || memcmp(data, FILE_MAGIC, 8))
		return "it is no such file";
	if (get32(data + 8) != FILE_VERSION)
		return "it was written by another version";
	if (size != HEAD_SIZE + (size_t)get32(data + 12) * RECORD_SIZE + TAIL_SIZE)
		return "it is cut off";
	if (crc32_of(data, size - TAIL_SIZE) != get32(data + size - TAIL_SIZE))
		return "its checksum is wrong";
	return NULL;
}

static bool take_apart(const uint8_t *data, struct books_entry **entries, size_t *count,
		       time_t *charged_to)
{
	*count = get32(data + 12);
	*charged_to = (time_t)get64(data + 16);
	*entries = calloc(*count + 1, sizeof(**entries));
	if (*entries == NULL)
		return false;
	for (size_t i = 0; i < *count; i++)
		get_entry(data + HEAD_SIZE + i * RECORD_SIZE, &(*entries)[i]);
	return true;
}

enum books_file_state books_file_read(const char *folder, struct books_entry **entries,
				      size_t *count, time_t *charged_to)
{
	char path[4096], kept[4096];
	size_t size = 0;
	const char *fault;
	uint8_t *data;

	path_of(path, sizeof(path), folder, "");
	data = read_whole(path, &size);
	if (data == NULL && errno == ENOENT)
		return BOOKS_FILE_NONE;
	fault = data == NULL ? strerror(errno) : fault_of(data, size);
	if (fault == NULL && !take_apart(data, entries, count, charged_to))
		fault = "there is no memory";
	free(data);
	if (fault == NULL)
		return BOOKS_FILE_READ;
	path_of(kept, sizeof(kept), folder, ".unusable");
	error("priority/budget: %s cannot be used: %s; it is kept as %s", path, fault, kept);
	if (rename(path, kept))
		error("priority/budget: %s cannot be renamed: %m", path);
	return BOOKS_FILE_DAMAGED;
}

/* write() until all is written. */
static bool write_whole(int fd, const uint8_t *data, size_t size)
{
	while (size > 0) {
		ssize_t done = write(fd, data, size);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return false;
		data += done;
		size -= (size_t)done;
	}
	return true;
}

static void flush_folder(const char *folder)
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return;
	fsync(fd);
	close(fd);
}

static bool put_in_place(const char *folder, const uint8_t *data, size_t size)
{
	char path[4096], new_path[4096];
	bool written;
	int fd;

	path_of(path, sizeof(path), folder, "");
	path_of(new_path, sizeof(new_path), folder, ".new");
	fd = open(new_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	written = fd >= 0 && write_whole(fd, data, size) && !fsync(fd);
	if (fd >= 0 && close(fd))
		written = false;
	if (!written || rename(new_path, path)) {
		error("priority/budget: %s cannot be written: %m", path);
		unlink(new_path);
		return false;
	}
	flush_folder(folder);
	return true;
}

bool books_file_write(const char *folder, const struct books_entry *entries, size_t count,
		      time_t charged_to)
{
	size_t size = HEAD_SIZE + count * RECORD_SIZE + TAIL_SIZE;
	uint8_t *data = malloc(size);
	bool written;

	if (data == NULL)
		return false;
	memcpy(data, FILE_MAGIC, 8);
	put32(data + 8, FILE_VERSION);
	put32(data + 12, (uint32_t)count);
	put64(data + 16, (uint64_t)charged_to);
	for (size_t i = 0; i < count; i++)
		put_entry(data + HEAD_SIZE + i * RECORD_SIZE, &entries[i]);
	put32(data + size - TAIL_SIZE, crc32_of(data, size - TAIL_SIZE));
	written = put_in_place(folder, data, size);
	free(data);
	return written;
}

void books_file_remove(const char *folder)
{
	char path[4096];

	path_of(path, sizeof(path), folder, "");
	if (unlink(path) && errno != ENOENT)
		error("priority/budget: %s cannot be removed: %m", path);
	flush_folder(folder);
}
