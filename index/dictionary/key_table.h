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
 * Keys below `small_n` take no entry: an array has what is counted of them, and they are their own
 * ids. Ids of features are such keys, and most samples have no others; for these nothing is looked
 * up. The id of any other key is its number plus small_n.
 */
#ifndef DRPS_INDEX_DICTIONARY_KEY_TABLE_H
#define DRPS_INDEX_DICTIONARY_KEY_TABLE_H

#include <stddef.h>
#include <stdint.h>

#define KEY_TABLE_NONE UINT32_MAX

/* What is counted of a key; all 0: it was never there. */
struct key_count {
    uint16_t mask; /* segments of training samples that touch the key */
    uint16_t left; /* UINT16_MAX less the time of the first of these; of a key that no training
                      sample touches, 1 */
    uint32_t uses; /* training samples that touch it, saturating */
};

struct key_entry {
    uint64_t key;
    struct key_count count;
};

struct key_line;

enum { KEY_TABLE_RING = 64 };

struct key_table {
    struct key_entry *entries; /* [max] by number; touched as it is needed */
    uint32_t *checks;          /* [max] by number, or NULL */
    size_t n, max;             /* n <= room */
    size_t room;               /* keys for which there is room; grows up to max */
    struct key_count *small;   /* [small_n] by key */
    size_t small_n;            /* a power of two, or 0 */
    uint64_t small_bits;       /* all that small keys had: none was larger */
    int has_small;             /* there was one */
    struct key_line *lines;
    size_t lines_n;
    uint32_t tags[KEY_TABLE_RING], guesses[KEY_TABLE_RING]; /* of what comes next */
};

/* The array for keys below small_n, a power of two or 0, takes 8 bytes each. -ENOMEM;
 * drps_key_table_destroy() in either case. Zero it first. */
int drps_key_table_init(struct key_table *k, size_t max, size_t small_n, int checks);
void drps_key_table_destroy(struct key_table *k);

/* Make room for twice as many keys, up to max. -ENOMEM, and nothing has changed. */
int drps_key_table_grow(struct key_table *k);
/* Raise max. -ENOMEM, and nothing has changed. */
int drps_key_table_raise(struct key_table *k, size_t max);
/* Give back what only adding needs, and nothing can be added; then begin again, without keys and
 * with as much room. -ENOMEM. */
void drps_key_table_close(struct key_table *k);
int drps_key_table_reopen(struct key_table *k);
/* Give back the entries, too: of small keys alone it is known that they are there. */
void drps_key_table_close_entries(struct key_table *k);

/* When a sample uses keys: the segment's bit and what is left of the epoch, as in key_count; bit 0:
 * it is no training sample. */
struct key_use {
    uint16_t bit, left;
};

/* 1: keys[first .. last) are all small. */
int drps_key_table_all_small(struct key_table *k, const uint64_t *keys, size_t first, size_t last);

/* Count a use of keys[first .. last), which are all small; their ids into ids_out[0 ..]. keys[last
 * .. end) come next: so they are prepared for. */
void drps_key_table_use_small(struct key_table *k, const uint64_t *keys, size_t first, size_t last,
                              size_t end, struct key_use use, uint32_t *ids_out);

/*
 * Ids of any keys[first .. last) into ids_out[0 ..]; new ones that are not small get the next
 * numbers, and an entry with nothing counted. There is room for all. keys[last .. end) come next:
 * so they are prepared for. Their look-ups should follow in this order.
 */
void drps_key_table_add(struct key_table *k, const uint64_t *keys, size_t first, size_t last,
                        size_t end, uint32_t *ids_out);
/* Count a use of the keys with these ids. */
void drps_key_table_use(struct key_table *k, const uint32_t *ids, size_t n, struct key_use use);

/* All small keys that are there are below. */
static inline uint64_t key_table_small_end(const struct key_table *k)
{
    return k->has_small ? k->small_bits + 1 : 0;
}

/* All ids are below. */
static inline uint64_t key_table_end(const struct key_table *k)
{
    return k->n ? k->small_n + k->n : key_table_small_end(k);
}

/* What is counted of the key with this id. */
static inline const struct key_count *key_table_count(const struct key_table *k, uint32_t id)
{
    return id < k->small_n ? &k->small[id] : &k->entries[id - k->small_n].count;
}

static inline int key_count_is_there(const struct key_count *c)
{
    return (c->mask | c->left) != 0;
}

static inline uint32_t key_count_first(const struct key_count *c)
{
    return c->mask ? UINT16_MAX - (uint32_t)c->left : UINT16_MAX; /* `left` may be a mark */
}

#endif
