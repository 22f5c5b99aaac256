#include "support/power_cuts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/drps_rng.h"

char *power_path(const char *dir, const char *name, char *path)
{
    const int n = snprintf(path, SCRATCH_PATH_BYTES, "%s/%s", dir, name);
    assert_true(n > 0 && n < SCRATCH_PATH_BYTES);
    return path;
}

int power_train(const struct drps_io *io, const char *plan,
                const struct drps_train_options *options, uint64_t *content_out,
                struct drps_err *err)
{
    struct drps_plan *p;
    struct drps_train_result r;
    int rc = drps_plan_open(io, plan, &p, err);
    if (rc < 0) return rc;
    rc = drps_train_run(p, options, &r, err);
    if (content_out) *content_out = r.content;
    drps_train_result_free(&r);
    drps_plan_close(p);
    return rc;
}

void power_copy(const char *from, const char *to)
{
    struct power *p = power_new(drps_io_os(), from);
    const int rc = power_found(p, DISK_NOTHING, to); /* all that was there is durable */
    if (rc < 0) fail_msg("cannot copy %s to %s: %s", from, to, drps_err_name(rc));
    power_free(p);
}

static void remove_folder(const char *path)
{
    struct drps_err err = DRPS_ERR_INIT;
    if (drps_io_remove_tree(drps_io_os(), path, &err) < 0) fail_msg("%s", err.text);
}

static void look(struct power *p, const struct power_case *c, struct power_after a)
{
    const int rc = power_found(p, a.choice, a.disk);
    if (rc < 0) power_fail(&a, "cannot make %s: %s", a.disk, drps_err_name(rc));
    c->after(c->ctx, &a);
    remove_folder(a.disk);
}

static void look_at_all(struct power *p, const struct power_case *c, struct power_after a)
{
    uint64_t seen[POWER_SEEDS + 2];
    size_t seen_n = 0, k;
    assert_true(c->seeds <= POWER_SEEDS);
    for (unsigned i = 0; i < c->seeds + 2; i++) {
        a.choice = i < 2 ? i : drps_rng_at((uint64_t)a.cut, i);
        const uint64_t sum = power_found_sum(p, a.choice);
        for (k = 0; k < seen_n && seen[k] != sum;)
            k++;
        if (k < seen_n) continue;
        seen[seen_n++] = sum;
        look(p, c, a);
    }
}

/* One run of the job, cut at call k. Returns whether it came to that call. */
static int run_cut(struct scratch *s, const struct power_case *c, long k)
{
    char disk[SCRATCH_PATH_BYTES], found[SCRATCH_PATH_BYTES];
    assert_int_equal(mkdir(power_path(s->dir, "disk", disk), 0777), 0);
    if (c->before) c->before(c->ctx, disk);
    struct power *p = power_new(c->inner ? c->inner : drps_io_os(), disk);
    if (c->over_uring) power_see_requests(p);
    power_cut_at(p, c->calls, k);
    const int rc = c->job(c->ctx, &p->io, disk);
    const int fired = p->off;
    struct power_after a = {
        .disk = power_path(s->dir, "found", found), .done = rc == 0, .cut = fired ? k : 0};
    if (!fired && rc) power_fail(&a, "the job failed: %d, %s", rc, drps_err_name(rc));
    if (c->over_uring && !fired) assert_true(p->requests > 0);
    power_cut(p);
    look_at_all(p, c, a);
    power_free(p);
    remove_folder(disk);
    return fired;
}

long power_each_cut(struct scratch *s, const struct power_case *c)
{
    long k = 1;
    while (run_cut(s, c, k))
        k += DRPS_TEST_ONE_IN > 1 ? 7 : 1;
    return k - 1;
}
