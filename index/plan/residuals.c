/*
 * A record of residuals.rec: how slots are packed (u32), then three packed lists: which rows have a
 * slot, their slots, and which of these rows are sent whole. Slots that are dense numbers of rows
 * increase as row numbers do, and are packed as a list; others as numbers.
 */
#include "index/plan/drps_residuals.h"

#include <inttypes.h>

#include "index/plan/codec/drps_lists.h"

enum { HEAD_BYTES = 4 };
enum { AS_LIST, AS_NUMBERS };

size_t drps_residuals_encode_bound(size_t n)
{
    return HEAD_BYTES + 3 * drps_list_encode_bound(n);
}

static int increases(const uint32_t *list, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (list[i] <= list[i - 1]) return 0;
    return 1;
}

/* The numbers of rows that have a slot, and of these how many are whole. */
static size_t list_places(const struct drps_residual_rows *rows, uint32_t *out)
{
    size_t n = 0;
    for (uint32_t i = 0; i < rows->n; i++)
        if (rows->slot[i] != DRPS_NO_SLOT) out[n++] = i;
    return n;
}

static size_t list_slots(const struct drps_residual_rows *rows, uint32_t *out)
{
    size_t n = 0;
    for (uint32_t i = 0; i < rows->n; i++)
        if (rows->slot[i] != DRPS_NO_SLOT) out[n++] = rows->slot[i];
    return n;
}

static size_t list_whole(const struct drps_residual_rows *rows, uint32_t *out)
{
    size_t n = 0;
    uint32_t with_slot = 0;
    for (uint32_t i = 0; i < rows->n; i++) {
        if (rows->slot[i] == DRPS_NO_SLOT) continue;
        if (rows->whole[i]) out[n++] = with_slot;
        with_slot++;
    }
    return n;
}

size_t drps_residuals_encode(const struct drps_residual_rows *rows, void *out)
{
    unsigned char *at = (unsigned char *)out + HEAD_BYTES;
    uint32_t *list = rows->room;
    size_t n = list_places(rows, list);
    at += drps_list_encode_dense(list, n, at);
    n = list_slots(rows, list);
    const int dense = increases(list, n);
    drps_put_u32(out, dense ? AS_LIST : AS_NUMBERS);
    at += dense ? drps_list_encode_dense(list, n, at) : drps_numbers_encode(list, n, at);
    n = list_whole(rows, list);
    at += drps_list_encode_dense(list, n, at);
    return (size_t)(at - (unsigned char *)out);
}

/* ---- Decoding ---- */

static int check_end(const struct drps_lists *r, size_t places, size_t slots, struct drps_err *err)
{
    if (places == slots && !r->left) return 0;
    return drps_err_set(err, DRPS_E_CORRUPT, "%zu slots of %zu rows, and %zu bytes behind", slots,
                        places, r->left);
}

int drps_residuals_decode(const void *record, size_t bytes, uint64_t slots,
                          const struct drps_residual_rows *rows, struct drps_err *err)
{
    uint32_t *place = rows->room, *list = rows->room + rows->n;
    size_t places, n = 0, whole = 0;
    const uint32_t kind = bytes >= HEAD_BYTES ? drps_get_u32(record) : UINT32_MAX;
    if (kind > AS_NUMBERS)
        return drps_err_set(err, DRPS_E_CORRUPT, "slots are packed in no known way");
    struct drps_lists r = {(const unsigned char *)record + HEAD_BYTES, bytes - HEAD_BYTES};
    for (uint32_t i = 0; i < rows->n; i++) {
        rows->slot[i] = DRPS_NO_SLOT;
        rows->whole[i] = 1;
    }
    int rc = drps_lists_next(&r, rows->n, 0, rows->n, place, &places, err);
    if (rc == 0) rc = drps_lists_next(&r, rows->n, kind == AS_NUMBERS, slots, list, &n, err);
    if (rc == 0 && n != places) rc = check_end(&r, places, n, err);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        rows->slot[place[i]] = list[i];
        rows->whole[place[i]] = 0;
    }
    if (rc == 0) rc = drps_lists_next(&r, places, 0, places, list, &whole, err);
    for (size_t i = 0; rc == 0 && i < whole; i++)
        rows->whole[place[list[i]]] = 1;
    return rc == 0 ? check_end(&r, places, n, err) : rc;
}
