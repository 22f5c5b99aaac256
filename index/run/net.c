/* The net of a plan: read before the samples, and given its widths when fields and classes are
 * known. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_io.h"
#include "base/folder/drps_escape.h"
#include "index/run/run.h"

static int parse(struct index_run *r, const char *text, const char *of, struct drps_err *err)
{
    const int rc = drps_layers_parse(&r->layers, text, err);
    return rc < 0 ? drps_err_context(err, "%s", of) : 0;
}

static int is_utf8(const char *text, size_t n)
{
    const unsigned char *s = (const unsigned char *)text;
    for (size_t at = 0, bytes; at < n; at += bytes) {
        bytes = drps_utf8_bytes(s + at, n - at);
        if (!bytes) return 0;
    }
    return 1;
}

static int read_net(struct index_run *r, const char *path, struct drps_err *err)
{
    char *text = NULL;
    size_t n;
    int rc = drps_io_read_text(r->io, path, DRPS_LAYERS_TEXT - 1, &text, &n, err);
    if (rc == -ENOENT) {
        char names[DRPS_LAYERS_NAMES_BYTES];
        drps_err_clear(err);
        rc = drps_err_set(err, -ENOENT,
                          "there is no file %s, and no net of this name; name a file, or one of %s",
                          path, drps_layers_names(names));
    }
    if (rc == 0 && !is_utf8(text, n))
        rc = drps_err_set(err, DRPS_E_CONFIG, "%s is no UTF-8 text: save it as such", path);
    if (rc == 0) rc = parse(r, text, path, err);
    free(text);
    return rc;
}

/* A net that has a name ends in classes, or in a number where that is the task. */
static int take_named(struct index_run *r, struct drps_err *err)
{
    const struct drps_index_options *o = &r->options;
    const int rc = drps_layers_named(&r->layers, o->net, o->factors, err);
    const int for_numbers = rc == 0 && o->task && strcmp(o->task, "regression") == 0 &&
                            r->layers.has_classes && !r->layers.has_sequences;
    return for_numbers ? drps_layers_for_numbers(&r->layers, err) : rc;
}

int drps_run_take_net(struct index_run *r, struct drps_err *err)
{
    struct drps_index_options *o = &r->options;
    const struct drps_algorithm *a = drps_algorithm_find(o->algo);
    const int due = a && drps_algorithm_is_net(a);
    if (!due && !o->net) return 0;
    if (!due)
        return drps_err_set(err, DRPS_E_CONFIG, "the algorithm %s is no net: leave out the net %s",
                            a ? a->name : "", o->net);
    if (o->base_plan || o->from_plan) return parse(r, o->net, "the plan's net", err);
    if (!o->net) return drps_err_set(err, DRPS_E_CONFIG, "the algorithm %s needs a net", a->name);
    if (drps_layers_has_name(o->net)) return take_named(r, err);
    if (o->factors)
        return drps_err_set(
            err, DRPS_E_CONFIG,
            "the net %s says how many factors a feature has: leave their number out", o->net);
    return read_net(r, o->net, err);
}

/* Text leaves out numbers that are 0, and so perhaps the last fields of all samples: of a net that
 * reads numbers alone, these are as many as it reads. */
static void count_numbers(struct index_run *r)
{
    const uint64_t reads = drps_layers_numbers(&r->layers, (uint32_t)r->info->field_count);
    if (r->layers.has_features || r->info->numbers || r->options.matrix ||
        strcmp(r->parsed.format, "libffm") != 0)
        return;
    if (reads > r->info->field_count && reads <= DRPS_FIELD_MAX + 1)
        r->info->field_count = (uint32_t)reads;
}

int drps_run_settle_net(struct index_run *r, struct drps_err *err)
{
    struct drps_plan_info *info = r->info;
    if (!r->layers.n) return 0;
    if (r->layers.has_fields) info->field_count = r->parsed.field_count ? r->parsed.field_count : 1;
    info->numbers = r->parsed.numbers;
    if (r->layers.has_sequences) info->field_count = DRPS_SEQUENCE_MARKS;
    count_numbers(r);
    int rc = r->base && r->layers.has_fields ? drps_run_take_fields(r, err) : 0;
    if (rc < 0) return rc;
    (void)snprintf(info->net, sizeof(info->net), "%s", r->layers.text);
    rc = drps_plan_layers(info, &r->layers, err);
    if (rc < 0) return drps_err_context(err, "%s", r->base ? "the plan's net" : r->options.net);
    info->dim = 1 + info->factors;
    info->row_bytes = info->dim * sizeof(float) * 2;
    return 0;
}
