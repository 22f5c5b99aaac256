/*
 * What the files of the dictionary share. Private to index/dictionary/.
 *
 *     dict_open.c   opening and closing
 *     dict.c        names to ids, with counts: the table of one generation
 *     dict_sort.c   a generation's keys in order
 *     dict_runs.c   generations as runs on disk: written, and merged
 *     dict_order.c  what rows are sorted by
 *     dict_walk.c   all keys in order, from the only generation or from runs
 *     dict_base.c   names of an earlier plan, which keep their rows
 *     dict_place.c  placed ids and the final dictionary, from the only generation or from runs
 */
#ifndef DRPS_INDEX_DICTIONARY_DICT_INTERNAL_H
#define DRPS_INDEX_DICTIONARY_DICT_INTERNAL_H

#include "index/dictionary/drps_dict_walk.h"
#include "index/dictionary/key_table.h"

/* A name's string in the arena: u16 field | u32 bytes | text. */
enum { DICT_NAME_HEAD = 6 };

/* Entries are requested so many keys before they are looked at. */
enum { DICT_AHEAD = 40 };

/* A key, or what it is sorted by, and its id in the generation. */
struct dict_keyed {
    uint64_t key;
    uint32_t id;
};

struct dict {
    const struct drps_io *io;
    char *dir;
    struct dict_options options;
    int sealed; /* 1: no sample is added any more */

    struct key_table keys;     /* of this generation; provisional ids are its ids + base */
    struct dict_keyed *sorted; /* [keys.n] own: at the end of a generation, all but small keys */

    char *arena; /* strings of this generation, in order of id */
    size_t arena_n, arena_cap, arena_max;
    uint64_t *name_at; /* [used] offset in the arena by id - base */
    size_t name_cap;

    uint32_t *bases; /* [generations + 1] */
    size_t bases_n, bases_cap;

    /* Placed ids by provisional id, u32 each: of a single generation, or in a file. */
    uint32_t *placed; /* own: [placed_n] */
    size_t placed_n;
    int map_fd;
    char *map_path;
};

static inline uint32_t dict_next_id(const struct dict *d)
{
    return d->bases[d->bases_n - 1] + (uint32_t)key_table_end(&d->keys);
}

/* A generation begins at id `base`. */
DRPS_MUST_CHECK
int drps_dict_push_base(struct dict *d, uint32_t base, struct drps_err *err);

/* The generation's keys in order are not needed any more. */
void drps_dict_free_sorted(struct dict *d);
void drps_dict_free_names(struct dict *d);

/* Where a walk over the keys of a generation is, from {0} on. Small keys come first, as they lie.
 */
struct dict_cursor {
    uint64_t small; /* those below were looked at, */
    uint64_t there; /* and of the last 64 these are still to come: a bit each */
    size_t sorted;
};

/* How many keys the generation has. */
uint64_t drps_dict_keys(const struct dict *d);

/* The next key in order, once drps_dict_sort_table() was there: 1, or 0 at the end. */
int drps_dict_next(const struct dict *d, struct dict_cursor *c, struct dict_keyed *out);

/* Field and text of the key with this id in the table, where strings are kept. */
void drps_dict_name_of(const struct dict *d, uint32_t id, struct dict_key *k);

/* Two names with one key: DRPS_E_CONFIG. */
int drps_dict_collision(const struct dict_options *o, const struct dict_key *a,
                        const struct dict_key *b, struct drps_err *err);

/* A stable radix sort by key, of the bytes in which keys differ; aux has room for n. */
void drps_dict_sort_keys(struct dict_keyed *keys, struct dict_keyed *aux, size_t n);
/* The keys that are not small sorted, in place of the table's lines. */
DRPS_MUST_CHECK
int drps_dict_sort_table(struct dict *d, struct drps_err *err);

/* Write the table as a run and start over with an empty one. */
DRPS_MUST_CHECK
int drps_dict_end_generation(struct dict *d, struct drps_err *err);

#endif
