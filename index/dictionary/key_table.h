/*
 * A hash table of 64-bit keys, which get the numbers 0, 1, ... in the order in which they come.
 * Private to index/dictionary/.
 *
 * A line of the cache has eight entries, a tag (32 bits of the key's hash) and a number each, in
 * the order in which they were taken; what does not fit goes to the next line. The tag also decides
 * the line, so the table grows without looking at keys. Keys lie in the order of numbers, beside
 * what is counted of them: frequent ones come early and lie together.
 *
 * A look-up is spread over time, so that no memory is waited for: first the line is requested, then
 * a number is guessed from the tags and its entry requested, at last the key is compared. A guess
 * may be of another key, or none, or outdated: then, and only then, the entries are searched.
 *
 * Keys below `small_n` take no entry: an array has their numbers. Ids of features are such keys,
 * and most samples have no others; for these nothing is hashed, and no key compared.
 */
#ifndef DRPS_INDEX_DICTIONARY_KEY_TABLE_H
#define DRPS_INDEX_DICTIONARY_KEY_TABLE_H

#include <stddef.h>
#include <stdint.h>

#define KEY_TABLE_NONE UINT32_MAX

struct key_entry {
    uint64_t key;
    uint16_t mask;  /* segments of training samples that touch the key */
    uint16_t first; /* when the first of these comes */
    uint32_t count; /* training samples that touch it, saturating */
};

struct key_line;

enum { KEY_TABLE_RING = 64 };

struct key_table {
    struct key_entry *entries;  /* [max] by number; touched as it is needed */
    uint32_t *checks;           /* [max] by number, or NULL */
    size_t n, max;              /* n <= room */
    size_t room;                /* keys for which there is room; grows up to max */
    uint32_t *small;            /* [small_n] number plus 1 by key; 0: not there */
    size_t small_n, small_used; /* and keys that are there */
    struct key_line *lines;
    size_t lines_n;
    uint32_t tags[KEY_TABLE_RING], guesses[KEY_TABLE_RING]; /* of what comes next */
};

/* The array for keys below small_n takes 4 bytes each. -ENOMEM; drps_key_table_destroy() in either
 * case. Zero it first. */
int drps_key_table_init(struct key_table *k, size_t max, size_t small_n, int checks);
void drps_key_table_destroy(struct key_table *k);

/* Make room for twice as many keys, up to max. -ENOMEM, and nothing has changed. */
int drps_key_table_grow(struct key_table *k);
/* Raise max. -ENOMEM, and nothing has changed. */
int drps_key_table_raise(struct key_table *k, size_t max);
/* Give back what only adding needs, and nothing can be added; then begin again, without keys and
 * with as much room. -ENOMEM. */
void drps_key_table_close(struct key_table *k);
void drps_key_table_close_lines(
    struct key_table *k); /* the same, but keep the array of small keys */
int drps_key_table_reopen(struct key_table *k);

/*
 * Numbers of keys[first .. last) into numbers_out[0 ..]; new ones get the next numbers, and an
 * entry with nothing counted. There is room for all. keys[last .. end) come next: so they are
 * prepared for. Their look-ups should follow in this order.
 */
void drps_key_table_add(struct key_table *k, const uint64_t *keys, size_t first, size_t last,
                        size_t end, uint32_t *numbers_out);

#endif
