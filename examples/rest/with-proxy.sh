#!/usr/bin/env bash
# with-proxy.sh COMMAND ..: leases a proxy over REST and runs the command with it, in http_proxy and https_proxy.
# Renews the lease meanwhile; ends the command when the lease is lost, or may be. Then releases it.
# Needs bash, curl and jq, and in its environment API (https://shop.example/api) and AUTH ("Token 176e..").

answer=$(mktemp)

# call SECONDS ADDRESS BODY: leaves the answer in $answer and its status in $status; 000: there was none.
call() {
    sent=$SECONDS
    status=$(curl -s -m "$1" -o "$answer" -w '%{http_code}' \
        -H "Authorization: $AUTH" -H 'Content-Type: application/json' "$API/$2" -d "$3")
}

keep() {
    while sleep 15 && kill -0 $$; do    # if this script is killed, nobody renews, and the command ends
        call 10 leases/renew "$lease"
        case $status in
            200) ends=$((sent + $(jq '.expires_in | floor' "$answer"))) ;;
            40*) break ;;
        esac
        ((SECONDS + 15 + 10 < ends)) || break    # it could end before the next answer
    done
    kill "$command"
}

id=$(od -An -N16 -tx8 /dev/urandom | tr -d ' \n')    # if an answer is lost, the next is about the same lease
while call 40 pools/proxy/acquire "{\"timeout\": 20, \"ttl\": 60, \"request_id\": \"$id\"}"; [ "$status" != 201 ]; do
    echo "with-proxy.sh: $status $(cat "$answer")" >&2
    case $status in
        000 | 423 | 429 | 5*) sleep $((1 + RANDOM % 5)) ;;    # others are told to come again, too
        *) exit 1 ;;
    esac
done
lease=$(jq -c '{lease}' "$answer")
ends=$((sent + $(jq '.expires_in | floor' "$answer")))
proxy=$(jq -r .resource.url "$answer")

http_proxy=$proxy https_proxy=$proxy "$@" &    # for the command alone: the API is not called through it
command=$!
trap 'kill "$command" 2>/dev/null' INT TERM
keep >/dev/null 2>&1 &
keeper=$!
until wait "$command"; code=$?; ! kill -0 "$command" 2>/dev/null; do :; done
kill "$keeper" 2>/dev/null
call 10 leases/release "$lease"
rm -f "$answer"
exit "$code"
