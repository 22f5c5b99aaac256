/*
 * The dictionary dealt between the machines of a run: each rank has the keys of its own samples,
 * and all get the rows that one machine with all samples would give. Shared inside index/.
 *
 * A key has an *owner*, by a hash. Each rank walks its keys in order and sends each once to its
 * owner, who merges what comes (OR of segments, least first time, sum of counts). Rows are numbered
 * by a sample sort: the ranks agree on ranges of the order, the places of keys go to the rank of
 * their range, which sorts them and numbers them. Numbers go back to the owners, rows from there to
 * those who asked, and names to rank 0, which writes the whole names.rec. What a rank holds
 * is in files, or within the dictionary's memory.
 *
 * This is what a rank sends to the others, in bytes a record:
 *
 *     step     a record for each         bytes     with strings
 *     keys     key of a rank             16        26 and the name's
 *     places   row of an owner           16        16
 *     numbers  row of an owner           4         4
 *     rows     key of a rank             4         4
 *     names    row of an owner           12        22 and the name's; to rank 0 alone
 */
#ifndef DRPS_INDEX_DICTIONARY_DEALT_DICT_DEALT_H
#define DRPS_INDEX_DICTIONARY_DEALT_DICT_DEALT_H

#include "index/dictionary/drps_dict.h"
#include "index/swap/drps_swap.h"

enum {
    DEALT_KEY_BYTES = 16,
    DEALT_PLACE_BYTES = 16,
    DEALT_NUMBER_BYTES = 4,
    DEALT_ROW_BYTES = 4,
    DEALT_NAMED_BYTES = 12,
    DEALT_STRING_BYTES = 10,    /* of keys and names where strings are kept, before the text */
    DEALT_NAME_MOST = 16 << 20, /* bytes of one name */
};

/* Bytes that this rank has sent to others in each step. */
struct dict_dealt_sent {
    uint64_t keys, places, numbers, rows, names;
};

/*
 * In place of drps_dict_place(), on all ranks at once: rows_out are those of all ranks, and
 * plan_dir/names.rec is written by rank 0 alone. Files in between lie in ranks->dir.
 * sent_out NULL: not wanted.
 * DRPS_E_PROTO: another rank sent what cannot be; the text names it. DRPS_E_CONFIG: two names with
 * one key, too many rows, or options with an earlier plan (base_dir), which one machine alone can
 * take. The caller closes the net with the error, so that all ranks end.
 */
DRPS_MUST_CHECK
int drps_dict_place_dealt(struct dict *d, struct swap_ranks *ranks, const char *plan_dir,
                          uint32_t first_row, uint64_t rows_out[2],
                          struct dict_dealt_sent *sent_out, struct drps_err *err);

/* Returns the rank, below count, that owns the key. */
uint32_t drps_dict_owner(uint64_t key, uint32_t count);

#endif
