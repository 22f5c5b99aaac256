/*
 * gzip: any number of members, one after the other, and zero bytes after the last (tapes pad so).
 */
#include "index/reader/input/codec.h"

#ifdef DRPS_WITH_ZLIB

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <zlib.h>

struct gzip {
    z_stream z;
    int begun;   /* inflateInit2() has run */
    int between; /* a member has ended */
    int padding; /* zero bytes have followed it: no member may come any more */
};

static void gzip_close(void *state)
{
    struct gzip *g = state;
    if (!g) return;
    if (g->begun) (void)inflateEnd(&g->z); /* fails only for a stream that was never begun */
    free(g);
}

static int gzip_open(uint64_t limit_bytes, void **state_out, struct drps_err *err)
{
    (void)limit_bytes; /* always about 40 KiB */
    *state_out = NULL;
    struct gzip *g = calloc(1, sizeof(*g));
    if (!g || inflateInit2(&g->z, 15 + 16) != Z_OK) { /* + 16: gzip headers only */
        gzip_close(g);
        return drps_err_set(err, -ENOMEM, "no memory for the gzip decoder");
    }
    g->begun = 1;
    *state_out = g;
    return 0;
}

static int skip_padding(struct gzip *g, struct drps_codec_io *b, struct drps_err *err)
{
    while (b->in_n > 0 && *b->in == 0) {
        g->padding = 1;
        b->in++;
        b->in_n--;
    }
    if (b->in_n == 0) return 0;
    if (g->padding || *b->in != 0x1f)
        return drps_err_set(err, DRPS_E_CORRUPT, "other bytes follow the gzip data");
    if (inflateReset(&g->z) != Z_OK) return drps_err_set(err, -ENOMEM, "gzip decoder reset");
    g->between = 0;
    return 0;
}

static unsigned clamp(size_t n)
{
    return n > UINT_MAX ? UINT_MAX : (unsigned)n;
}

static int gzip_decode(void *state, struct drps_codec_io *b, struct drps_err *err)
{
    struct gzip *g = state;
    if (g->between) {
        int rc = skip_padding(g, b, err);
        if (rc < 0 || g->between) return rc;
    }
    unsigned in_n = clamp(b->in_n), out_n = clamp(b->out_n);
    g->z.next_in = (z_const Bytef *)(uintptr_t)b->in; /* zlib does not write there */
    g->z.avail_in = in_n;
    g->z.next_out = b->out;
    g->z.avail_out = out_n;
    int rc = inflate(&g->z, Z_NO_FLUSH);
    b->in += in_n - g->z.avail_in;
    b->in_n -= in_n - g->z.avail_in;
    b->out += out_n - g->z.avail_out;
    b->out_n -= out_n - g->z.avail_out;
    if (rc == Z_MEM_ERROR) return drps_err_set(err, -ENOMEM, "no memory for the gzip decoder");
    if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR)
        return drps_err_set(err, DRPS_E_CORRUPT, "gzip data is damaged: %s",
                            g->z.msg ? g->z.msg : "wrong contents");
    g->between = rc == Z_STREAM_END;
    b->done = g->between;
    return 0;
}

const struct drps_codec drps_codec_gzip = {
    .name = "gzip", .open = gzip_open, .decode = gzip_decode, .close = gzip_close};

#else

const struct drps_codec drps_codec_gzip = {
    .name = "gzip", .missing = "this build cannot read gzip (built without zlib, DRPS_WITH_ZLIB)"};

#endif
