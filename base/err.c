#include "base/drps_err.h"

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

int drps_err_set(struct drps_err *err, int code, const char *fmt, ...)
{
    if (!err) return code;
    size_t used = 0;
    if (err->code) {
        used = strlen(err->text);
        int n = snprintf(err->text + used, sizeof(err->text) - used, "; then: ");
        used += n > 0 ? (size_t)n : 0;
        if (used >= sizeof(err->text)) return code;
    } else {
        err->code = code;
    }
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(err->text + used, sizeof(err->text) - used, fmt,
                    ap); /* a cut text is still an error */
    va_end(ap);
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

void drps_err_clear(struct drps_err *err)
{
    if (!err) return;
    err->code = 0;
    err->text[0] = '\0';
}
