/* Zstandard: any number of frames, skippable ones included. */
#include "index/reader/input/codec.h"

#ifdef DRPS_WITH_ZSTD

#include <errno.h>
#include <zstd.h>
#include <zstd_errors.h>

static void codec_close(void *state)
{
    (void)ZSTD_freeDStream(state); /* cannot fail; NULL-safe */
}

/* The largest window, as a power of two, that stays within the limit. */
static int window_log(uint64_t limit_bytes)
{
    int log = 10;
    while (log < 31 && (UINT64_C(2) << log) <= limit_bytes)
        log++;
    return log;
}

static int codec_open(uint64_t limit_bytes, void **state_out, struct drps_err *err)
{
    *state_out = NULL;
    ZSTD_DStream *d = ZSTD_createDStream();
    if (!d ||
        ZSTD_isError(ZSTD_DCtx_setParameter(d, ZSTD_d_windowLogMax, window_log(limit_bytes)))) {
        codec_close(d);
        return drps_err_set(err, -ENOMEM, "no memory for the zstd decoder");
    }
    *state_out = d;
    return 0;
}

static int fail(size_t code, struct drps_err *err)
{
    switch (ZSTD_getErrorCode(code)) {
    case ZSTD_error_memory_allocation:
        return drps_err_set(err, -ENOMEM, "no memory for the zstd decoder");
    case ZSTD_error_frameParameter_windowTooLarge:
        return drps_err_set(
            err, DRPS_E_MEMORY_BUDGET,
            "zstd window is larger than the reader's memory allows (compressed with "
            "a long window?): raise the memory limit or pipe it through zstd -dc");
    default:
        return drps_err_set(err, DRPS_E_CORRUPT, "zstd data is damaged: %s",
                            ZSTD_getErrorName(code));
    }
}

static int codec_decode(void *state, struct drps_codec_io *b, struct drps_err *err)
{
    ZSTD_inBuffer in = {b->in, b->in_n, 0};
    ZSTD_outBuffer out = {b->out, b->out_n, 0};
    size_t rc = ZSTD_decompressStream(state, &out, &in);
    b->in += in.pos;
    b->in_n -= in.pos;
    b->out += out.pos;
    b->out_n -= out.pos;
    if (ZSTD_isError(rc)) return fail(rc, err);
    b->done = rc == 0;
    return 0;
}

const struct drps_codec drps_codec_zstd = {
    .name = "zstd", .open = codec_open, .decode = codec_decode, .close = codec_close};

#else

const struct drps_codec drps_codec_zstd = {
    .name = "zstd",
    .missing = "this build cannot read zstd (built without libzstd, DRPS_WITH_ZSTD)"};

#endif
