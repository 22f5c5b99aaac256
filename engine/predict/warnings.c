/* Warnings name what was read, and the model. */
#include "engine/predict/warnings.h"

#include <stdio.h>
#include <string.h>

enum { FIELDS_TOLD = 5 };

/* The first names of the model's columns, without their kinds. */
static const char *list_fields(const struct drps_modeldir_info *info, char out[512])
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < info->fields_n && i < FIELDS_TOLD; i++) {
        const char *name = info->fields[i], *kind = strrchr(name, ':');
        const size_t bytes = kind ? (size_t)(kind - name) : strlen(name);
        used += (size_t)snprintf(out + used, 512 - used, "%s%.*s", i ? ", " : "",
                                 (int)(bytes < 80 ? bytes : 80), name);
    }
    if (info->fields_n > FIELDS_TOLD) (void)snprintf(out + used, 512 - used, ", ...");
    return out;
}

/* The first input, and a word on the others. */
static const char *input_of(const struct drps_predict_options *o)
{
    return strcmp(o->inputs[0], "-") == 0 ? "standard input" : o->inputs[0];
}

static const char *more_of(const struct drps_predict_options *o)
{
    return o->inputs_n > 1 ? " and the files after it" : "";
}

/* Warns where the input has no sample, or refuses it where something is to be made of its
 * scores. */
int drps_predict_check_samples(const struct drps_predict_options *o,
                               const struct drps_predict_result *r, struct drps_err *err)
{
    const char *have = o->inputs_n > 1 ? "have" : "has";
    if (r->samples) return 0;
    if (o->calibrate > 1 || o->curve_bins)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s%s %s no samples: calibration needs some with labels", input_of(o),
                            more_of(o), have);
    drps_log(o->log, DRPS_LOG_WARN, "%s%s %s no samples: no score is written", input_of(o),
             more_of(o), have);
    return 0;
}

/* All scores are then one constant: that is hardly what was wanted. */
static void warn_if_nothing_is_known(const struct drps_predict_options *o,
                                     const struct drps_modeldata *data,
                                     const struct drps_predict_result *r)
{
    const char *input = input_of(o), *more = more_of(o);
    char fields[512];
    if (!r->samples || r->nnz) return;
    if (data->fields && !data->fields_known)
        drps_log(
            o->log, DRPS_LOG_WARN,
            "none of the columns of %s%s is in %s: is it the right file, read in the right format?",
            input, more, o->model);
    else if (!r->unseen && strcmp(drps_reader_format(data->reader), "jsonl") == 0)
        drps_log(o->log, DRPS_LOG_WARN,
                 "none of the keys of %s%s is in %s (it has %s): is it the right file?", input,
                 more, o->model, list_fields(data->info, fields));
    else if (r->unseen)
        drps_log(o->log, DRPS_LOG_WARN,
                 "none of the %llu features of %s%s is in %s: is it the right file, read in the "
                 "right format?",
                 (unsigned long long)r->unseen, input, more, o->model);
}

/* Warns where more than half of the features are left out: most likely these are other data than
 * was meant. */
static void warn_if_little_is_known(const struct drps_predict_options *o,
                                    const struct drps_predict_result *r)
{
    if (r->unseen > r->nnz && r->nnz)
        drps_log(o->log, DRPS_LOG_WARN,
                 "%llu of %llu features are not in %s and are left out: are the data of the kind "
                 "that it was trained with, read in the right format?",
                 (unsigned long long)r->unseen, (unsigned long long)(r->nnz + r->unseen), o->model);
}

/* Warns where no sample has a label of the model, so that no metric could be computed. */
static void warn_if_no_label_is_known(const struct drps_predict_options *o,
                                      const struct drps_quality *q)
{
    if (q->samples && q->unknown == q->samples)
        drps_log(o->log, DRPS_LOG_WARN,
                 "none of the labels is a class of %s: there is no loss, and all count as wrong",
                 o->model);
}

void drps_predict_warn(const struct drps_predict_options *o, const struct drps_modeldata *data,
                       const struct drps_predict_result *r)
{
    warn_if_nothing_is_known(o, data, r);
    warn_if_little_is_known(o, r);
    warn_if_no_label_is_known(o, &r->quality);
}
