/*
 * The dictionary while a data set is parsed: feature keys to provisional ids, with counts and
 * access patterns. Shared inside index/.
 *
 * Keys live in one hash table of bounded size, small ones in an array beside it. When the table is
 * full, all entries are written as a run sorted by key, and an empty table goes on giving out the
 * following ids: a new *generation*. One key may so have several provisional ids. drps_dict_place()
 * merges the runs and gives every key its one placed id.
 *
 * An entry also holds a 16-bit mask, the segments (of 16 into which an epoch is cut) in which
 * training samples touch the key, and when the first of them comes. Two rows with the same mask are
 * accessed alike; popcount 16 means hot. The placed order sorts by both. Of 8, 16, 32 and 64
 * segments 16 and 32 made block stores move least.
 */
#ifndef DRPS_INDEX_DICTIONARY_DICT_H
#define DRPS_INDEX_DICTIONARY_DICT_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_io.h"
#include "index/plan/drps_plan.h"
#include "index/reader/drps_reader.h"

struct dict;

struct dict_options {
    uint64_t memory_bytes;
    uint64_t input_bytes; /* of all data, about; 0: not known */
    int strings;          /* keys are hashes: keep the strings, detect two with one key */
    int table_by_field;   /* lmf: field 0 goes to the first table, field 1 to the second; else one
                             table */
    int table_by_key;   /* keys of samples go to the first table, those of features to the second */
    uint64_t hash_seed; /* only for the text of a collision error */
    int by_hash;        /* order of a table's rows: by grid_hash(order_seed, key), not by pattern */
    uint64_t order_seed;
    const char *base_dir; /* borrowed until drps_dict_place(): the folder of an earlier plan, whose
                             names keep their rows; NULL: none */
    uint64_t base_rows;   /* that it has */
};

/* Times in an epoch, and what stands for none. */
enum { DICT_SEGMENTS = 16, DICT_TIMES = 1 << 16, DICT_TEST = DICT_TIMES };

DRPS_MUST_CHECK
int drps_dict_open(const struct drps_io *io, const char *dir, const struct dict_options *options,
                   struct dict **d_out, struct drps_err *err);
void drps_dict_close(struct dict *d);

/*
 * Ids of entries [first, last) of a piece, into ids_out[0 ..]. time: when in the epoch the sample
 * comes, below DICT_TIMES, or DICT_TEST for one of evaluation. Returns 1 when a new generation
 * began *before* these entries, else 0.
 */
DRPS_MUST_CHECK
int drps_dict_add(struct dict *d, const struct drps_samples *s, size_t first, size_t last,
                  uint32_t time, uint32_t *ids_out, struct drps_err *err);

size_t drps_dict_generations(const struct dict *d);
/* Returns the first provisional id of a generation; of generation `drps_dict_generations()`: the
 * end of all ids, some of which no key has. */
uint32_t drps_dict_base(const struct dict *d, size_t generation);

/*
 * After the last add: fix the placed ids, from `first_row` on, and write plan_dir/names.rec.
 * Tables' row counts go to rows_out[0 .. 1]. Keys that no training sample touches get DRPS_NO_ROW.
 * Names of an earlier plan keep their rows and are not counted; all of them are in names.rec, too.
 * DRPS_E_CORRUPT: the earlier plan's names are damaged.
 */
DRPS_MUST_CHECK
int drps_dict_place(struct dict *d, const char *plan_dir, uint32_t first_row, uint64_t rows_out[2],
                    struct drps_err *err);

/* After drps_dict_place(): placed ids by provisional id, borrowed until drps_dict_close(), of all
 * if there is a single generation; NULL if there are more. */
const uint32_t *drps_dict_placed(const struct dict *d);

/* Placed ids of one generation's provisional ids: map_out has room for drps_dict_base(g + 1) -
 * drps_dict_base(g). After drps_dict_place(). */
DRPS_MUST_CHECK
int drps_dict_map(struct dict *d, size_t generation, uint32_t *map_out, struct drps_err *err);

#endif
