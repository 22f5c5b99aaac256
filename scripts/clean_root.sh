#!/usr/bin/env bash
# Installs the packages of scripts/package.sh in a Debian root that has nothing else, made by debootstrap, and uses them as a new user
# would. Needs root, debootstrap, the mirror that apt has here, and 2 GB below TMPDIR; where one is missing it says so and ends with 77.
#   scripts/clean_root.sh [--all] [FOLDER-OF-PACKAGES]        default: build-package/packages
# --all: the way through the documents, too: the quickstart, README.md, docs/guide.md and docs/python.md, in some minutes more.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
all=0
if [[ ${1-} = --all ]]; then
    all=1
    shift
fi
packages=$(realpath -m "${1:-build-package/packages}")

skip() {
    echo "SKIPPED: $*"
    exit 77
}
fail() {
    echo "FAILED: $*" >&2
    exit 1
}
((EUID == 0)) || skip "a root of its own needs root"
command -v debootstrap >/dev/null || skip "debootstrap is not installed"
compgen -G "$packages/drps_*.deb" >/dev/null || fail "$packages has no package of drps: scripts/package.sh makes them"
mirror=$(apt-get indextargets --format '$(SITE) $(RELEASE)' 2>/dev/null | awk '$2 == "bookworm" { print $1; exit }')
[[ -n $mirror ]] || skip "apt has no mirror of Debian 12 here"

root=$(mktemp -d "${TMPDIR:-/var/tmp}/drps-root.XXXXXX")
clean_up() {
    if mountpoint -q "$root/proc"; then umount "$root/proc"; fi
    rm -rf --one-file-system "$root"
}
trap clean_up EXIT
chmod 755 "$root"
(($(df --output=avail -k "$root" | tail -1) > 2000000)) || skip "$root has no room for 2 GB"
start=$SECONDS
debootstrap --variant=minbase --include=ca-certificates bookworm "$root" "$mirror" >"$root.log" 2>&1 || {
    tail -3 "$root.log"
    rm -f "$root.log"
    skip "debootstrap makes no root here"
}
rm -f "$root.log"
echo "a root of $(du -sm --one-file-system "$root" | cut -f1) MB after $((SECONDS - start)) s"

mount -t proc proc "$root/proc" || skip "a root of its own needs /proc"
inside() { env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive chroot "$root" "$@"; }
cp "$packages"/*.deb "$root/tmp/"
# Name resolution and proxies are those of this machine.
cp -L /etc/resolv.conf /etc/hosts "$root/etc/" 2>/dev/null || true
[[ ! -d /etc/apt/apt.conf.d ]] || cp -n /etc/apt/apt.conf.d/* "$root/etc/apt/apt.conf.d/" 2>/dev/null || true
# shellcheck disable=SC2046  # a word each
inside apt-get install -q -y --no-install-recommends $(cd "$root/tmp" && printf '/tmp/%s ' *.deb) gcc pkg-config >"$root/tmp/install.log" 2>&1 ||
    fail "the packages are not installed: $(tail -5 "$root/tmp/install.log")"
echo "installed after $((SECONDS - start)) s: $(inside dpkg-query -W -f '${Package} ' '*drps*')"

# ---- Used by somebody who is not root ----

xz -dc examples/abalone.csv.xz >"$root/tmp/abalone.csv"
cp examples/predict.c "$root/tmp/"
inside useradd -m user
cat >"$root/tmp/use.sh" <<'SCRIPT'
set -eu
cd ~
for tool in gen import index predict recommend stat top train; do
    drps-$tool --version >/dev/null
    test -e /usr/share/man/man1/drps-$tool.1.gz
    test -e /usr/share/bash-completion/completions/drps-$tool
done
drps-index /tmp/abalone.csv --label rings --algo lir --test-fraction 0.1 -o abalone.plan --quiet
drps-train abalone.plan -o abalone.model --lr 2 --epochs 20 --quiet
drps-predict abalone.model /tmp/abalone.csv -o scores.txt --metrics
for level in baseline avx2 avx512; do
    DRPS_INSTRUCTIONS=$level drps-train abalone.plan -o other --force --lr 2 --epochs 20 --quiet 2>err.txt || { cat err.txt; continue; }
    DRPS_INSTRUCTIONS=$level drps-predict other /tmp/abalone.csv -o other.txt --force --quiet
    cmp scores.txt other.txt
done
cc -std=c17 /tmp/predict.c $(pkg-config --cflags --libs drps) -o predict
drps-gen ctr --samples 2K -o clicks.svm --quiet
drps-index clicks.svm --algo lor -o clicks.plan --quiet
drps-train clicks.plan -o clicks.model --quiet
drps-predict clicks.model clicks.svm -o want.txt --quiet
./predict clicks.model clicks.svm >got.txt
cmp want.txt got.txt
ldd predict | grep libdrps.so.0
if dpkg-query -W python3-drps >/dev/null 2>&1; then
    python3 -c 'import drps; print("python", drps.__version__)'
fi
SCRIPT
inside su user -s /bin/sh -c 'sh -e /tmp/use.sh' || fail "the packages do not do as a new user"

# ---- The way through the documents ----

# step WHAT COMMAND: as the user, in a copy of the repository; says how long it took.
step() {
    local begin=$SECONDS
    inside su user -s /bin/bash -c "cd ~/drps && $2" >"$root/tmp/step.log" 2>&1 || fail "$1: $(tail -20 "$root/tmp/step.log")"
    echo "$1: $((SECONDS - begin)) s: $(tail -1 "$root/tmp/step.log")"
}
if ((all)); then
    begin=$SECONDS
    inside apt-get install -q -y --no-install-recommends xz-utils python3-sklearn python3-pandas python3-pytest >"$root/tmp/install.log" 2>&1 ||
        fail "what the documents need is not installed: $(tail -5 "$root/tmp/install.log")"
    echo "apt-get install xz-utils python3-sklearn python3-pandas python3-pytest: $((SECONDS - begin)) s"
    mkdir "$root/home/user/drps"
    git ls-files -z | xargs -0 cp --parents -t "$root/home/user/drps"
    inside chown -R user: /home/user/drps
    step quickstart './quickstart --bin /usr/bin'
    step "README.md and docs/guide.md" 'scripts/guide.py check --bin /usr/bin README.md docs/guide.md'
    step docs/python.md 'python3 -m pytest -q python/tests/test_guide.py'
fi

inside apt-get purge -q -y '*drps*' >"$root/tmp/purge.log" 2>&1 || fail "purge: $(tail -5 "$root/tmp/purge.log")"
left=$(inside find /usr /etc /var/lib -path /var/lib/dpkg -prune -o -path /var/lib/apt -prune -o -name '*drps*' -print)
[[ -z $left ]] || fail "left after purge: $left"
echo "ok: a clean root, in $((SECONDS - start)) s"
