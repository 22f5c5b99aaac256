#!/usr/bin/env bash
# Makes the pictures in docs/ of what drps draws, from real runs. Needs a build in build/, chromium, chromedriver and jq.
set -euo pipefail
tree=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

usage() {
    cat <<'TEXT'
Usage: scripts/screens.sh [PICTURE...]

Without arguments all pictures are made:
  report   docs/report.png, docs/report-phone.png: a page of drps-stat --html
  top      docs/drps-top.png: drps-top in a terminal of tmux, which becomes a page. Needs tmux
  metrics  docs/metrics.png: expressions of examples/grafana.json on the graph page of Prometheus. Grafana itself is
           no package of Debian, and is not shown. Needs prometheus
TEXT
}

work=$(mktemp -d)
jobs=() # processes that end with the script
trap 'end_jobs; rm -rf "$work"' EXIT
PATH=$tree/build/bin:$PATH

# report: the same model with memory for all of its rows and for a fifth of them; its upper part, and a telephone's.
report() {
    drps-gen ctr --samples 200K --fields 39 --rows 1M --interactions 4 --seed 1 -o clicks.libsvm --quiet
    drps-index clicks.libsvm --algo fm --factors 32 --test-fraction 0.1 --memory 256M -o clicks.plan --quiet
    drps-train clicks.plan -o much.model --epochs 5 --lr 0.002 --memory 512M --quiet
    drps-train clicks.plan -o little.model --epochs 5 --lr 0.002 --memory 48M --quiet
    drps-stat --html report.html much.model little.model clicks.plan --quiet
    "$tree/scripts/browser.py" report.html --width 1300 --height 1300 --png "$tree/docs/report.png"
    drps-stat --html phone.html little.model --quiet
    "$tree/scripts/browser.py" phone.html --width 320 --height 1250 --dark --png "$tree/docs/report-phone.png"
}

end_jobs() {
    if ((${#jobs[@]})); then kill -INT "${jobs[@]}" 2>/dev/null || true; fi
    wait
    jobs=()
}

# train_ranks OPTION...: four ranks train until the script ends them, out of memory, with checkpoints
train_ranks() {
    drps-gen matrix --users 100K --items 500 --ratings 400K --seed 3 -o ratings.tsv --quiet
    drps-index ratings.tsv --algo lmf --factors 64 --test-fraction 0.1 --workers 4 --order shuffled --partition range -o ratings.plan --quiet
    drps-train ratings.plan -o ratings.model --force --local 4 --store relay --memory 60M --epochs 200 --lr 0.004 --checkpoint-every 20s --quiet "$@" 2>train.txt &
    jobs+=($!)
    until grep -q '^drps_train_epoch{rank="0"} [2-9]' ratings.model.partial/metrics.prom 2>/dev/null; do kill -0 "${jobs[-1]}"; done
}

# top: a screen of 100 x 32, a minute after the job began to train
top() {
    train_ranks
    tmux -L "drps-$$" -f /dev/null new-session -d -x 100 -y 32 "TERM=screen-256color drps-top ratings.model"
    sleep 60
    tmux -L "drps-$$" capture-pane -e -p >screen.txt
    tmux -L "drps-$$" kill-server
    end_jobs
    "$tree/scripts/terminal_page.py" <screen.txt >screen.html
    "$tree/scripts/browser.py" screen.html --width 880 --height 460 --png "$tree/docs/drps-top.png"
}

# metrics: the same job, by Prometheus
metrics() {
    local port=29290 page i=0 expression
    train_ranks --metrics-port $((port + 1))
    printf '%s\n' 'global: {scrape_interval: 2s}' 'scrape_configs:' '  - job_name: drps' \
        "    static_configs: [{targets: ['127.0.0.1:$((port + 1))', '127.0.0.1:$((port + 2))', '127.0.0.1:$((port + 3))', '127.0.0.1:$((port + 4))']}]" >prometheus.yml
    prometheus --config.file=prometheus.yml --storage.tsdb.path=tsdb --web.listen-address=127.0.0.1:$port --log.level=error &
    jobs+=($!)
    sleep 120
    page="http://127.0.0.1:$port/classic/graph?"
    while read -r expression; do
        page+="g$i.range_input=2m&g$i.tab=0&g$i.expr=$(jq -rn --arg e "$expression" '$e | gsub("\\$__rate_interval"; "20s") | @uri')&"
        i=$((i + 1))
    done < <(jq -r '.panels[] | select(.title | IN("Loss", "Samples a second", "Links")) | .targets[0].expr' "$tree/examples/grafana.json")
    # The bar at the top would lie over the graphs, where the page is at the moment.
    "$tree/scripts/browser.py" "$page" --width 1000 --until "(document.querySelector('nav').hidden = true, \
        document.querySelector('nav').style.setProperty('display', 'none', 'important'), document.querySelectorAll('.rickshaw_graph svg path').length >= 4 * $i)" --png "$tree/docs/metrics.png"
    end_jobs
}

pictures=(report top metrics)
case ${1-} in
-h | --help)
    usage
    exit 0
    ;;
esac
if (($# == 0)); then set -- "${pictures[@]}"; fi
cd "$work"
for picture; do
    if [[ " ${pictures[*]} " != *" $picture "* ]]; then
        echo "screens.sh: no picture '$picture'" >&2
        usage >&2
        exit 2
    fi
    "$picture"
done
