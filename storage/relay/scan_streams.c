/* The streams that a scan reads: of the store, which go on as they were, or of a saved one. */
#include "storage/relay/save.h"
#include "storage/relay/scan.h"

uint64_t drps_scan_stream_bytes(const struct drps_relay *st, size_t stream)
{
    return st->looking ? drps_saved_streams_bytes(st->restore->streams, stream)
                       : drps_streams_bytes(st->streams, stream);
}

int drps_scan_begin_stream(struct drps_relay *st, size_t stream, struct drps_err *err)
{
    if (!st->looking) return drps_streams_begin(st->streams, stream, 1, err);
    drps_saved_streams_begin(st->restore->streams, stream);
    return 0;
}

int drps_scan_read(struct drps_relay *st, void *bytes, size_t n, struct drps_err *err)
{
    return st->looking ? drps_saved_streams_take(st->restore->streams, bytes, n, err)
                       : drps_streams_take(st->streams, bytes, n, err);
}

int drps_scan_take(struct drps_scan *sc, uint32_t id, struct drps_err *err)
{
    int rc = drps_scan_read(sc->st, sc->row, sc->st->config.row_bytes, err);
    return rc == 0 ? drps_scan_put(sc, id, sc->row, err) : rc;
}

int drps_scan_end_stream(struct drps_relay *st, size_t stream, uint64_t taken, int rc,
                         struct drps_err *err)
{
    const uint64_t bytes = drps_scan_stream_bytes(st, stream);
    if (rc == 0 && taken != bytes)
        rc = drps_err_set(err, DRPS_E_CORRUPT,
                          "stream %zu holds %llu bytes, %llu are due: the plan's windows "
                          "contradict each other; make the plan anew",
                          stream, (unsigned long long)bytes, (unsigned long long)taken);
    const int ended = st->looking ? 0 : drps_streams_end(st->streams, rc ? NULL : err);
    return rc ? rc : ended;
}
