/* Lines up to the first that has a sample are parsed as all lines are, and nothing is kept of them
 * but what the format learns. */
#include "index/reader/pieces/drps_beginning.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "index/reader/pieces/pieces.h"

/* Lines up to the first that has a sample; nothing is kept of them. */
static int pass_lines(struct drps_reader *r, struct drps_samples *out, size_t n,
                      struct drps_err *err)
{
    struct drps_parse ps = {.out = out, .seed = r->options.hash_seed, .weight = 1};
    char *stop = out->text + n;
    uint64_t number = 0;
    out->starts[0] = 0;
    ps.made = out->made;
    for (char *p = out->text, *feed; p < stop && !ps.ended; p = feed + 1) {
        feed = memchr(p, '\n', (size_t)(stop - p));
        char *end = feed > p && feed[-1] == '\r' ? feed - 1 : feed;
        number++;
        if (r->format->line(r, &ps, p, end) != 0 && ps.bad_fatal)
            return drps_pieces_handle_bad(r, &ps, p, end, number, err);
        ps.nnz = out->starts[out->n];
    }
    return 0;
}

int drps_reader_see_beginning(struct drps_reader *r, struct drps_err *err)
{
    const struct drps_chunks *c = &r->chunks;
    const char *feed = memrchr(c->carry, '\n', c->carry_n);
    const size_t lines_end = feed ? (size_t)(feed - c->carry) + 1 : 0;
    const size_t bytes = lines_end ? lines_end : c->in.ended ? c->carry_n : 0;
    struct drps_samples out = {0};
    size_t taken = 0;
    if (c->carry_n && !bytes)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s: the first line is longer than %zu bytes: it cannot be read in "
                            "shares",
                            c->in.name, c->carry_n);
    out.text = malloc(bytes + 1 + DRPS_CHUNK_PAD);
    if (!out.text) return drps_err_set(err, -ENOMEM, "no memory for the first lines");
    if (bytes) memcpy(out.text, c->carry, bytes);
    memset(out.text + bytes, 0, 1 + DRPS_CHUNK_PAD);
    if (bytes && !lines_end) out.text[bytes] = '\n';
    if (r->format->begin_file) r->format->begin_file(r);
    int rc = drps_pieces_choose_lines(r, &out, bytes + (bytes && !lines_end), &taken, err);
    if (rc == 0) rc = pass_lines(r, &out, taken, err);
    drps_samples_free(&out);
    return rc;
}
