/* The state of a quasi-Newton method as JSON, with all digits: one table of members. */
#include "engine/checkpoint/drps_newton_json.h"

#include <math.h>
#include <string.h>

#include "base/folder/drps_manifest.h"

enum { REALS = 8, COUNTS = 8 };

struct members {
    const char *reals[REALS], *counts[COUNTS];
};
static const struct members names = {
    .reals = {"first_norm", "on_gradient", "value", "slope", "step", "low", "low_slope", "high"},
    .counts = {"pass", "accepts", "keeps", "slot", "pairs", "trials", "idle", "end"},
};

static void list_reals(const struct drps_newton_state *s, double out[REALS])
{
    const struct drps_newton_search *at = &s->search;
    const double reals[REALS] = {s->first_norm, s->on_gradient, at->value,     at->slope,
                                 at->step,      at->low,        at->low_slope, at->high};
    memcpy(out, reals, sizeof(reals));
}

static void list_counts(const struct drps_newton_state *s, uint64_t out[COUNTS])
{
    const uint64_t counts[COUNTS] = {
        s->pass, (uint64_t)s->accepts, (uint64_t)s->keeps, s->slot, s->pairs, s->search.trials,
        s->idle, (uint64_t)s->end};
    memcpy(out, counts, sizeof(counts));
}

static json_t *coefficients(const double *on, uint32_t n)
{
    json_t *list = json_array();
    for (uint32_t i = 0; list && i < n; i++)
        if (json_array_append_new(list, json_real(on[i])) < 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

json_t *drps_newton_to_json(const struct drps_newton_state *s)
{
    double reals[REALS];
    uint64_t counts[COUNTS];
    json_t *j = json_object();
    list_reals(s, reals);
    list_counts(s, counts);
    for (size_t i = 0; i < REALS; i++) /* JSON has no infinite numbers */
        drps_manifest_put(&j, names.reals[i],
                          isfinite(reals[i]) ? json_real(reals[i]) : json_null());
    for (size_t i = 0; i < COUNTS; i++)
        drps_manifest_put(&j, names.counts[i], json_integer((json_int_t)counts[i]));
    drps_manifest_put(&j, "on_s", coefficients(s->on_s, s->pairs));
    drps_manifest_put(&j, "on_y", coefficients(s->on_y, s->pairs));
    return j;
}

static int read_coefficients(const json_t *j, const char *key, const char *path, uint32_t n,
                             double *out, struct drps_err *err)
{
    const json_t *list = json_object_get(j, key);
    if (json_array_size(list) != n)
        return drps_err_set(err, DRPS_E_CORRUPT, "%s: \"%s\" has %zu numbers, %u are due", path,
                            key, json_array_size(list), n);
    for (uint32_t i = 0; i < n; i++) {
        const json_t *number = json_array_get(list, i);
        if (!json_is_number(number))
            return drps_err_set(err, DRPS_E_CORRUPT, "%s: \"%s\" has something else than numbers",
                                path, key);
        out[i] = json_number_value(number);
    }
    return 0;
}

static int read_members(const json_t *j, const char *path, double reals[REALS],
                        uint64_t counts[COUNTS], struct drps_err *err)
{
    int rc = 0;
    for (size_t i = 0; i < REALS && rc == 0; i++) {
        reals[i] = INFINITY;
        if (json_is_null(json_object_get(j, names.reals[i]))) continue;
        rc = drps_manifest_get_real(j, names.reals[i], path, &reals[i], err);
    }
    for (size_t i = 0; i < COUNTS && rc == 0; i++) {
        rc = drps_manifest_get_count(j, names.counts[i], path, &counts[i], err);
        if (rc == 0 && counts[i] > UINT32_MAX)
            rc =
                drps_err_set(err, DRPS_E_CORRUPT, "%s: \"%s\" is too large", path, names.counts[i]);
    }
    return rc;
}

int drps_newton_from_json(const json_t *j, const char *path, const struct drps_optim *optim,
                          struct drps_newton_state *out, struct drps_err *err)
{
    double r[REALS];
    uint64_t c[COUNTS];
    memset(out, 0, sizeof(*out));
    int rc = read_members(j, path, r, c, err);
    if (rc < 0) return rc;
    *out = (struct drps_newton_state){
        .first_norm = r[0],
        .on_gradient = r[1],
        .search = {.value = r[2],
                   .slope = r[3],
                   .step = r[4],
                   .low = r[5],
                   .low_slope = r[6],
                   .high = r[7],
                   .trials = c[5]},
        .pass = c[0],
        .accepts = c[1] != 0,
        .keeps = c[2] != 0,
        .slot = (uint32_t)c[3],
        .pairs = (uint32_t)c[4],
        .idle = c[6],
        .end = (enum drps_newton_end)c[7],
    };
    if (out->pairs > DRPS_OPTIM_PAIRS_MOST)
        return drps_err_set(err, DRPS_E_CORRUPT, "%s: %u pairs are too many", path, out->pairs);
    rc = read_coefficients(j, "on_s", path, out->pairs, out->on_s, err);
    if (rc == 0) rc = read_coefficients(j, "on_y", path, out->pairs, out->on_y, err);
    return rc < 0 ? rc : drps_newton_check_state(out, optim, path, err);
}
