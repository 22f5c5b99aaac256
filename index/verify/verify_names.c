/* The dictionary of a plan or a model against its tables. */
#include "index/verify/verify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "index/plan/drps_names.h"
#include "index/reader/drps_reader.h"

enum { WORD_BITS = 64 };

struct verifier {
    const struct drps_names_expected *expected;
    struct drps_findings *found;
    uint64_t *named;                 /* a bit a row */
    uint64_t n, last;                /* names so far; the key of the last one */
    const struct drps_table *tables; /* without the intercept's */
    size_t tables_n;
};

/* The table that a name's row must be in. Where there are two, the field says which. */
static const struct drps_table *table_of(const struct verifier *v, unsigned field)
{
    return v->tables_n > 1 && field ? &v->tables[1] : &v->tables[0];
}

static int in_tables(const struct verifier *v, uint32_t row, unsigned field, int string)
{
    if (!v->tables_n) return 0;
    const struct drps_table *first = table_of(v, field);
    const struct drps_table *last = string ? first : &v->tables[v->tables_n - 1];
    return row >= first->first && row < last->first + last->rows;
}

/* Where a row's name is wrong: NULL, or what to say. */
static const char *fault_of(const struct verifier *v, uint64_t key, uint32_t row, unsigned field,
                            const char *text, size_t bytes)
{
    const struct drps_names_expected *e = v->expected;
    uint64_t hash;
    uint32_t more;
    if (v->n && key <= v->last) return "is not behind the key before it";
    if (!text != !e->string_names) return "is of another kind than those of the tables";
    if (text && field >= e->fields_n && (field || e->fields_n))
        return "has a field that there is not";
    if (!in_tables(v, row, field, text != NULL)) return "has a row outside of its table";
    if (v->named[row / WORD_BITS] >> row % WORD_BITS & 1) return "has the row of another name";
    if (!text) return NULL;
    drps_name_hash(field, text, bytes, e->hash_seed, &hash, &more);
    return hash == key ? NULL : "is not the hash of its string";
}

static int check_name(void *ctx, uint64_t key, uint32_t row, unsigned field, const char *text,
                      size_t bytes, struct drps_err *err)
{
    struct verifier *v = ctx;
    const char *fault = fault_of(v, key, row, field, text, bytes);
    (void)err;
    if (fault)
        drps_findings_add(v->found,
                          "%s/" DRPS_FILE_NAMES ": name %" PRIu64 " (key %016" PRIx64
                          ", row %" PRIu32 ") %s",
                          v->expected->path, v->n, key, row, fault);
    if (row < v->expected->rows) v->named[row / WORD_BITS] |= UINT64_C(1) << row % WORD_BITS;
    v->last = key;
    v->n++;
    return 0;
}

int drps_names_verify(struct drps_names *names, const struct drps_names_expected *expected,
                      struct drps_findings *found, struct drps_err *err)
{
    struct verifier v = {.expected = expected,
                         .found = found,
                         .tables = expected->tables,
                         .tables_n = expected->tables_n};
    const uint64_t fixed = drps_tables_common_rows(v.tables, v.tables_n);
    if (fixed) {
        v.tables++;
        v.tables_n--;
    }
    v.named = calloc((size_t)(expected->rows / WORD_BITS + 1), sizeof(*v.named));
    if (!v.named)
        return drps_err_set(err, -ENOMEM, "no memory for the names of %" PRIu64 " rows",
                            expected->rows);
    int rc = drps_findings_take(found, drps_names_scan(names, check_name, &v, err), err);
    if (rc == 0 && v.n != expected->rows - fixed)
        drps_findings_add(found,
                          "%s/" DRPS_FILE_NAMES " has %" PRIu64 " names; the tables have %" PRIu64
                          " rows that need one",
                          expected->path, v.n, expected->rows - fixed);
    free(v.named);
    return rc;
}

int drps_verify_names(struct verify *v, struct drps_err *err)
{
    const struct drps_plan_info *i = v->info;
    const struct drps_names_expected expected = {.path = v->plan->dir,
                                                 .rows = i->rows,
                                                 .tables = i->tables,
                                                 .tables_n = i->tables_n,
                                                 .fields_n = i->fields_n,
                                                 .string_names = i->string_names,
                                                 .hash_seed = i->hash_seed};
    struct drps_names *names;
    int rc = drps_names_open(v->io, v->plan->dir, &names, err);
    if (rc < 0) return drps_findings_take(v->found, rc, err);
    rc = drps_names_verify(names, &expected, v->found, err);
    drps_names_close(names);
    return rc;
}
