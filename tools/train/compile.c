/* A plan is known to be of the same data by a checksum that it keeps, of the options and of what
 * the file system says of the files: no file is read for that. */
#include "tools/train/compile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "api/report/drps_link.h"
#include "base/drps_checksum.h"
#include "base/folder/drps_stage.h"
#include "engine/publish/drps_modeldir.h"
#include "index/plan/drps_plan.h"
#include "index/reader/idx/drps_idx_names.h"
#include "tools/index/drps_making.h"

/* ---- What a plan follows from ---- */

struct source {
    uint64_t sum; /* never 0 */
    int known;    /* 0: of a pipe, say, nobody knows whether it is the same again */
};

static void mix(struct source *s, const void *data, size_t n)
{
    const uint64_t chain[2] = {s->sum, drps_checksum(data, n)};
    s->sum = drps_checksum(chain, sizeof(chain));
    if (!s->sum) s->sum = 1;
}

/* Writing to a file changes its times, and who sets one of them back changes the other. A new file
 * of the same name has another number. */
static void mix_files(struct source *s, const struct drps_value_list *files)
{
    mix(s, &files->n, sizeof(files->n));
    for (size_t i = 0; i < files->n; i++) {
        struct stat st;
        if (strcmp(files->texts[i], "-") == 0 || stat(files->texts[i], &st) ||
            !S_ISREG(st.st_mode)) {
            s->known = 0;
            continue;
        }
        const int64_t facts[] = {(int64_t)st.st_ino,         (int64_t)st.st_size,
                                 (int64_t)st.st_mtim.tv_sec, (int64_t)st.st_mtim.tv_nsec,
                                 (int64_t)st.st_ctim.tv_sec, (int64_t)st.st_ctim.tv_nsec};
        mix(s, facts, sizeof(facts));
    }
}

/* Labels that are found by the names of files. */
static void mix_labels(struct source *s, const struct drps_value_list *files)
{
    for (size_t i = 0; i < files->n; i++) {
        char *path;
        int found;
        if (drps_idx_labels_path(drps_io_os(), files->texts[i], &path, &found, NULL) < 0) {
            s->known = 0;
            continue;
        }
        const struct drps_value_list labels = {.texts = (const char *[]){path}, .n = 1};
        if (found) mix_files(s, &labels);
        free(path);
    }
}

static struct source source_of(const struct train_data *d)
{
    const struct drps_index_settings *i = &d->settings;
    const uint64_t numbers[] = {d->words, i->index.seed, i->index.memory_bytes};
    struct source s = {.known = 1};
    mix(&s, DRPS_VERSION, sizeof(DRPS_VERSION));
    mix(&s, numbers, sizeof(numbers));
    mix_files(&s, &i->inputs);
    mix_files(&s, &i->tests);
    mix_files(&s, &i->weights);
    mix_files(&s, &i->test_weights);
    mix_files(&s, &i->labels);
    mix_files(&s, &i->test_labels);
    mix_labels(&s, &i->inputs);
    mix_labels(&s, &i->tests);
    return s;
}

/* ---- The plan that is there ---- */

enum found { FOUND_NONE, FOUND_SAME, FOUND_OTHER };

/* Look for the plan of an earlier run. -EEXIST: what is there is none. */
static int find_plan(const char *path, const struct source *s, enum found *found,
                     struct drps_err *err)
{
    struct stat st;
    struct drps_plan *plan;
    struct drps_err why = DRPS_ERR_INIT;
    *found = FOUND_NONE;
    if (lstat(path, &st)) return 0; /* who makes it tells of any other trouble than its absence */
    const int rc = drps_plan_open(drps_io_os(), path, &plan, &why);
    const uint64_t made_of = rc == 0 ? plan->info.source : 0;
    drps_plan_close(plan);
    if (!made_of)
        return drps_err_set(err, -EEXIST,
                            "%s is where the plan of the data belongs, and drps-train has not made "
                            "it%s%s: choose another name for the model, or move %s away",
                            path, rc < 0 ? ": " : "", rc < 0 ? why.text : "", path);
    *found = s->known && made_of == s->sum ? FOUND_SAME : FOUND_OTHER;
    return 0;
}

static int refuse_other(const struct train_options *o, struct drps_err *err)
{
    const char *plan = o->data.plan, *model = o->settings.train.model_path;
    if (o->settings.train.resume)
        return drps_err_set(err, -EEXIST,
                            "%s is not known to be of the same data and options: give those of "
                            "the run that is resumed, or resume it without data: drps-train %s "
                            "--resume -o %s",
                            plan, plan, model);
    return drps_err_set(err, -EEXIST,
                        "%s is there, and is not known to be of the same data and options: train "
                        "it as it is (drps-train %s -o %s), choose another name for the model, or "
                        "have both replaced (--force)",
                        plan, plan, model);
}

/* ---- Making it ---- */

/* What is wrong with the model's place is told before data are read. A run that is resumed has
 * something there. */
static int check_model(const struct drps_train_options *t, struct drps_err *err)
{
    struct drps_stage stage;
    if (t->resume) return 0;
    const int rc =
        drps_stage_begin(&stage, drps_io_os(), t->model_path, &drps_modeldir_kind, t->replace, err);
    if (rc == 0) drps_stage_abort(&stage);
    return rc;
}

static int make(struct drps_cli *cli, struct drps_index_options *index, struct drps_err *err)
{
    struct drps_index_result result;
    struct drps_making making;
    drps_making_begin(&making, cli, index, 0);
    int rc = drps_index_run(&making.progress.io, index, &result, err);
    drps_making_stop(&making);
    if (rc == 0 && !cli->json)
        rc = drps_making_report(&making, index, &result, DRPS_LINK_USUAL_BITS, 0, err);
    drps_making_end(&making);
    return rc;
}

int train_compile(struct drps_cli *cli, struct train_options *o, struct drps_err *err)
{
    const struct drps_train_options *t = &o->settings.train;
    struct drps_index_options *index = &o->data.settings.index;
    const struct source source = source_of(&o->data);
    enum found found;
    int rc = find_plan(o->data.plan, &source, &found, err);
    if (rc < 0) return rc;
    if (found == FOUND_SAME) {
        drps_log(&cli->log, DRPS_LOG_INFO, "%s is of the same data and options: it is used again",
                 o->data.plan);
        return 0;
    }
    if (found == FOUND_OTHER && (t->resume || !t->replace)) return refuse_other(o, err);
    rc = check_model(t, err);
    if (rc < 0) return rc;
    index->source = source.sum;
    index->out = o->data.plan;
    index->force = found == FOUND_OTHER;
    return make(cli, index, err);
}
