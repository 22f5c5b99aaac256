/* A share of the input: where it begins and ends, reading goes on as in the whole. */
#include "index/reader/open/open.h"
#include "index/reader/pieces/drps_beginning.h"

static int check_share(const struct drps_reader *r, struct drps_err *err)
{
    const struct drps_reader_share *s = r->options.share;
    if (!s->begin.byte && !s->end.byte) return 0;
    if (r->format == &drps_format_docword || r->format->take || r->format->has_sequences)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s: a file of format %s cannot be read in shares: give as many files "
                            "as there are readers",
                            r->chunks.in.name, r->format->name);
    if (r->options.weights_n)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s: a file that has its weights in a file beside it cannot be read in "
                            "shares: give as many files as there are readers",
                            r->chunks.in.name);
    return 0;
}

int drps_reader_begin_share(struct drps_reader *r, struct drps_err *err)
{
    const struct drps_reader_share *s = r->options.share;
    struct drps_chunks *c = &r->chunks;
    if (!s) return 0;
    int rc = check_share(r, err);
    if (rc == 0 && !r->format->take && (s->begin.path || s->begin.byte))
        rc = drps_reader_see_beginning(r, err);
    if (rc == 0 && s->begin.byte && c->next_path != s->begin.path + 1) {
        drps_chunks_rewind(c);
        c->next_path = s->begin.path;
        rc = drps_chunks_next_file(c, err);
        if (rc > 0) rc = drps_reader_see_beginning(r, err);
    }
    drps_chunks_take_share(c, s);
    return rc;
}
