/* The options of drps-train that are of a command line or of several processes; the others are
 * settings (api/settings/train.c). */
#include "tools/train/options.h"

#include <string.h>

#include "api/settings/drps_train_keys.h"
#include "tools/drps_metrics_options.h"

/* Returns 1: the option is taken. */
static int parse_own(struct drps_values *v, struct train_options *o, int key, const char *arg)
{
    static const char *const transports[] = {"zmq", "inproc", "mpi", NULL};
    static const char *const failures[] = {"stop", "resume", NULL};
    const struct drps_value_plain plain[] = {
        {.key = 'o', .text = &o->settings.train.model_path},
        {.key = KEY_PUBLISH, .text = &o->publish},
        {.key = KEY_PEERS, .text = &o->ranks.peers},
        {.key = KEY_KEYS, .text = &o->ranks.keys},
        {.key = KEY_MAKE_KEYS, .text = &o->make_keys},
        {.key = KEY_EMULATE, .text = &o->emulate},
        {.key = KEY_INSECURE, .flag = &o->ranks.insecure},
    };
    if (drps_value_take(v, plain, sizeof(plain) / sizeof(plain[0]), key, arg)) return 1;
    switch (key) {
    case KEY_LOCAL:
        o->local = (uint32_t)drps_value_count(v, arg, 1, DRPS_PLAN_WORKERS_MAX);
        return 1;
    case KEY_ON_FAILURE:
        o->resumes = drps_value_choice(v, arg, failures) != 0;
        return 1;
    case KEY_TRANSPORT:
        o->has_transport = 1;
        o->ranks.transport = (enum drps_ranks_transport)drps_value_choice(v, arg, transports);
        return 1;
    case KEY_RANK:
        o->has_rank = 1;
        o->ranks.rank = (uint32_t)drps_value_count(v, arg, 0, DRPS_PLAN_WORKERS_MAX - 1);
        return 1;
    case KEY_SILENCE:
        o->ranks.cut_ms = (uint32_t)drps_value_count(v, arg, 1, 3600) * 1000;
        return 1;
    case KEY_TIMEOUT:
        o->ranks.wait_ms = (uint32_t)drps_value_count(v, arg, 1, 1000000) * 1000;
        return 1;
    default:
        return 0;
    }
}

/* Over MPI a rank that is lost ends the job, and no process can take its place in it. */
static void check_mpi(const struct train_options *o, struct drps_values *v)
{
    if (o->local)
        drps_value_bad(v, "{local} starts the ranks itself, and those of {transport} mpi are "
                          "started by mpirun or srun: leave it out, or take {transport} zmq");
    if (o->ranks.peers || o->has_rank || o->ranks.keys || o->ranks.insecure)
        drps_value_bad(v, "{transport} mpi knows ranks and their machines from mpirun or srun: "
                          "{peers}, {rank}, {keys} and {insecure} are for {transport} zmq");
    if (o->resumes)
        drps_value_bad(v, "{on-failure} resume cannot be with {transport} mpi, which ends all "
                          "ranks with one that is lost: run mpirun again, with {resume}");
}

static void check_ranks(const struct train_options *o, struct drps_values *v)
{
    const int of_peers = o->ranks.keys || o->ranks.insecure;
    if (o->ranks.transport == DRPS_RANKS_MPI) {
        check_mpi(o, v);
        return;
    }
    if (o->local && o->ranks.peers)
        drps_value_bad(v, "{local} runs all ranks here, {peers} one of them: give one");
    if (o->has_rank && !o->ranks.peers)
        drps_value_bad(v, "{rank} is this process's number of several, and needs {peers} FILE; "
                          "the length of factors is set by drps-index {factors}");
    if (of_peers && !o->ranks.peers) drps_value_bad(v, "{keys} and {insecure} need {peers} FILE");
    if (o->resumes && o->settings.train.checkpoint_every.unit == DRPS_CHECKPOINT_NEVER)
        drps_value_bad(v, "{on-failure} resume goes on from checkpoints, and {checkpoint-every} "
                          "never writes none");
    if (o->resumes && o->ranks.peers && !o->settings.train.resume)
        drps_value_bad(v, "{on-failure} resume with {peers} needs {resume} on every rank: one "
                          "that is started again must be told the same as the others");
    if (o->has_transport && !o->local)
        drps_value_bad(v, "{transport} needs {local}, unless it is mpi");
}

/* One process makes the plan, of one worker. */
static void check_data(const struct train_options *o, struct drps_values *v)
{
    if (!o->data.plan) return;
    if (o->local || drps_ranks_is_one(&o->ranks) || o->has_rank)
        drps_value_bad(v, "data are trained by one process, as a plan for one worker: for {local}, "
                          "{peers} and {transport} mpi make the plan with drps-index {workers} N");
}

static void check(const struct drps_cli *cli, const struct train_options *o, struct drps_values *v)
{
    const struct drps_train_options *t = &o->settings.train;
    if (o->make_keys) return;
    if (o->publish && (o->plan || o->trains))
        drps_value_bad(v, "{publish} makes a model of what is trained already: give -o MODEL, "
                          "and of the other options {force}, {model-store} and {memory} alone");
    if (!o->publish && !o->plan)
        drps_value_bad(v, "no plan: name the folder that drps-index made, or files of data");
    if (!t->model_path) drps_value_bad(v, "-o MODEL is missing: the folder to make");
    if (o->publish) return;
    check_data(o, v);
    check_ranks(o, v);
    if (t->delta && strcmp(t->delta, "-") == 0 && (cli->json || cli->log.level > DRPS_LOG_WARN))
        drps_value_bad(v, "{export-delta} - and the report both want standard output: give the "
                          "delta a file, or leave the report out ({quiet}, without {json})");
    drps_train_settings_check(&o->settings, o->local || drps_ranks_is_one(&o->ranks), v);
}

/* Says how a model is written, which --publish takes, too. */
static int publishes(int key)
{
    return key == KEY_PUBLISH || key == 'o' || key == KEY_FORCE || key == KEY_MODEL_STORE ||
           key == KEY_MEMORY;
}

/* What drps-index has under the same names counts for both. */
static void settle_data(struct train_options *o, struct drps_values *v)
{
    struct drps_index_settings *index = &o->data.settings;
    const struct drps_train_options *t = &o->settings.train;
    index->index.seed = t->seed;
    index->index.memory_bytes = t->memory_bytes;
    index->index.metrics = t->metrics;
    train_data_settle(&o->data, t->model_path, v);
    o->plan = o->data.plan ? o->data.plan : index->inputs.n ? index->inputs.texts[0] : NULL;
}

static int parse(struct drps_cli *cli, int key, char *arg)
{
    struct train_options *o = cli->input;
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_values v = drps_cli_values(&err);
    int known = 1;
    if (key == ARGP_KEY_ARG)
        drps_value_add(&v, &o->data.settings.inputs, arg);
    else if (key == ARGP_KEY_END) {
        settle_data(o, &v);
        check(cli, o, &v);
        drps_train_settings_complete(&o->settings);
    } else {
        known = parse_own(&v, o, key, arg) ||
                metrics_option(&v, &o->settings.train.metrics, key, arg) ||
                drps_train_setting(&o->settings, &v, key, arg) ||
                train_data_option(&o->data, &v, key, arg);
        if (known && !publishes(key)) o->trains = 1;
    }
    return drps_cli_taken(cli, known, &err);
}

/* No message about a plan advises what only data have. */
static int refuses(const void *input, int key)
{
    const struct train_options *o = input;
    return train_data_has(key) && !o->data.plan;
}

void train_tool_init(struct train_tool *tool)
{
    train_data_table(tool->options);
    tool->cli = (struct drps_cli_tool){
        .name = "drps-train",
        .args_doc = "PLAN -o MODEL\nDATA... --algo NAME -o MODEL\n--publish FOLDER -o MODEL",
        .doc =
            "Train the model of a plan that drps-index made, in bounded memory; or make the plan "
            "of DATA "
            "first, and keep it as MODEL.plan.\v"
            "Prints one line an epoch. When interrupted (Ctrl-C), the current step is finished "
            "and the model so "
            "far is written, with a checkpoint from which --resume goes on; the exit status is "
            "then 130. "
            "Where a model cannot be written, what "
            "was trained stays in MODEL.trained, for --publish. DATA are text files, plain or "
            "compressed "
            "(.gz .zst .xz), or - for stdin; what --seed and --memory say counts for the plan, "
            "too.",
        .options = tool->options,
        .parse = parse,
        .refuses = refuses,
    };
}
