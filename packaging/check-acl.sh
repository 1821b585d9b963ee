#!/usr/bin/env bash
# Runs Lockgate against a Redis that has packaging/redis.acl, and fails if Redis refuses anything that Lockgate needs, or
# allows anything that it must not do.
#
#   packaging/check-acl.sh PATH/TO/lockgate
#
# Needs bash, curl, openssl and redis-server. Everything it starts and writes is gone when it ends.
set -euo pipefail

lockgate=${1:?usage: check-acl.sh PATH/TO/lockgate}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
started=()
failures=0

clean_up() {
    for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || true; done
    for pid in "${started[@]}"; do wait "$pid" 2>/dev/null || true; done
    rm -rf "$work"
}
trap clean_up EXIT

fail() { echo "FAILED: $*" >&2; failures=$((failures + 1)); }
give_up() { echo "FAILED: $*" >&2; tail -n 20 "$work"/*.log >&2 || true; exit 1; }

free_port() {
    local port
    for _ in {1..100}; do
        port=$((20000 + RANDOM % 10000))
        (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port"; return; }
    done
    give_up "found no free port"
}

# Sends lines to Redis as `user`, and prints all answers but the one to AUTH.
ask_redis() {
    local user=$1 answer
    shift
    exec 9<>"/dev/tcp/127.0.0.1/$redis_port"
    { printf 'AUTH %s %s\r\n' "$user" "$password"; printf '%s\r\n' "$@"; printf 'QUIT\r\n'; } >&9
    answer=$(timeout 10 cat <&9 | tr -d '\r')
    exec 9>&- 9<&-
    [[ $answer == +OK* ]] || give_up "$user cannot log in at Redis: $answer"
    tail -n +2 <<<"$answer"
}

# call STATUS METHOD PATH [BODY [HEADER …]]: asks a server in turn, and expects the status.
turn=0
call() {
    local expected=$1 method=$2 path=$3 body=${4:-} status
    local args=(--silent --show-error --max-time 20 --output "$work/answer" --write-out '%{http_code}')
    args+=(--request "$method" --header "Authorization: Bearer $admin")
    [[ -z $body ]] || args+=(--header 'Content-Type: application/json' --data "$body")
    local header
    for header in "${@:5}"; do args+=(--header "$header"); done
    turn=$((turn + 1))
    status=$(curl "${args[@]}" "http://127.0.0.1:${ports[turn % 2]}$path") || true
    [[ $status == "$expected" ]] || fail "$method $path: $status instead of $expected: $(cat "$work/answer")"
}

# The value of a text or number of the last answer.
field() { sed -nE "s/.*\"$1\":\"?([^\",}]+).*/\1/p" "$work/answer" | head -n 1; }

# ---- Redis with the rules, and two servers with one ledger ----

password=$(openssl rand -hex 24)
admin=$(openssl rand -hex 24)
hash=$(printf %s "$password" | openssl dgst -sha256 | sed 's/.* //')
sed "s/#0\{64\}/#$hash/" "$here/redis.acl" >"$work/users.acl"
openssl genpkey -algorithm ed25519 -out "$work/pass-key.pem" 2>/dev/null

redis_port=$(free_port)
redis-server --port "$redis_port" --bind 127.0.0.1 --dir "$work" --aclfile "$work/users.acl" \
    --appendonly yes --appendfsync always --maxmemory 256mb --maxmemory-policy noeviction >"$work/redis.log" 2>&1 &
started+=($!)
for _ in {1..100}; do
    (: <"/dev/tcp/127.0.0.1/$redis_port") 2>/dev/null && break
    kill -0 "${started[0]}" 2>/dev/null || give_up "Redis does not start with these rules"
    sleep 0.1
done

store="redis://lockgate:$password@127.0.0.1:$redis_port"
ledger="sqlite:$work/ledger.db"
ports=()
for server in 0 1; do
    ports+=("$(free_port)")
    LOCKGATE_ADMIN_TOKEN=$admin LOCKGATE_STORE=$store LOCKGATE_LEDGER=$ledger "$lockgate" serve \
        --listen "127.0.0.1:${ports[server]}" --pass-key "$work/pass-key.pem" --data "$work/data$server" \
        >"$work/server$server.log" 2>&1 &
    started+=($!)
    for _ in {1..200}; do
        [[ $(curl -s -o /dev/null -w '%{http_code}' "http://127.0.0.1:${ports[server]}/readyz") == 200 ]] && continue 2
        kill -0 "${started[-1]}" 2>/dev/null || give_up "the server does not start"
        sleep 0.1
    done
    give_up "the server does not become ready"
done

# ---- everything that can be asked for ----

call 201 PUT /v1/coupons/summer '{"quantity":3}'
call 201 POST /v1/coupons/summer/issues '{"user":"ann"}'
call 200 POST /v1/coupons/summer/issues '{"user":"ann"}'
call 200 GET /v1/coupons/summer/issues/ann
call 201 POST /v1/coupons/summer/holds '{"user":"bob","ttl_ms":60000}' "Idempotency-Key: h1"
hold=$(field hold)
call 200 GET "/v1/holds/$hold"
call 200 POST "/v1/holds/$hold/confirm" '{"user":"bob"}'
call 201 POST /v1/coupons/summer/holds '{"user":"cid","ttl_ms":60000}' "Idempotency-Key: h2"
call 200 POST "/v1/holds/$(field hold)/cancel" '{"user":"cid"}'
call 201 POST /v1/coupons/summer/holds '{"user":"dan","ttl_ms":100}' "Idempotency-Key: h3"
call 200 PUT /v1/coupons/summer '{"quantity":5}'
call 200 POST /v1/coupons/summer/pause
call 200 POST /v1/coupons/summer/resume
call 201 PUT /v1/deals/tv '{"stock":10,"per_user":4}'
call 201 POST /v1/deals/tv/purchases '{"user":"ann","quantity":2}' "Idempotency-Key: p1"
call 200 POST /v1/deals/tv/purchases '{"user":"ann","quantity":2}' "Idempotency-Key: p1"
call 409 POST /v1/deals/tv/purchases '{"user":"ann","quantity":3}' "Idempotency-Key: p2"
call 201 POST /v1/deals/tv/holds '{"user":"bob","quantity":2,"ttl_ms":60000}' "Idempotency-Key: h4"
call 200 POST "/v1/holds/$(field hold)/confirm" '{"user":"bob"}'
call 201 PUT /v1/skus/cup '{"stock":5}'
call 201 PUT /v1/skus/pot '{"stock":5}'
call 201 POST /v1/orders '{"user":"ann","items":[{"sku":"cup","quantity":2},{"sku":"pot","quantity":1}]}' "Idempotency-Key: o1"
call 200 GET "/v1/orders/$(field order)"
call 409 POST /v1/orders '{"user":"bob","items":[{"sku":"cup","quantity":9}]}' "Idempotency-Key: o2"
sleep 0.3 # dan's hold is over
call 200 GET /v1/coupons/summer
call 200 POST /v1/coupons/summer/close

opens_at=$(date -u -d '+2 seconds' +%Y-%m-%dT%H:%M:%SZ 2>/dev/null || date -u -v+2S +%Y-%m-%dT%H:%M:%SZ)
call 201 PUT /v1/lines/early "{\"batch\":1,\"every_ms\":100,\"max_active\":2,\"opens_at\":\"$opens_at\",\"prequeue\":true}"
for user in ann bob cid; do call 201 POST /v1/lines/early/tickets "{\"user\":\"$user\"}"; done
call 201 PUT /v1/lines/door '{"batch":1,"every_ms":60000,"max_active":2,"pass_ttl_ms":60000}'
tickets=()
for user in ann bob cid; do
    call 201 POST /v1/lines/door/tickets "{\"user\":\"$user\"}"
    tickets+=("$(field ticket)")
done
call 200 POST /v1/lines/door/pause
call 201 POST /v1/lines/door/admit '{"count":1}' "Idempotency-Key: a1"
call 200 POST /v1/lines/door/resume
curl -sN --max-time 3 "http://127.0.0.1:${ports[0]}/v1/lines/door/tickets/${tickets[1]}/events" >"$work/ticket.sse" || true
grep -q '^data' "$work/ticket.sse" || fail "no events of a ticket"
state=
for _ in {1..50}; do
    call 200 GET "/v1/lines/door/tickets/${tickets[0]}"
    state=$(field state)
    [[ $state == admitted ]] && break
    sleep 0.1
done
[[ $state == admitted ]] || fail "the first in line is $state"
pass=$(field pass)
call 201 PUT /v1/coupons/behind '{"quantity":3,"line":"door"}'
call 403 POST /v1/coupons/behind/issues '{"user":"ann"}'
call 201 POST /v1/coupons/behind/issues '{"user":"ann"}' "Lockgate-Pass: $pass"
call 200 POST "/v1/lines/door/tickets/${tickets[0]}/renew"
call 200 POST "/v1/lines/door/tickets/${tickets[0]}/finish"
call 200 DELETE "/v1/lines/door/tickets/${tickets[2]}"
call 200 GET /v1/lines/door
call 200 POST /v1/lines/door/close
call 204 DELETE /v1/lines/door

# Two who wait for one lock at different servers: released, broken, run out.
call 200 POST /v1/locks/till '{"owner":"ann","wait_ms":0,"lease_ms":20000}'
token=$(field token)
call 423 POST /v1/locks/till '{"owner":"eve","wait_ms":100,"lease_ms":20000}'
waiting=()
for server in 0 1; do
    curl -s -o "$work/lock$server" -w '%{http_code}' --max-time 15 -H "Authorization: Bearer $admin" \
        -H 'Content-Type: application/json' -d "{\"owner\":\"w$server\",\"wait_ms\":10000,\"lease_ms\":1500}" \
        "http://127.0.0.1:${ports[server]}/v1/locks/till" >"$work/lock$server.status" &
    waiting+=($!)
    started+=($!)
done
sleep 1
call 200 GET /v1/locks/till
call 200 POST /v1/locks/till/renew "{\"token\":\"$token\",\"lease_ms\":20000}"
curl -sN --max-time 3 -H "Authorization: Bearer $admin" "http://127.0.0.1:${ports[1]}/v1/overview/events" >"$work/overview.sse" || true
grep -q '^event: *overview' "$work/overview.sse" || fail "no overview: $(head -c 300 "$work/overview.sse")"
call 200 GET /v1/overview
call 204 DELETE /v1/locks/till '' "Lockgate-Token: $token"
for server in 0 1; do
    wait "${waiting[server]}" || true
    [[ $(cat "$work/lock$server.status") == 200 ]] || fail "waiter $server got no lock: $(cat "$work/lock$server")"
done
call 200 POST /v1/locks/drawer '{"owner":"ann","wait_ms":0,"lease_ms":20000}'
call 200 POST /v1/locks/drawer/break
drawn=
for _ in {1..50}; do
    drawn=$(curl -s -o /dev/null -w '%{http_code}' "http://127.0.0.1:${ports[0]}/v1/lines/early/audit")
    [[ $drawn == 200 ]] && break
    sleep 0.1
done
[[ $drawn == 200 ]] || fail "those who came early were not drawn: $drawn"
call 200 GET /readyz

operator() { LOCKGATE_STORE=$store LOCKGATE_LEDGER=$ledger "$lockgate" "$@" >"$work/operator.log" 2>&1 || fail "lockgate ${*:1:2}: $(cat "$work/operator.log")"; }
sleep 2 # the ledger has everything
operator audit --store "$store" --ledger "$ledger"
operator recover --store "$store" --ledger "$ledger"
operator ledger erase ann --store "$store" --ledger "$ledger"
printf 'zoe\nyan\n' >"$work/users.txt"
call 201 PUT /v1/coupons/autumn '{"quantity":9}'
operator ledger import autumn --file "$work/users.txt" --store "$store"
operator ledger purge coupon summer --older-than-days 0 --store "$store" --ledger "$ledger"

# ---- what Redis has refused: nothing ----

# CLIENT SETINFO (Redis 7.2) only tells Redis the client's name; the client does not mind a refusal.
log=$(ask_redis operator 'ACL LOG 128')
refused=$(grep -iE -A 2 '^object$' <<<"$log" | grep -vE '^(object|--|\$[0-9]+)$' | grep -vi 'client|setinfo' | sort -u || true)
[[ -z $refused ]] || fail "Redis has refused: $refused"

# ---- what it must refuse ----

for command in FLUSHALL FLUSHDB 'KEYS *' 'SCAN 0' 'CONFIG SET maxmemory 1' 'CONFIG REWRITE' 'ACL LIST' 'ACL SETUSER lockgate +@all' \
    'SCRIPT FLUSH' 'FUNCTION LIST' 'CLIENT LIST' 'CLIENT KILL TYPE normal' MONITOR SAVE BGREWRITEAOF 'SLOWLOG GET' \
    'REPLICAOF NO ONE' 'MODULE LIST' 'RENAME lg:a lg:b' 'DUMP lg:a' 'MIGRATE 127.0.0.1 1 lg:a 0 1' 'SWAPDB 0 1' 'PSUBSCRIBE *' \
    'SUBSCRIBE others' 'PUBLISH others x' 'GET others' 'SET others x' 'EVAL "return redis.call(\x27FLUSHALL\x27)" 0' \
    'EVAL "return redis.call(\x27GET\x27, \x27others\x27)" 0' 'SHUTDOWN NOSAVE'; do
    answer=$(ask_redis lockgate "$command")
    grep -qiE 'NOPERM|can.t (run|access)' <<<"$answer" || fail "not refused: $command: $answer"
done
[[ $(ask_redis probe PING | head -n 1) == +PONG ]] || fail "the probe cannot ping"
grep -q NOPERM <<<"$(ask_redis probe 'GET lg:a')" || fail "the probe may read"
exec 9<>"/dev/tcp/127.0.0.1/$redis_port"
printf 'PING\r\nQUIT\r\n' >&9
grep -q NOAUTH <<<"$(timeout 10 cat <&9)" || fail "one may come in without a password"
exec 9>&- 9<&-

# ---- what the source uses, and what the rules allow: the same ----

scripts=$here/../crates/lockgate/src/store/redis
if [[ -d $scripts ]]; then
    used=$({
        grep -rhoE "redis\.p?call\('[A-Z]+'(, *'[A-Z]+')?" "$scripts/scripts" | sed -E "s/.*\('//; s/'//g; s/, */ /" |
            sed -E '/^(XGROUP|XINFO) /!s/ .*//; s/ /|/'
        grep -rhoE 'cmd\("[A-Z]+"\)(\.arg\("[A-Z]+"\))?' "$scripts" | sed -E 's/cmd\("//; s/"\)\.arg\("/|/; s/"\)//' |
            sed -E '/^CONFIG/!s/\|.*//' | grep -v SENTINEL # which is asked elsewhere
        # The client library's own: for rooms of its own (SELECT) and for the channels.
        printf '%s\n' SELECT SUBSCRIBE UNSUBSCRIBE
    } | tr 'A-Z' 'a-z' | sort -u)
    allowed=$(grep '^user lockgate ' "$here/redis.acl" | tr ' ' '\n' | sed -n 's/^+//p' | sort -u)
    difference=$(diff <(echo "$used") <(echo "$allowed") || true)
    [[ -z $difference ]] || fail "used (<) and allowed (>) differ:
$difference"
fi

((failures == 0)) || { echo "$failures failures" >&2; tail -n 5 "$work"/server*.log >&2; exit 1; }
echo "Redis allows what Lockgate needs, and nothing else ($turn calls)"
