/* Lines of text: with tabs, or as CSV below a head. */
#include <string.h>

#include "base/folder/drps_escape.h"
#include "engine/export/kinds.h"

static int text_row(void *ctx, const struct drps_readout_row *row, struct drps_err *err)
{
    struct exporter *e = ctx;
    int rc = drps_textfile_put_name(&e->out, DRPS_NAME_IN_TABS, row->name, row->name_bytes, err);
    if (rc == 0) rc = drps_textfile_put_floats(&e->out, row->params, e->info->model.dim, '\t', err);
    return rc == 0 ? drps_textfile_put(&e->out, "\n", 1, err) : rc;
}

/* ---- CSV ---- */

static int put_column(struct exporter *e, uint32_t k, struct drps_err *err)
{
    const struct drps_model *m = &e->info->model;
    const int net = m->layers.n > 0; /* whose rows are the same whatever the scores and fields */
    const char *class = e->info->classes && !net ? drps_classes_name(e->info->classes, k) : NULL;
    int rc = drps_textfile_put(&e->out, ",", 1, err);
    if (rc < 0) return rc;
    if (class) return drps_textfile_put_name(&e->out, DRPS_NAME_IN_CSV, class, strlen(class), err);
    if (m->outputs > 1 && !net) return drps_textfile_print(&e->out, err, "score%u", k + 1);
    if (k == 0) return drps_textfile_put(&e->out, "weight", 6, err);
    if (!m->fields || net) return drps_textfile_print(&e->out, err, "f%u", k);
    return drps_textfile_print(&e->out, err, "field%u_f%u", (k - 1) / m->factors,
                               (k - 1) % m->factors + 1);
}

static int csv_begin(struct exporter *e, struct drps_err *err)
{
    int rc = drps_textfile_put(&e->out, "feature", 7, err);
    for (uint32_t k = 0; k < e->info->model.dim && rc == 0; k++)
        rc = put_column(e, k, err);
    if (rc == 0 && e->r.has_units) rc = drps_textfile_put(&e->out, ",shift,unit", 11, err);
    return rc == 0 ? drps_textfile_put(&e->out, "\n", 1, err) : rc;
}

/* How a number of the data became the feature's value: (number - shift) / unit; nothing for a
 * logarithm. */
static int put_scale(struct exporter *e, const struct drps_reader_field *field,
                     struct drps_err *err)
{
    static const struct drps_reader_field none = {.unit = 1};
    if (!field) field = &none;
    if (field->is_log) return drps_textfile_put(&e->out, ",,", 2, err);
    return drps_textfile_print(&e->out, err, ",%.9g,%.9g", field->shift, field->unit);
}

static int csv_row(void *ctx, const struct drps_readout_row *row, struct drps_err *err)
{
    struct exporter *e = ctx;
    int rc = drps_textfile_put_name(&e->out, DRPS_NAME_IN_CSV, row->name, row->name_bytes, err);
    if (rc == 0) rc = drps_textfile_put_floats(&e->out, row->params, e->info->model.dim, ',', err);
    if (rc == 0 && e->r.has_units) rc = put_scale(e, row->field, err);
    return rc == 0 ? drps_textfile_put(&e->out, "\n", 1, err) : rc;
}

const struct export_kind export_text = {.name = "text", .end = ".txt", .row = text_row};
const struct export_kind export_csv = {
    .name = "csv", .end = ".csv", .begin = csv_begin, .row = csv_row};
