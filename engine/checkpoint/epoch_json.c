/* One table of members: docs and scripts rely on these names. */
#include "engine/checkpoint/drps_epoch_json.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/folder/drps_manifest.h"

struct member {
    const char *key;
    size_t at;   /* in struct drps_epoch */
    int is_real; /* 1: a double; 0: a count of 64 bits */
};

#define COUNT(key, field)                                                                          \
    {                                                                                              \
        key, offsetof(struct drps_epoch, field), 0                                                 \
    }
#define REAL(key, field)                                                                           \
    {                                                                                              \
        key, offsetof(struct drps_epoch, field), 1                                                 \
    }
static const struct member members[] = {
    COUNT("epoch", epoch),
    REAL("seconds", seconds),
    REAL("samples_per_s", samples_per_s),
    REAL("train_loss", train_loss),
    REAL("test_loss", test.loss),
    REAL("test_auc", test.auc),
    REAL("test_accuracy", test.accuracy),
    REAL("test_rmse", test.rmse),
    COUNT("read_bytes", read_bytes),
    COUNT("written_bytes", written_bytes),
    COUNT("reads", reads),
    COUNT("writes", writes),
    COUNT("seeks", seeks),
    COUNT("requests", requests),
    COUNT("moved_bytes", moved_bytes),
    COUNT("plan_read_bytes", plan_read_bytes),
    REAL("hit_share", hit_share),
    REAL("stall_share", stall_share),
};
/* Of a quasi-Newton method alone. */
static const struct member newton_members[] = {
    REAL("objective", newton.objective),
    REAL("gradient_norm", newton.gradient_norm),
    REAL("step", newton.step),
    COUNT("accepted", newton.accepted),
};
/* Only models of implicit feedback have these members. */
static const struct member ranking_members[] = {
    REAL("test_recall_at_10", test.recall),
    REAL("test_ndcg_at_10", test.ndcg),
};
#undef COUNT
#undef REAL
enum {
    MEMBERS = sizeof(members) / sizeof(*members),
    NEWTON_MEMBERS = sizeof(newton_members) / sizeof(*newton_members),
    RANKING_MEMBERS = sizeof(ranking_members) / sizeof(*ranking_members)
};

static json_t *to_json(const struct drps_epoch *e, const struct member *m)
{
    double real;
    uint64_t count;
    if (m->is_real) {
        memcpy(&real, (const char *)e + m->at, sizeof(real));
        return isfinite(real) ? json_real(real) : json_null();
    }
    memcpy(&count, (const char *)e + m->at, sizeof(count));
    return json_integer(count > INT64_MAX ? INT64_MAX : (json_int_t)count);
}

static int put_all(json_t *j, const struct drps_epoch *e, const struct member *list, size_t n)
{
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = json_object_set_new(j, list[i].key, to_json(e, &list[i]));
    return rc;
}

json_t *drps_epoch_to_json(const struct drps_epoch *e)
{
    json_t *j = json_object();
    int rc = j ? put_all(j, e, members, MEMBERS) : -1;
    if (rc == 0 && e->is_newton) rc = put_all(j, e, newton_members, NEWTON_MEMBERS);
    if (rc == 0 && !isnan(e->test.ndcg)) rc = put_all(j, e, ranking_members, RANKING_MEMBERS);
    if (rc == 0) return j;
    json_decref(j);
    return NULL;
}

static int from_json(const json_t *j, const struct member *m, const char *path,
                     struct drps_epoch *out, struct drps_err *err)
{
    double real = NAN;
    uint64_t count = 0;
    int rc = 0;
    if (!m->is_real)
        rc = drps_manifest_get_count(j, m->key, path, &count, err);
    else if (!json_is_null(json_object_get(j, m->key)))
        rc = drps_manifest_get_real(j, m->key, path, &real, err);
    if (m->is_real)
        memcpy((char *)out + m->at, &real, sizeof(real));
    else
        memcpy((char *)out + m->at, &count, sizeof(count));
    return rc;
}

static int get_all(const json_t *j, const struct member *list, size_t n, const char *path,
                   struct drps_epoch *out, struct drps_err *err)
{
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = from_json(j, &list[i], path, out, err);
    return rc;
}

int drps_epoch_from_json(const json_t *j, const char *path, struct drps_epoch *out,
                         struct drps_err *err)
{
    memset(out, 0, sizeof(*out));
    out->test.recall = out->test.ndcg = (double)NAN;
    out->is_newton = json_object_get(j, newton_members[0].key) != NULL;
    int rc = get_all(j, members, MEMBERS, path, out, err);
    if (rc == 0 && out->is_newton) rc = get_all(j, newton_members, NEWTON_MEMBERS, path, out, err);
    if (rc == 0 && json_object_get(j, ranking_members[0].key))
        rc = get_all(j, ranking_members, RANKING_MEMBERS, path, out, err);
    return rc;
}
