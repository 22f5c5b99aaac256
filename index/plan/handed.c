/*
 * Records of handed.rec and lent.rec. The first: how slots are packed (u32), then eight lists: the
 * slots of rows that arrive, and from whom; which of the batch's rows the worker has, and their
 * slots; of these rows those that the server sends, that go back, and that go to other workers; to
 * whom. The second has three lists: uses of rows that workers have, and of these those that are
 * given, and returned.
 */
#include "index/plan/drps_handed.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "index/plan/codec/drps_lists.h"

enum { HEAD_BYTES = 4, WORKER_LISTS = 6, ARRIVE_LISTS = 2 };
enum { AS_LIST, AS_NUMBERS };

/* ---- Arrays ---- */

int drps_handed_allocate(struct drps_handed_rows *rows, const struct drps_handed_most *most,
                         struct drps_err *err)
{
    *rows = (struct drps_handed_rows){
        .arrive_slot = drps_array_new(most->slots, sizeof(*rows->arrive_slot)),
        .arrive_from = drps_array_new(most->slots, sizeof(*rows->arrive_from)),
        .place = drps_array_new(most->rows, sizeof(*rows->place)),
        .slot = drps_array_new(most->rows, sizeof(*rows->slot)),
        .to = drps_array_new(most->rows, sizeof(*rows->to)),
        .taken = drps_array_new(most->rows, sizeof(*rows->taken)),
        .room = drps_array_new(most->rows, sizeof(*rows->room)),
    };
    if (rows->arrive_slot && rows->arrive_from && rows->place && rows->slot && rows->to &&
        rows->taken && rows->room)
        return 0;
    return drps_err_set(err, -ENOMEM, "no memory for rows that are handed on");
}

void drps_handed_free(struct drps_handed_rows *rows)
{
    free(rows->arrive_slot);
    free(rows->arrive_from);
    free(rows->place);
    free(rows->slot);
    free(rows->to);
    free(rows->taken);
    free(rows->room);
    *rows = (struct drps_handed_rows){.used_n = 0};
}

uint64_t drps_handed_memory(const struct drps_handed_most *most)
{
    return most->slots * 2 * sizeof(uint32_t) + most->rows * (4 * sizeof(uint32_t) + 1);
}

/* ---- The worker's records: writing ---- */

size_t drps_handed_encode_bound(const struct drps_handed_rows *rows)
{
    return HEAD_BYTES + ARRIVE_LISTS * drps_list_encode_bound(rows->arrive_n) +
           WORKER_LISTS * drps_list_encode_bound(rows->used_n);
}

static int increases(const uint32_t *list, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (list[i] <= list[i - 1]) return 0;
    return 1;
}

static int goes_to_worker(uint32_t to)
{
    return to < DRPS_HANDED_RETURNED;
}

static size_t put_taken(const struct drps_handed_rows *rows, void *out)
{
    size_t n = 0;
    for (uint32_t i = 0; i < rows->used_n; i++)
        if (rows->taken[i]) rows->room[n++] = i;
    return drps_list_encode_dense(rows->room, n, out);
}

static size_t put_returned(const struct drps_handed_rows *rows, void *out)
{
    size_t n = 0;
    for (uint32_t i = 0; i < rows->used_n; i++)
        if (rows->to[i] == DRPS_HANDED_RETURNED) rows->room[n++] = i;
    return drps_list_encode_dense(rows->room, n, out);
}

/* Which rows go to other workers, and to whom. */
static size_t put_handed(const struct drps_handed_rows *rows, unsigned char *out)
{
    size_t n = 0;
    for (uint32_t i = 0; i < rows->used_n; i++)
        if (goes_to_worker(rows->to[i])) rows->room[n++] = i;
    const size_t bytes = drps_list_encode_dense(rows->room, n, out);
    n = 0;
    for (uint32_t i = 0; i < rows->used_n; i++)
        if (goes_to_worker(rows->to[i])) rows->room[n++] = rows->to[i];
    return bytes + drps_numbers_encode(rows->room, n, out + bytes);
}

size_t drps_handed_encode(const struct drps_handed_rows *rows, void *out)
{
    unsigned char *at = (unsigned char *)out + HEAD_BYTES;
    const int dense = increases(rows->slot, rows->used_n);
    drps_put_u32(out, dense ? AS_LIST : AS_NUMBERS);
    at += drps_list_encode_dense(rows->arrive_slot, rows->arrive_n, at);
    at += drps_numbers_encode(rows->arrive_from, rows->arrive_n, at);
    at += drps_list_encode_dense(rows->place, rows->used_n, at);
    at += dense ? drps_list_encode_dense(rows->slot, rows->used_n, at)
                : drps_numbers_encode(rows->slot, rows->used_n, at);
    at += put_taken(rows, at);
    at += put_returned(rows, at);
    at += put_handed(rows, at);
    return (size_t)(at - (unsigned char *)out);
}

/* ---- The worker's records: reading ---- */

static int counts_differ(size_t a, size_t b, struct drps_err *err)
{
    return drps_err_set(err, DRPS_E_CORRUPT, "lists of %zu and %zu rows that should be as long", a,
                        b);
}

static int check_ranks(const uint32_t *ranks, size_t n, uint32_t own, struct drps_err *err)
{
    for (size_t i = 0; i < n; i++)
        if (ranks[i] == own)
            return drps_err_set(err, DRPS_E_CORRUPT, "rank %" PRIu32 " hands a row on to itself",
                                own);
    return 0;
}

static int get_arrivals(struct drps_lists *lists, const struct drps_handed_most *most,
                        struct drps_handed_rows *rows, struct drps_err *err)
{
    size_t n, from;
    int rc = drps_lists_next(lists, most->slots, 0, most->slots, rows->arrive_slot, &n, err);
    if (rc == 0)
        rc = drps_lists_next(lists, most->slots, 1, most->ranks, rows->arrive_from, &from, err);
    if (rc == 0 && n != from) rc = counts_differ(n, from, err);
    if (rc == 0) rc = check_ranks(rows->arrive_from, from, most->rank, err);
    rows->arrive_n = rc == 0 ? (uint32_t)n : 0;
    return rc;
}

static int get_places(struct drps_lists *lists, const struct drps_handed_most *most, int numbers,
                      struct drps_handed_rows *rows, struct drps_err *err)
{
    size_t n, slots;
    int rc = drps_lists_next(lists, most->rows, 0, most->rows, rows->place, &n, err);
    if (rc == 0)
        rc = drps_lists_next(lists, most->rows, numbers, most->slots, rows->slot, &slots, err);
    if (rc == 0 && n != slots) rc = counts_differ(n, slots, err);
    if (rc < 0) return rc;
    rows->used_n = (uint32_t)n;
    memset(rows->taken, 0, n);
    for (size_t i = 0; i < n; i++)
        rows->to[i] = DRPS_HANDED_KEPT;
    return 0;
}

/* Which rows go to other workers; `to` of these is 0 until the list of ranks was read. */
static int get_handed(struct drps_lists *lists, const struct drps_handed_most *most,
                      struct drps_handed_rows *rows, struct drps_err *err)
{
    size_t n, to, at = 0;
    int rc = drps_lists_next(lists, rows->used_n, 0, rows->used_n, rows->room, &n, err);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        if (rows->to[rows->room[i]] != DRPS_HANDED_KEPT)
            return drps_err_set(err, DRPS_E_CORRUPT, "a row is returned and handed on");
        rows->to[rows->room[i]] = 0;
    }
    if (rc == 0) rc = drps_lists_next(lists, rows->used_n, 1, most->ranks, rows->room, &to, err);
    if (rc == 0 && n != to) rc = counts_differ(n, to, err);
    if (rc == 0) rc = check_ranks(rows->room, to, most->rank, err);
    for (uint32_t i = 0; rc == 0 && i < rows->used_n; i++)
        if (goes_to_worker(rows->to[i])) rows->to[i] = rows->room[at++];
    return rc;
}

static int get_fates(struct drps_lists *lists, const struct drps_handed_most *most,
                     struct drps_handed_rows *rows, struct drps_err *err)
{
    size_t n;
    int rc = drps_lists_next(lists, rows->used_n, 0, rows->used_n, rows->room, &n, err);
    for (size_t i = 0; rc == 0 && i < n; i++)
        rows->taken[rows->room[i]] = 1;
    if (rc == 0) rc = drps_lists_next(lists, rows->used_n, 0, rows->used_n, rows->room, &n, err);
    for (size_t i = 0; rc == 0 && i < n; i++)
        rows->to[rows->room[i]] = DRPS_HANDED_RETURNED;
    return rc == 0 ? get_handed(lists, most, rows, err) : rc;
}

static int check_end(const struct drps_lists *lists, struct drps_err *err)
{
    if (!lists->left) return 0;
    return drps_err_set(err, DRPS_E_CORRUPT, "%zu bytes behind the rows that are handed on",
                        lists->left);
}

int drps_handed_decode(const void *record, size_t bytes, const struct drps_handed_most *most,
                       struct drps_handed_rows *rows, struct drps_err *err)
{
    const uint32_t kind = bytes >= HEAD_BYTES ? drps_get_u32(record) : UINT32_MAX;
    rows->arrive_n = rows->used_n = 0;
    if (kind > AS_NUMBERS)
        return drps_err_set(err, DRPS_E_CORRUPT, "slots are packed in no known way");
    struct drps_lists lists = {(const unsigned char *)record + HEAD_BYTES, bytes - HEAD_BYTES};
    int rc = get_arrivals(&lists, most, rows, err);
    if (rc == 0) rc = get_places(&lists, most, kind == AS_NUMBERS, rows, err);
    if (rc == 0) rc = get_fates(&lists, most, rows, err);
    return rc == 0 ? check_end(&lists, err) : rc;
}

/* ---- The server's records ---- */

size_t drps_lent_encode_bound(size_t n)
{
    return 3 * drps_list_encode_bound(n);
}

/* The numbers of the uses that are away, or of those of them with a bit. */
static size_t list_uses(const struct drps_lent_rows *rows, unsigned bit, uint32_t *out)
{
    uint32_t away = 0;
    size_t n = 0;
    for (uint32_t i = 0; i < rows->n; i++) {
        if (!rows->use[i]) continue;
        if (rows->use[i] & bit) out[n++] = bit == DRPS_LENT_AWAY ? i : away;
        away++;
    }
    return n;
}

size_t drps_lent_encode(const struct drps_lent_rows *rows, void *out)
{
    static const unsigned bits[] = {DRPS_LENT_AWAY, DRPS_LENT_GIVEN, DRPS_LENT_RETURNED};
    unsigned char *at = out;
    for (size_t b = 0; b < sizeof(bits) / sizeof(*bits); b++) {
        const size_t n = list_uses(rows, bits[b], rows->room);
        at += drps_list_encode_dense(rows->room, n, at);
    }
    return (size_t)(at - (unsigned char *)out);
}

int drps_lent_decode(const void *record, size_t bytes, const struct drps_lent_rows *rows,
                     struct drps_err *err)
{
    static const unsigned bits[] = {DRPS_LENT_GIVEN, DRPS_LENT_RETURNED};
    struct drps_lists lists = {record, bytes};
    uint32_t *away = rows->room, *list = rows->room + rows->n;
    size_t n, some;
    memset(rows->use, 0, rows->n);
    int rc = drps_lists_next(&lists, rows->n, 0, rows->n, away, &n, err);
    for (size_t i = 0; rc == 0 && i < n; i++)
        rows->use[away[i]] = DRPS_LENT_AWAY;
    for (size_t b = 0; b < 2 && rc == 0; b++) {
        rc = drps_lists_next(&lists, n, 0, n, list, &some, err);
        for (size_t i = 0; rc == 0 && i < some; i++)
            rows->use[away[list[i]]] |= (uint8_t)bits[b];
    }
    return rc == 0 ? check_end(&lists, err) : rc;
}
