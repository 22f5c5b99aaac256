/* The options of drps-index that are of a command line or of several machines; the others are
 * settings (api/settings/index.c). */
#include "tools/index/options.h"

#include "api/settings/drps_index_keys.h"

#include "tools/drps_metrics_options.h"

/* Returns 1: the option is taken. */
static int parse_own(struct drps_values *v, struct index_options *o, int key, const char *arg)
{
    static const char *const transports[] = {"zmq", "mpi", NULL};
    const struct drps_value_plain plain[] = {
        {.key = 'o', .text = &o->settings.index.out},
        {.key = KEY_PEERS, .text = &o->ranks.peers},
        {.key = KEY_KEYS, .text = &o->ranks.keys},
        {.key = KEY_INSECURE, .flag = &o->ranks.insecure},
        {.key = KEY_SHARED, .flag = &o->settings.index.shared},
    };
    if (drps_value_take(v, plain, sizeof(plain) / sizeof(plain[0]), key, arg)) return 1;
    switch (key) {
    case KEY_PEER_RANK:
        o->has_rank = 1;
        o->ranks.rank = (uint32_t)drps_value_count(v, arg, 0, DRPS_REMOTE_PEERS_MAX - 1);
        return 1;
    case KEY_LOCAL:
        o->ranks.local = (uint32_t)drps_value_count(v, arg, 2, DRPS_PLAN_WORKERS_MAX);
        return 1;
    case KEY_TIMEOUT:
        o->has_waits = 1;
        o->ranks.wait_ms = (uint32_t)drps_value_count(v, arg, 1, 1000000) * 1000;
        return 1;
    case KEY_SILENCE:
        o->has_waits = 1;
        o->ranks.cut_ms = (uint32_t)drps_value_count(v, arg, 1, 3600) * 1000;
        return 1;
    case KEY_TRANSPORT:
        o->over_mpi = drps_value_choice(v, arg, transports) == 1;
        return 1;
    case KEY_LINK:
        o->link_bits = drps_value_speed(v, arg);
        return 1;
    default:
        return 0;
    }
}

int index_only_counts(const struct index_options *o)
{
    return index_has_ranks(o) && o->ranks.rank > 0 &&
           drps_index_ranks_count_alone(&o->settings.index);
}

int index_together(const struct index_options *o)
{
    return o->ranks.local ||
           (index_has_ranks(o) && !drps_index_ranks_count_alone(&o->settings.index));
}

static void check_ranks(const struct index_options *o, struct drps_values *v)
{
    const struct drps_blocks_options *blocks = &o->settings.index.blocks;
    const int of_peers = o->has_rank || o->ranks.keys || o->ranks.insecure;
    if (o->over_mpi && (o->ranks.peers || of_peers))
        drps_value_bad(v, "{transport} mpi knows ranks and their machines from mpirun or srun: "
                          "{peers}, {peer-rank}, {keys} and {insecure} are for {transport} zmq");
    else if (!index_has_ranks(o) && (of_peers || o->has_waits))
        drps_value_bad(
            v, of_peers ? "{peer-rank}, {keys} and {insecure} need {peers} FILE"
                        : "{timeout} and {silence} are for several machines: give {peers} FILE, or "
                          "{transport} mpi");
    if (index_has_ranks(o) && blocks->shards)
        drps_value_bad(v, "{shards} counts on this machine, {peers} and {transport} mpi on "
                          "several: give one");
    if (o->ranks.local && index_has_ranks(o))
        drps_value_bad(v, "{local} runs all ranks on this machine, {peers} and {transport} mpi "
                          "one: give one");
    if (o->settings.index.shared && !index_has_ranks(o))
        drps_value_bad(v,
                       "{shared} says what machines of {peers} FILE, or of {transport} mpi, read");
}

static void finish(struct index_options *o, struct drps_values *v)
{
    o->settings.index.inputs_n = o->settings.inputs.n; /* says what ranks do; filled in below */
    o->settings.only_counts = index_only_counts(o);
    drps_index_settings_check_model(&o->settings, v);
    check_ranks(o, v);
    if (!o->settings.index.out) drps_value_bad(v, "-o PLAN is missing: the folder to make");
    drps_index_settings_check_data(&o->settings, v);
    drps_index_settings_complete(&o->settings);
}

static int parse(struct drps_cli *cli, int key, char *arg)
{
    struct index_options *o = cli->input;
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_values v = drps_cli_values(&err);
    int known = 1;
    if (key == ARGP_KEY_ARG)
        drps_value_add(&v, &o->settings.inputs, arg);
    else if (key == ARGP_KEY_END)
        finish(o, &v);
    else if (metrics_option(&v, &o->settings.index.metrics, key, arg))
        known = 1; /* whatever is compiled */
    else if (!parse_own(&v, o, key, arg))
        known = drps_index_setting(&o->settings, &v, key, arg);
    else if (!drps_index_setting_is_of_plans(key))
        o->settings.of_text = 1;
    return drps_cli_taken(cli, known, &err);
}

static int refuses(const void *input, int key)
{
    const struct index_options *o = input;
    return o->settings.index.base && drps_index_setting_is_of_model(key);
}

const struct drps_cli_tool index_tool = {
    .name = "drps-index",
    .args_doc = "DATA... -o PLAN\nDATA... --base PLAN -o NEW\n--from-plan PLAN --workers N -o NEW",
    .doc = "Compile data sets into a plan for drps-train: which rows each batch touches, which "
           "rows belong "
           "together on disk, and when each row is needed next.\v"
           "DATA are text files, plain or compressed (.gz .zst .xz), or - for stdin.",
    .options = drps_index_table,
    .parse = parse,
    .refuses = refuses,
};
