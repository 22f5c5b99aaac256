/* Crosses as users write them: names of columns joined by stars. */
#include <errno.h>
#include <stdlib.h>

#include "index/reader/columns.h"

/* Find columns whose names are joined by stars. A name may hold stars itself: the shortest that
 * there is goes first. Returns 0 if there are none such. */
static int find_parts(const struct drps_columns *c, const char *p, size_t n, struct drps_cross *out)
{
    if (out->n == DRPS_CROSS_PARTS) return 0;
    for (const char *star = p;; star++) {
        star = memchr(star, '*', (size_t)(p + n - star));
        const size_t bytes = star ? (size_t)(star - p) : n;
        const struct drps_column *column = drps_columns_find(c, p, bytes, 0);
        if (column) {
            out->parts[out->n++] = (size_t)(column - c->columns);
            if (!star || find_parts(c, star + 1, n - bytes - 1, out)) return 1;
            out->n--;
        }
        if (!star) return 0;
    }
}

static int bad_cross(const char *p, size_t n, const char *why, struct drps_err *err)
{
    return drps_err_set(err, DRPS_E_CONFIG, "cross '%.*s' %s", (int)(n < 100 ? n : 100), p, why);
}

int drps_cross_add(struct drps_columns *c, const char *p, size_t n, struct drps_err *err)
{
    struct drps_cross cross = {.n = 0};
    char list[DRPS_LIST_BYTES];
    if (!memchr(p, '*', n))
        return bad_cross(p, n, "is not two columns or more, joined by stars", err);
    if (!find_parts(c, p, n, &cross))
        return drps_err_set(err, DRPS_E_CONFIG,
                            "cross '%.*s' is not of 2 to %d columns, joined by stars; there are: "
                            "%s",
                            (int)(n < 100 ? n : 100), p, DRPS_CROSS_PARTS,
                            drps_columns_list(c, list, sizeof(list)));
    if (cross.n < 2) return bad_cross(p, n, "is one column", err);
    for (size_t i = 0; i < cross.n; i++)
        for (size_t k = 0; k < i; k++)
            if (cross.parts[i] == cross.parts[k]) return bad_cross(p, n, "has a column twice", err);
    struct drps_cross *more = realloc(c->crosses, (c->n_crosses + 1) * sizeof(*more));
    if (more) c->crosses = more;
    cross.name = strndup(p, n);
    if (!more || !cross.name) {
        free(cross.name);
        return drps_err_set(err, -ENOMEM, "crosses of columns");
    }
    c->crosses[c->n_crosses++] = cross;
    return 0;
}

int drps_crosses_apply(struct drps_columns *c, const char *crosses, struct drps_err *err)
{
    for (const char *p = crosses ? crosses : ""; *p; p += *p == ',') {
        const size_t n = strcspn(p, ",");
        const int rc = n ? drps_cross_add(c, p, n, err) : 0;
        if (rc < 0) return rc;
        p += n;
    }
    for (size_t i = 0; i < c->n_crosses; i++)
        for (size_t k = 0; k < c->crosses[i].n; k++)
            if (c->columns[c->crosses[i].parts[k]].kind == DRPS_COLUMN_LABEL)
                return bad_cross(c->crosses[i].name, strlen(c->crosses[i].name),
                                 "has the label in it", err);
    return 0;
}
