/*
 * What the steps of a dealt dictionary share. Private to index/dictionary/dealt/.
 *
 *     place_dealt.c  the steps in order
 *     records.c      keys and names as bytes of a stream
 *     key_merge.c    such streams of all ranks, merged by key
 *     owned.c        the keys that this rank owns, put together
 *     splits.c       which range of the order belongs to which rank
 *     ranges.c       rows by range: sorted, numbered, and given back to owners
 *     whole_names.c  names.rec of all ranks
 */
#ifndef DRPS_INDEX_DICTIONARY_DEALT_DEALT_H
#define DRPS_INDEX_DICTIONARY_DEALT_DEALT_H

#include "index/dictionary/dealt/drps_dict_dealt.h"
#include "index/dictionary/drps_dict_walk.h"

struct dealt {
    struct swap_ranks *ranks;           /* borrowed */
    const struct dict_options *options; /* borrowed */
    uint32_t first_row;
    uint64_t rows[2]; /* of all ranks, by table: once ranges are numbered */
};

/* ---- Streams ---- */

/* drps_swap_end(), with the bytes that went to others. */
DRPS_MUST_CHECK
int drps_dealt_end(struct swap *s, struct swap_ranks *ranks, uint64_t *sent_out,
                   struct drps_err *err);

/* A key for its owner, or a name with its row for rank 0. */
enum dealt_kind { DEALT_KEYS, DEALT_NAMES };
struct dealt_record {
    struct dict_key k; /* of names: key and name alone */
    uint32_t row;      /* of names */
};

DRPS_MUST_CHECK
int drps_dealt_put(struct swap *s, uint32_t to, enum dealt_kind kind, const struct dealt_record *r,
                   struct drps_err *err);
/* strings: names come with them. *text_io [*cap_io]: own, of the record's name. */
DRPS_MUST_CHECK
int drps_dealt_take(struct swap *s, uint32_t from, enum dealt_kind kind, int strings,
                    struct dealt_record *r, char **text_io, size_t *cap_io, struct drps_err *err);

/* ---- Streams of all ranks, merged ---- */

struct key_head; /* opaque: the record that a rank's stream is at */

struct key_merge {
    struct swap *s; /* borrowed */
    enum dealt_kind kind;
    int strings;
    uint32_t count, rank;   /* of ranks */
    struct key_head *heads; /* own: [count] */
    uint32_t *heap;         /* own: [heap_n] ranks by their records' keys */
    uint32_t heap_n;
};

/* From the first records on. Close also after a failure. DRPS_E_PROTO, as in what follows: a stream
 * is not in the order of keys, or has keys that are not for it. */
DRPS_MUST_CHECK
int drps_key_merge_open(struct key_merge *m, const struct dealt *d, struct swap *s,
                        enum dealt_kind kind, struct drps_err *err);
void drps_key_merge_close(struct key_merge *m);
/* Returns the record with the least key, NULL at the end. */
const struct dealt_record *drps_key_merge_top(const struct key_merge *m);
/* Set the top aside: it stays as it is until its rank, which is returned, is gone on with. */
uint32_t drps_key_merge_pop(struct key_merge *m);
DRPS_MUST_CHECK
int drps_key_merge_go_on(struct key_merge *m, uint32_t from, struct drps_err *err);

/* ---- Keys of this rank ---- */

struct owned {
    const struct dict_options *options; /* borrowed */
    struct key_merge merge;             /* own */
    struct dict_key at;                 /* the key that drps_owned_next() found; of all ranks */
    uint32_t *asked;                    /* own: [asked_n] ranks that have it */
    uint32_t asked_n;
};

/* keys: borrowed; they are taken from the first one on. Close also after a failure. */
DRPS_MUST_CHECK
int drps_owned_open(struct owned *o, const struct dealt *d, struct swap *keys,
                    struct drps_err *err);
void drps_owned_close(struct owned *o);
/* The next key: 1, or 0 at the end. */
DRPS_MUST_CHECK
int drps_owned_next(struct owned *o, struct drps_err *err);

/* ---- Ranges of the order ---- */

/* Where a row stands in the order. */
struct place {
    uint64_t order, key;
};

struct splits {
    struct place *at; /* own: [count - 1] first places of all ranges but the first */
    uint32_t count;   /* of ranges */
    uint64_t *rows;   /* own: [count] of the keys that each rank owns */
};

/* All ranks find the same ones, of samples of their keys; d->rows, too. */
DRPS_MUST_CHECK
int drps_splits_find(struct splits *s, struct dealt *d, struct swap *keys, struct drps_err *err);
void drps_splits_free(struct splits *s);
uint32_t drps_splits_range(const struct splits *s, const struct place *at);

/* Rows of the keys that this rank owns. */
struct ranges {
    const struct dealt *d;
    struct splits splits;
    uint64_t *starts;     /* own: [count + 1] rows before each range */
    struct swap *numbers; /* own: in each stream, rows in the order of keys */
};

/* Close also after a failure. */
DRPS_MUST_CHECK
int drps_ranges_open(struct ranges *r, struct dealt *d, struct swap *keys,
                     struct dict_dealt_sent *sent, struct drps_err *err);
void drps_ranges_close(struct ranges *r);
/* The row of a key that training samples have, keys in order; DRPS_NO_ROW of others. */
DRPS_MUST_CHECK
int drps_ranges_row(struct ranges *r, const struct dict_key *k, uint32_t *row_out,
                    struct drps_err *err);

/* ---- Names ---- */

DRPS_MUST_CHECK
int drps_whole_names(const struct dealt *d, struct swap *keys, struct ranges *ranges,
                     const char *plan_dir, struct dict_dealt_sent *sent, struct drps_err *err);

#endif
