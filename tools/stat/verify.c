/* What a check found, as text or JSON, and how far it is. */
#include "tools/stat/verify.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/drps_clock.h"
#include "base/drps_size.h"
#include "base/folder/drps_manifest.h"
#include "engine/train/verify/drps_verify.h"
#include "index/verify/drps_verify.h"
#include "tools/drps_progress.h"

enum { SHOWN_BYTES = 1 << 20 }; /* progress is shown when so much more was read */

/* The check of a folder. A further kind of folder has one more function like stat_verify_plan(),
 * whose check fills the same findings. */
struct checking {
    struct drps_cli *cli;
    const char *what, *path, *remedy;
    int many; /* `what` is a plural */
    uint64_t began_ns;
    uint64_t shown; /* bytes */
    struct drps_findings found;
};

static void show_progress(void *ctx, uint64_t done, uint64_t total)
{
    struct checking *c = ctx;
    if (done - c->shown < SHOWN_BYTES) return;
    c->shown = done;
    const struct drps_progress p = {.what = "checking",
                                    .unit = DRPS_PROGRESS_BYTES,
                                    .done = done,
                                    .total = total,
                                    .seconds = drps_seconds_since(c->began_ns)};
    drps_progress_show(c->cli, &p);
}

static void begin(struct checking *c)
{
    c->began_ns = drps_clock_ns();
    c->found = (struct drps_findings){.progress = show_progress, .ctx = c};
}

/* ---- The outcome ---- */

static int print_json(const struct checking *c, double seconds, struct drps_err *err)
{
    const struct drps_findings *f = &c->found;
    json_t *problems = json_array(), *warnings = json_array();
    for (uint64_t i = 0; i < f->problems && i < DRPS_FINDINGS_KEPT; i++)
        drps_manifest_append(&problems, json_string(f->kept[i].text));
    if (f->strangers) drps_manifest_append(&warnings, json_string(f->stranger.text));
    json_t *j =
        json_pack("{s:s, s:s, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "what", c->what, "path",
                  c->path, "whole", f->problems == 0, "files", drps_json_count(f->files), "records",
                  drps_json_count(f->records), "bytes", drps_json_count(f->bytes), "seconds",
                  drps_json_real(seconds), "problems_found", drps_json_count(f->problems),
                  "problems", problems, "warnings", warnings);
    return drps_cli_json_print(j, err);
}

static void tell_problems(const struct checking *c)
{
    const struct drps_findings *f = &c->found;
    for (uint64_t i = 0; i < f->problems && i < DRPS_FINDINGS_KEPT; i++)
        drps_log(&c->cli->log, DRPS_LOG_ERROR, "%s", f->kept[i].text);
    if (f->strangers)
        drps_log(&c->cli->log, DRPS_LOG_WARN, "%s; nothing reads it: move it away",
                 f->stranger.text);
}

static const char *is(const struct checking *c)
{
    return c->many ? "are" : "is";
}

static void print_line(const struct checking *c, double seconds)
{
    const struct drps_findings *f = &c->found;
    char bytes[48];
    printf("%s %s %s whole: %s, %s, %s in %.1f s\n", c->what, c->path, is(c),
           drps_cli_counted(f->files, "file"), drps_cli_counted(f->records, "record"),
           drps_size_format(f->bytes, bytes, sizeof(bytes)), seconds);
}

static int finish(const struct checking *c, struct drps_err *err)
{
    const double seconds = drps_seconds_since(c->began_ns);
    const uint64_t n = c->found.problems;
    char count[DRPS_CLI_COUNT_BYTES];
    drps_cli_progress_end(c->cli);
    tell_problems(c);
    if (c->cli->json) {
        int rc = print_json(c, seconds, err);
        if (rc < 0) return rc;
    } else if (!n) {
        print_line(c, seconds);
    }
    if (!n) return 0;
    return drps_err_set(err, DRPS_E_CORRUPT, "%s %s %s not whole: %s problem%s: %s", c->what,
                        c->path, is(c), drps_cli_grouped(n, count), n == 1 ? "" : "s", c->remedy);
}

int stat_verify_plan(struct drps_cli *cli, const struct drps_plan *plan, struct drps_err *err)
{
    struct checking c = {
        .cli = cli,
        .what = "plan",
        .path = plan->dir,
        .remedy = "copy it again from where it is whole, or make it anew with drps-index"};
    begin(&c);
    int rc = drps_plan_verify(plan, &c.found, err);
    return rc == 0 ? finish(&c, err) : rc;
}

int stat_verify_model(struct drps_cli *cli, struct drps_modeldir *md, const char *path,
                      struct drps_err *err)
{
    struct checking c = {
        .cli = cli,
        .what = "model",
        .path = path,
        .remedy = "copy it again from where it is whole, or make it anew with drps-train"};
    begin(&c);
    int rc = drps_modeldir_verify(md, &c.found, err);
    return rc == 0 ? finish(&c, err) : rc;
}

int stat_verify_checkpoints(struct drps_cli *cli, const struct drps_io *io, const char *path,
                            struct drps_err *err)
{
    struct checking c = {.cli = cli,
                         .what = "checkpoints",
                         .many = 1,
                         .path = path,
                         .remedy = "drps-train --resume goes on from the newest that is whole"};
    begin(&c);
    int rc = drps_checkpoints_verify(io, path, &c.found, err);
    return rc == 0 ? finish(&c, err) : rc;
}
