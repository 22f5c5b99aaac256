/* xz: any number of streams, with the padding that the format allows between them. */
#include "index/reader/input/codec.h"

#ifdef DRPS_WITH_LZMA

#include <errno.h>
#include <lzma.h>
#include <stdlib.h>

static void xz_close(void *state)
{
    if (!state) return;
    lzma_end(state);
    free(state);
}

static int xz_open(uint64_t limit_bytes, void **state_out, struct drps_err *err)
{
    *state_out = NULL;
    lzma_stream *s = malloc(sizeof(*s));
    if (!s) return drps_err_set(err, -ENOMEM, "no memory for the xz decoder");
    *s = (lzma_stream)LZMA_STREAM_INIT;
    if (lzma_stream_decoder(s, limit_bytes, LZMA_CONCATENATED) != LZMA_OK) {
        xz_close(s);
        return drps_err_set(err, -ENOMEM, "no memory for the xz decoder");
    }
    *state_out = s;
    return 0;
}

static int fail(const lzma_stream *s, lzma_ret rc, struct drps_err *err)
{
    switch (rc) {
    case LZMA_MEM_ERROR:
        return drps_err_set(err, -ENOMEM, "no memory for the xz decoder");
    case LZMA_MEMLIMIT_ERROR:
        return drps_err_set(
            err, DRPS_E_MEMORY_BUDGET,
            "xz data needs %llu MiB to decode, the reader's memory allows %llu MiB: give "
            "more memory or pipe it through xz -dc",
            (unsigned long long)(lzma_memusage(s) >> 20) + 1,
            (unsigned long long)lzma_memlimit_get(s) >> 20);
    case LZMA_OPTIONS_ERROR:
        return drps_err_set(err, DRPS_E_CORRUPT, "xz data is damaged or uses an unknown filter");
    case LZMA_FORMAT_ERROR:
        return drps_err_set(err, DRPS_E_CORRUPT, "other bytes follow the xz data");
    default:
        return drps_err_set(err, DRPS_E_CORRUPT, "xz data is damaged (code %d)", (int)rc);
    }
}

static int xz_decode(void *state, struct drps_codec_io *b, struct drps_err *err)
{
    lzma_stream *s = state;
    s->next_in = b->in;
    s->avail_in = b->in_n;
    s->next_out = b->out;
    s->avail_out = b->out_n;
    /* Only at the end can the decoder know that no further stream follows. */
    lzma_ret rc = lzma_code(s, b->in_end ? LZMA_FINISH : LZMA_RUN);
    b->in += b->in_n - s->avail_in;
    b->in_n = s->avail_in;
    b->out += b->out_n - s->avail_out;
    b->out_n = s->avail_out;
    b->done = rc == LZMA_STREAM_END;
    if (rc == LZMA_OK || rc == LZMA_STREAM_END || rc == LZMA_BUF_ERROR) return 0;
    return fail(s, rc, err);
}

const struct drps_codec drps_codec_xz = {
    .name = "xz", .open = xz_open, .decode = xz_decode, .close = xz_close};

#else

const struct drps_codec drps_codec_xz = {
    .name = "xz", .missing = "this build cannot read xz (built without liblzma, DRPS_WITH_LZMA)"};

#endif
