/* Texts of failures: the first one wins, later ones and contexts are joined to it. */
#include "base/drps_err.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

const char *drps_err_name(int code)
{
    switch (code) {
#define DRPS_ERR_CASE(name, value, text)                                                           \
    case value:                                                                                    \
        return text;
        DRPS_ERR_CODES(DRPS_ERR_CASE)
#undef DRPS_ERR_CASE
    case 0:
        return "no error";
    default:
        break;
    }
    const char *text = code < 0 && code > -4096 ? strerrordesc_np(-code) : NULL;
    return text ? text : "unknown error";
}

#define THEN "; then: "

/* The text of one of the failures, less the context that it was given. */
static int says(const char *text, const char *failure)
{
    const size_t n = strlen(failure);
    if (!n) return 1;
    for (const char *at = strstr(text, failure); at; at = strstr(at + 1, failure)) {
        const int begins = at == text || (at - text >= 2 && memcmp(at - 2, ": ", 2) == 0);
        if (begins && (!at[n] || strncmp(at + n, THEN, strlen(THEN)) == 0)) return 1;
    }
    return 0;
}

static void add_failure(struct drps_err *err, const char *failure)
{
    const size_t used = strlen(err->text);
    if (says(err->text, failure)) return;
    (void)snprintf(err->text + used, sizeof(err->text) - used, THEN "%s",
                   failure); /* a cut text is still an error */
}

int drps_err_set(struct drps_err *err, int code, const char *fmt, ...)
{
    char failure[sizeof(err->text)];
    if (!err) return code;
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(failure, sizeof(failure), fmt, ap); /* cut where err's own would be */
    va_end(ap);
    if (err->code) {
        add_failure(err, failure);
    } else {
        err->code = code;
        memcpy(err->text, failure, strlen(failure) + 1);
    }
    return code;
}

int drps_err_context(struct drps_err *err, const char *fmt, ...)
{
    if (!err || !err->code) return err ? err->code : 0;
    struct drps_err inner = *err;
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(err->text, sizeof(err->text), fmt, ap);
    va_end(ap);
    size_t used = n > 0 ? (size_t)n : 0;
    if (used + 3 > sizeof(err->text))
        return err->code; /* no room left: the context alone must do */
    size_t room = sizeof(err->text) - used - 3;
    size_t keep = strlen(inner.text) < room ? strlen(inner.text) : room;
    memcpy(err->text + used, ": ", 2);
    memcpy(err->text + used + 2, inner.text, keep);
    err->text[used + 2 + keep] = '\0';
    return err->code;
}

int drps_err_may_pass(int code)
{
    static const int codes[] = {
        DRPS_E_PEER,  DRPS_E_INTERRUPTED, /* by somebody who may start it again */
        DRPS_E_PROTO,                     /* frames of a connection that broke are missing */
        -ETIMEDOUT,                       /* a rank did not start, or owes something */
        -EADDRINUSE,  -EBUSY,             /* by a process that is about to end */
        -ENOSPC,      -EDQUOT,
    };
    for (size_t i = 0; i < sizeof(codes) / sizeof(*codes); i++)
        if (code == codes[i]) return 1;
    return 0;
}

void drps_err_clear(struct drps_err *err)
{
    if (!err) return;
    err->code = 0;
    err->text[0] = '\0';
}
