/* What is noted with a round: three numbers of 8 bytes, then the results of an epoch as JSON, if
 * there are any. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_endian.h"
#include "engine/checkpoint/drps_epoch_json.h"
#include "engine/train/vectors/drps_round_log.h"

enum { NUMBERS_BYTES = 24 };

static char *done_text(const struct drps_epoch *done)
{
    json_t *j = drps_epoch_to_json(done);
    char *text = j ? json_dumps(j, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
    json_decref(j);
    return text;
}

void *drps_round_note_write(const struct drps_round_note *note, uint32_t *bytes_out)
{
    uint64_t loss;
    char *text = note->done ? done_text(note->done) : NULL;
    const size_t n = text ? strlen(text) : 0;
    unsigned char *at = note->done && !text ? NULL : malloc(NUMBERS_BYTES + n);
    if (at) {
        memcpy(&loss, &note->loss, sizeof(loss));
        drps_put_u64(at, note->samples);
        drps_put_u64(at + 8, loss);
        drps_put_u64(at + 16, note->ns);
        if (n) memcpy(at + NUMBERS_BYTES, text, n);
        *bytes_out = (uint32_t)(NUMBERS_BYTES + n);
    }
    free(text);
    return at;
}

static int read_done(const char *text, size_t n, struct drps_epoch *done, struct drps_err *err)
{
    json_error_t why;
    json_t *j = json_loadb(text, n, 0, &why);
    if (!j) return drps_err_set(err, DRPS_E_CORRUPT, "the results of an epoch: %s", why.text);
    int rc = drps_epoch_from_json(j, "a round", done, err);
    json_decref(j);
    return rc;
}

int drps_round_note_read(const void *bytes, size_t n, struct drps_round_note *note,
                         struct drps_epoch *done, struct drps_err *err)
{
    const unsigned char *at = bytes;
    if (n < NUMBERS_BYTES)
        return drps_err_set(err, DRPS_E_CORRUPT, "a round says nothing of how far the run was");
    const uint64_t loss = drps_get_u64(at + 8);
    *note = (struct drps_round_note){.samples = drps_get_u64(at), .ns = drps_get_u64(at + 16)};
    memcpy(&note->loss, &loss, sizeof(loss));
    if (!isfinite(note->loss))
        return drps_err_set(err, DRPS_E_CORRUPT, "the loss of a round is no finite number");
    if (n == NUMBERS_BYTES) return 0;
    note->done = done;
    return read_done((const char *)at + NUMBERS_BYTES, n - NUMBERS_BYTES, done, err);
}
