/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Reading requests for GPUs; see gpu_request.h. Slurm finds the mark of a GRES
 * anywhere in an item, and so does this: nothing that Slurm takes for a GPU may
 * look like something else here.
 */
#include <ctype.h>
#include <string.h>

#include "plugins/slurm/gpu_request.h"

struct word {
	const char *begin;
	size_t length;
};

static struct word word_until(const char *begin, const char *end, const char *separators)
{
	size_t length = strcspn(begin, separators);

	if (begin + length > end)
		length = (size_t)(end - begin);
	return (struct word){.begin = begin, .length = length};
}

static bool is(struct word word, const char *text)
{
	return word.length == strlen(text) && !strncmp(word.begin, text, word.length);
}

/* Where the name begins: behind the last "gres:" or "gres/" before `end`. */
static const char *behind_mark(const char *item, const char *end)
{
	const char *name = item;

	for (const char *at = item; at + 5 <= end; at++)
		if (!strncmp(at, "gres", 4) && (at[4] == ':' || at[4] == '/'))
			name = at + 5;
	return name;
}

/* 0, 00 or 0k; a type has a letter before a digit, or more behind it. */
static bool is_zero(struct word word)
{
	size_t i = 0;

	while (i < word.length && word.begin[i] == '0')
		i++;
	return i > 0 && (i == word.length ||
			 (i + 1 == word.length && isalpha((unsigned char)word.begin[i])));
}

static bool item_asks(const char *item, const char *end)
{
	const char *name_begin = behind_mark(item, end);
	struct word name = word_until(name_begin, end, ":=,");
	const char *last = end;

	if (!is(name, "gpu") && !is(name, "shard") && !is(name, "mps"))
		return false;
	while (last > name_begin && last[-1] != ':' && last[-1] != '=')
		last--;
	return last == name_begin ||
	       !is_zero((struct word){.begin = last, .length = (size_t)(end - last)});
}

bool tres_ask_gpus(const char *list)
{
	while (list != NULL && *list != '\0') {
		const char *end = list + strcspn(list, ",;");

		if (item_asks(list, end))
			return true;
		list = *end != '\0' ? end + 1 : end;
	}
	return false;
}
