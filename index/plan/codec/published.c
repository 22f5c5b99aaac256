/*
 * A record of published.rec: three packed lists: which rows have a published slot, their slots (as
 * numbers), and after which uses the worker keeps a copy.
 */
#include "index/plan/codec/drps_published.h"

#include <inttypes.h>
#include <string.h>

#include "index/plan/codec/drps_list.h"

size_t drps_published_encode_bound(size_t n, size_t uses)
{
    return 2 * drps_list_encode_bound(n) + drps_list_encode_bound(uses);
}

size_t drps_published_encode(const struct drps_published_rows *rows, void *out)
{
    uint32_t *place = rows->room, *list = rows->room + rows->n;
    unsigned char *at = out;
    size_t n = 0, kept = 0;
    for (uint32_t i = 0; i < rows->n; i++) {
        if (rows->slot[i] == DRPS_NOT_PUBLISHED) continue;
        place[n] = i;
        list[n++] = rows->slot[i];
    }
    at += drps_list_encode_dense(place, n, at);
    at += drps_numbers_encode(list, n, at);
    for (uint32_t i = 0; i < rows->uses; i++)
        if (rows->keeps[i]) list[kept++] = i;
    at += drps_list_encode_dense(list, kept, at);
    return (size_t)(at - (unsigned char *)out);
}

/* ---- Decoding ---- */

struct reader {
    const unsigned char *at;
    size_t left;
};

/* The next list, or numbers, of at most `most`, each below `end`. */
static int next_list(struct reader *r, size_t most, int numbers, uint64_t end, uint32_t *out,
                     size_t *n_out, struct drps_err *err)
{
    size_t used = 0;
    *n_out = r->left >= 4 ? drps_list_count(r->at) : 0;
    if (*n_out > most)
        return drps_err_set(err, DRPS_E_CORRUPT, "a list of %zu of %zu", *n_out, most);
    int rc = numbers ? drps_numbers_decode(r->at, r->left, out, &used, err)
                     : drps_list_decode(r->at, r->left, out, &used, err);
    if (rc < 0) return rc;
    r->at += used;
    r->left -= used;
    for (size_t i = 0; i < *n_out; i++)
        if (out[i] >= end)
            return drps_err_set(err, DRPS_E_CORRUPT, "number %" PRIu32 " of %" PRIu64, out[i], end);
    return 0;
}

int drps_published_decode(const void *record, size_t bytes, uint64_t slots,
                          const struct drps_published_rows *rows, struct drps_err *err)
{
    uint32_t *place = rows->room, *list = rows->room + rows->n;
    size_t places, n = 0, kept = 0;
    struct reader r = {record, bytes};
    memset(rows->slot, 0xff, rows->n * sizeof(*rows->slot));
    memset(rows->keeps, 0, rows->uses);
    int rc = next_list(&r, rows->n, 0, rows->n, place, &places, err);
    if (rc == 0) rc = next_list(&r, rows->n, 1, slots, list, &n, err);
    if (rc == 0 && n != places)
        rc = drps_err_set(err, DRPS_E_CORRUPT, "%zu published slots of %zu rows", n, places);
    for (size_t i = 0; rc == 0 && i < n; i++)
        rows->slot[place[i]] = list[i];
    if (rc == 0) rc = next_list(&r, rows->uses, 0, rows->uses, list, &kept, err);
    for (size_t i = 0; rc == 0 && i < kept; i++)
        rows->keeps[list[i]] = 1;
    if (rc == 0 && r.left)
        rc = drps_err_set(err, DRPS_E_CORRUPT, "%zu bytes behind the lists", r.left);
    return rc;
}
