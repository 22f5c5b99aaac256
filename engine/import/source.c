/* What all formats of an import need. */
#include "engine/import/source.h"

#include <stdio.h>

int import_bad(const struct import *m, uint64_t line, const char *what, struct drps_err *err)
{
    return drps_err_set(err, DRPS_E_FORMAT, "%s:%llu: %s", m->o->input, (unsigned long long)line,
                        what);
}

const char *import_number(const char *p, const char *end, float *v_out)
{
    const char *q = p < end ? drps_number_float(p, v_out) : NULL;
    if (!q || q > end || (q < end && *q != ' ' && *q != '\t')) return NULL;
    while (q < end && (*q == ' ' || *q == '\t'))
        q++;
    return q;
}

int import_describe(struct import *m, const struct drps_model_terms *terms, uint64_t rows,
                    int has_bias, struct drps_err *err)
{
    struct drps_modeldir_info *info = &m->info;
    int rc = drps_model_settle(&info->model, terms, err);
    if (rc < 0) return rc;
    if (!rows || rows > UINT32_MAX - 2)
        return drps_err_set(err, DRPS_E_CONFIG, "%s has %llu features; a model has 1 to %u",
                            m->o->input, (unsigned long long)rows, UINT32_MAX - 2);
    const struct drps_algorithm *a = drps_algorithm(info->model.algo);
    info->model.has_bias = has_bias;
    info->classification = terms->classes > 0;
    info->classes = m->classes;
    info->rows = rows + (uint64_t)(has_bias != 0);
    info->tables_n = 0;
    if (has_bias) info->tables[info->tables_n++] = (struct drps_table){DRPS_PLAN_BIAS, 0, 1};
    struct drps_table *t = &info->tables[info->tables_n++];
    *t = (struct drps_table){.first = (uint64_t)(has_bias != 0), .rows = rows};
    (void)snprintf(t->name, sizeof(t->name), "%s", a->tables[0]);
    (void)snprintf(info->plan_id, sizeof(info->plan_id), DRPS_MODEL_IMPORTED);
    return 0;
}

int import_number_names(struct import *m, uint64_t first, uint32_t row, uint64_t n,
                        struct drps_err *err)
{
    int rc = 0;
    for (uint64_t i = 0; i < n && rc == 0; i++)
        rc = drps_names_writer_add(m->names, first + i, row + (uint32_t)i, 0, NULL, 0, err);
    return rc;
}
