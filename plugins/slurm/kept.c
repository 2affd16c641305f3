/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Memory for what a view points at; see kept.h.
 */
#include <stdlib.h>
#include <string.h>

#include "plugins/slurm/compat.h"
#include "plugins/slurm/kept.h"

#define BLOCK (256u * 1024u)
#define BUCKETS 1024u /* a power of two */

struct block {
	struct block *next;
	size_t size;
	_Alignas(max_align_t) char bytes[];
};

struct name {
	struct name *next;
	char text[];
};

static struct block *blocks, *current;
static size_t used; /* of the current one */
static struct name *names[BUCKETS];

static void *need(void *memory)
{
	if (memory == NULL)
		fatal("priority/budget: no memory");
	return memory;
}

void *kept_grown(void *memory, size_t *room, size_t needed, size_t size)
{
	if (needed <= *room)
		return memory;
	*room = needed * 2 + 256;
	return need(realloc(memory, *room * size));
}

void kept_begin(void)
{
	current = blocks;
	used = 0;
}

/* Behind the current block, so that those after it stay for later. */
static void add_block(size_t size)
{
	struct block *block = need(malloc(sizeof(*block) + size));

	block->size = size;
	if (current != NULL) {
		block->next = current->next;
		current->next = block;
	} else {
		block->next = blocks;
		blocks = block;
	}
	current = block;
	used = 0;
}

void *kept_piece(size_t size)
{
	void *piece;

	size = (size + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
	while (current != NULL && used + size > current->size && current->next != NULL) {
		current = current->next;
		used = 0;
	}
	if (current == NULL || used + size > current->size)
		add_block(size > BLOCK ? size : BLOCK);
	piece = current->bytes + used;
	used += size;
	return memset(piece, 0, size);
}

const char *kept_name(const char *text)
{
	struct name **bucket, *name;
	uint32_t hash = 5381;
	size_t length;

	if (text == NULL || text[0] == '\0')
		return NULL;
	for (length = 0; text[length] != '\0'; length++)
		hash = hash * 33u + (unsigned char)text[length];
	bucket = &names[hash & (BUCKETS - 1)];
	for (name = *bucket; name != NULL; name = name->next)
		if (!strcmp(name->text, text))
			return name->text;
	name = need(malloc(sizeof(*name) + length + 1));
	memcpy(name->text, text, length + 1);
	name->next = *bucket;
	*bucket = name;
	return name->text;
}

void kept_free(void)
{
	while (blocks != NULL) {
		struct block *next = blocks->next;

		free(blocks);
		blocks = next;
	}
	current = NULL;
	for (size_t i = 0; i < BUCKETS; i++) {
		while (names[i] != NULL) {
			struct name *next = names[i]->next;

			free(names[i]);
			names[i] = next;
		}
	}
}
