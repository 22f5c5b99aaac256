/* A calibration as a member of model.json, written and checked. */
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/drps_alloc.h"
#include "base/folder/drps_manifest.h"
#include "engine/calibrate/drps_calibration.h"

static json_t *numbers_to_json(const double *v, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        drps_manifest_append(&list, json_real(v[i]));
    return list;
}

void *drps_calibration_to_json(const struct drps_calibration *c)
{
    json_t *j = json_object();
    drps_manifest_put(&j, "method", json_string(drps_calibration_names()[c->kind]));
    drps_manifest_put(&j, "samples", json_real(c->samples));
    if (c->kind == DRPS_CALIBRATION_PLATT) {
        drps_manifest_put(&j, "a", json_real(c->a));
        drps_manifest_put(&j, "b", json_real(c->b));
    }
    if (c->kind == DRPS_CALIBRATION_ISOTONIC) {
        drps_manifest_put(&j, "scores", numbers_to_json(c->scores, c->n));
        drps_manifest_put(&j, "probabilities", numbers_to_json(c->probabilities, c->n));
    }
    return j;
}

/* Larger numbers, which no calibration has, would make scores that are not finite. */
static const double number_most = 1e30;

static int get_platt(const json_t *j, const char *path, struct drps_calibration *out,
                     struct drps_err *err)
{
    int rc = drps_manifest_get_real(j, "a", path, &out->a, err);
    if (rc == 0) rc = drps_manifest_get_real(j, "b", path, &out->b, err);
    if (rc == 0 && !(fabs(out->a) <= number_most && fabs(out->b) <= number_most))
        rc = drps_err_set(err, DRPS_E_CORRUPT,
                          "%s: \"calibration\" has an \"a\" or \"b\" beyond %g", path, number_most);
    return rc;
}

/* Returns the numbers of a list, own, NULL unless all are floats and rise (strictly), or memory is
 * gone. */
static double *get_numbers(const json_t *list, size_t n, int strictly)
{
    double *v = drps_array_new(n, sizeof(*v));
    int good = v != NULL;
    for (size_t i = 0; i < n && good; i++) {
        const json_t *number = json_array_get(list, i);
        v[i] = json_number_value(number);
        good = json_is_number(number) && fabs(v[i]) <= FLT_MAX &&
               (!i || (strictly ? v[i] > v[i - 1] : v[i] >= v[i - 1]));
    }
    if (good) return v;
    free(v);
    return NULL;
}

static int get_isotonic(const json_t *j, const char *path, struct drps_calibration *out,
                        struct drps_err *err)
{
    const json_t *scores = json_object_get(j, "scores"), *p = json_object_get(j, "probabilities");
    const size_t n = json_array_size(scores);
    if (n >= 1 && n <= 2 * (DRPS_CALIBRATION_STEPS + 1) && json_array_size(p) == n) {
        out->n = n;
        out->scores = get_numbers(scores, n, 1);
        out->probabilities = get_numbers(p, n, 0);
    }
    if (out->scores && out->probabilities && out->probabilities[0] >= 0 &&
        out->probabilities[n - 1] <= 1)
        return 0;
    return drps_err_set(err, DRPS_E_CORRUPT,
                        "%s: \"calibration\" has no rising scores with probabilities", path);
}

int drps_calibration_get(const void *manifest, const char *path, struct drps_calibration *out,
                         struct drps_err *err)
{
    const json_t *j = json_object_get(manifest, "calibration");
    const char *method = json_string_value(json_object_get(j, "method"));
    memset(out, 0, sizeof(*out));
    if (!j) return 0;
    for (int k = DRPS_CALIBRATION_PLATT; method && k <= DRPS_CALIBRATION_ISOTONIC; k++)
        if (strcmp(method, drps_calibration_names()[k]) == 0)
            out->kind = (enum drps_calibration_kind)k;
    int rc = drps_manifest_get_real(j, "samples", path, &out->samples, err);
    if (rc == 0 && !(out->samples > 0))
        rc = drps_err_set(err, DRPS_E_CORRUPT, "%s: \"calibration\" is of no samples", path);
    if (rc < 0) return rc;
    if (out->kind == DRPS_CALIBRATION_PLATT) return get_platt(j, path, out, err);
    if (out->kind == DRPS_CALIBRATION_ISOTONIC) return get_isotonic(j, path, out, err);
    return drps_err_set(err, DRPS_E_CORRUPT, "%s: \"calibration\" is of no known method", path);
}
