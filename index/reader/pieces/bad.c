/* Bad lines: the first few are told, and all are counted; or the first is an error. */
#include "index/reader/pieces/pieces.h"

#include <stdio.h>

enum { SKIPS_TOLD = 10 };

/* Up to a blank, or to the zero that a format has put behind a text. */
static const char *excerpt_end(const char *p, const char *end)
{
    const char *start = p;
    while (p < end && !drps_is_blank(*p) && (*p || p == start))
        p++;
    return p;
}

int drps_pieces_handle_bad(struct drps_reader *r, const struct drps_parse *ps, const char *line,
                           const char *end, uint64_t number, struct drps_err *err)
{
    char text[64], where[64] = "";
    const char *at = ps->bad_at;
    struct drps_err bad = DRPS_ERR_INIT;

    if (r->options.skip_bad_lines && !ps->bad_fatal && r->skipped++ >= SKIPS_TOLD) return 0;
    if (at) {
        (void)drps_excerpt(at, excerpt_end(at, end), text, sizeof(text));
        (void)snprintf(where, sizeof(where),
                       "%llu:", (unsigned long long)(at - line) + 1); /* fits */
    }
    (void)drps_err_set(&bad, DRPS_E_FORMAT, "%s:%llu:%s %s%s%s%s", r->chunks.in.name,
                       (unsigned long long)number, where, ps->bad_why, at ? ": '" : "",
                       at ? text : "", at ? "'" : "");
    if (!r->options.skip_bad_lines || ps->bad_fatal)
        return drps_err_set(err, bad.code, "%s", bad.text);
    drps_log(r->options.log, DRPS_LOG_WARN, "%s; line skipped%s", bad.text,
             r->skipped == SKIPS_TOLD ? "; further bad lines are only counted" : "");
    return 0;
}
