/*
 * What the check of a folder found: every problem, the first of them with their text, and how much
 * was read. A check that meets a problem keeps it here and goes on with what does not depend on it.
 */
#ifndef DRPS_BASE_FOLDER_FINDINGS_H
#define DRPS_BASE_FOLDER_FINDINGS_H

#include <stdint.h>

#include "base/drps_err.h"

enum { DRPS_FINDINGS_KEPT = 10 };

/* Caller's storage; zero it, but for `progress` and `ctx`. */
struct drps_findings {
    /* Called now and then from the checking thread; NULL: nobody is told. Both are bytes, those of
     * a file that is read twice count twice. */
    void (*progress)(void *ctx, uint64_t done, uint64_t total);
    void *ctx;
    uint64_t done, total;

    uint64_t files, records, bytes;           /* that were read; each counts once */
    uint64_t problems;                        /* all of them */
    struct drps_err kept[DRPS_FINDINGS_KEPT]; /* the first ones */
    uint64_t strangers;       /* folders that hold something that is not one of their files */
    struct drps_err stranger; /* what the first of these holds */
};

/*
 * A check ended with `rc` and `err`. A problem of what was read is kept, `err` is cleared, and 0
 * returned; what ends all checks (interruption, no memory) is returned as it is, as is success.
 */
DRPS_MUST_CHECK
int drps_findings_take(struct drps_findings *f, int rc, struct drps_err *err);

/* Keep a problem: stored bytes that are damaged. */
void drps_findings_add(struct drps_findings *f, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Keep what drps_owned_check() said of a folder that holds something else, too. */
void drps_findings_stranger(struct drps_findings *f, const struct drps_err *err);

/* Tell that so many bytes of the total are read. */
void drps_findings_reach(struct drps_findings *f, uint64_t done);

/* 0 when there is no problem; else the first one becomes `err`. */
DRPS_MUST_CHECK
int drps_findings_result(const struct drps_findings *f, struct drps_err *err);

#endif
