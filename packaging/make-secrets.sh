#!/usr/bin/env bash
# Makes the secrets that compose.yml mounts, new ones, in packaging/secrets (or the folder that is given). Does nothing to a folder
# that is there. Needs bash and openssl.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
secrets=${1:-$here/secrets}
# Nobody else looks in; the files themselves are read by the containers' own users.
mkdir -m 700 "$secrets" || { echo "$secrets is there; remove it if you want new secrets" >&2; exit 1; }
umask 022
redis_password=$(openssl rand -hex 24)
operator_password=$(openssl rand -hex 24)
postgres_password=$(openssl rand -hex 24)
sha256() { printf %s "$1" | openssl dgst -sha256 | sed 's/.* //'; }

sed -e "/^user lockgate /s/#0\{64\}/#$(sha256 "$redis_password")/" \
    -e "/^user operator /s/#0\{64\}/#$(sha256 "$operator_password")/" "$here/redis.acl" >"$secrets/users.acl"
printf %s "$operator_password" >"$secrets/redis-operator-password"
printf %s "$postgres_password" >"$secrets/postgres-password"
(umask 077; openssl genpkey -algorithm ed25519 -out "$secrets/pass-key.pem")
chmod 644 "$secrets/pass-key.pem"
cat >"$secrets/lockgate.toml" <<END
store = "redis://lockgate:$redis_password@redis:6379"
ledger = "postgres://lockgate:$postgres_password@postgres/lockgate"
admin_token = "$(openssl rand -hex 32)"
app_token = "$(openssl rand -hex 32)"
END
echo "$secrets: lockgate.toml has the tokens"
