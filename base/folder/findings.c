/* Problems are kept up to a number, and counted beyond it. */
#include "base/folder/drps_findings.h"

#include <errno.h>
#include <stdio.h>

/* Returns whether a failure says nothing of what was read. */
static int ends_all(int rc)
{
    return rc == DRPS_E_INTERRUPTED || rc == -ENOMEM || rc == DRPS_E_MEMORY_BUDGET;
}

int drps_findings_take(struct drps_findings *f, int rc, struct drps_err *err)
{
    if (rc >= 0 || ends_all(rc)) return rc;
    if (f->problems < DRPS_FINDINGS_KEPT) f->kept[f->problems] = *err;
    f->problems++;
    drps_err_clear(err);
    return 0;
}

void drps_findings_add(struct drps_findings *f, const char *fmt, ...)
{
    va_list args;
    if (f->problems < DRPS_FINDINGS_KEPT) {
        struct drps_err *err = &f->kept[f->problems];
        err->code = DRPS_E_CORRUPT;
        va_start(args, fmt);
        (void)vsnprintf(err->text, sizeof(err->text), fmt, args);
        va_end(args);
    }
    f->problems++;
}

void drps_findings_stranger(struct drps_findings *f, const struct drps_err *err)
{
    if (!f->strangers++) f->stranger = *err;
}

void drps_findings_reach(struct drps_findings *f, uint64_t done)
{
    f->done = done;
    if (f->progress) f->progress(f->ctx, f->done, f->total);
}

int drps_findings_result(const struct drps_findings *f, struct drps_err *err)
{
    return f->problems ? drps_err_set(err, f->kept[0].code, "%s", f->kept[0].text) : 0;
}
