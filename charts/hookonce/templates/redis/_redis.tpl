{{/*
A voter forgets nothing by itself: no eviction, and an append-only file. It asks nobody to save it: no replication.
Without a port in clear when there are certificates.
*/}}
{{- define "hookonce.redis.conf" -}}
dir /data
appendonly yes
appendfsync {{ .Values.redis.appendfsync }}
save ""
maxmemory {{ .Values.redis.maxmemory }}
maxmemory-policy noeviction
# Who may connect is said by the access list and by the network policy.
protected-mode no
{{- if .Values.redis.tls.existingSecret }}
port 0
tls-port 6379
tls-cert-file /etc/hookonce-redis/tls/server.crt
tls-key-file /etc/hookonce-redis/tls/server.key
tls-ca-cert-file /etc/hookonce-redis/tls/ca.crt
tls-auth-clients no
{{- else }}
port 6379
{{- end }}
{{- end }}

{{/*
Writes the access list, which holds the password's hash, to memory, and becomes the server. Gateways may touch their
own keys with the commands they use; the probe may only ask whether the node answers, and whether it is on hold.
*/}}
{{- define "hookonce.redis.start" -}}
set -eu
may='~{{ dig "redis" "prefix" "ho" .Values.config }}:* -@all +evalsha +script|load +get +set +del +pttl +info +dbsize +scan +time +ping'
{
  {{- if .Values.redis.auth.existingSecret }}
  password=$(cat /etc/hookonce-redis/auth/password)
  [ -n "$password" ]
  hash=$(printf %s "$password" | sha256sum | cut -d ' ' -f 1)
  echo "user default off"
  echo "user hookonce on #$hash $may"
  {{- else }}
  echo "user default on nopass $may"
  {{- end }}
  echo "user probe on nopass ~{{ include "hookonce.redis.unready" . }} -@all +ping +get"
} > /run/hookonce-redis/users.acl
exec {{ .Values.redis.server }} /etc/hookonce-redis/redis.conf --aclfile /run/hookonce-redis/users.acl
{{- end }}

{{/* There while gateways find the node on hold, and for ten seconds after the last of them. */}}
{{- define "hookonce.redis.unready" -}}
{{ dig "redis" "prefix" "ho" .Values.config }}:{0}:unready
{{- end }}

{{- define "hookonce.redis.ask" -}}
{{ .Values.redis.cli }} --user probe --pass probe --no-auth-warning -h 127.0.0.1 -p 6379
{{- if .Values.redis.tls.existingSecret }} --tls --insecure{{ end }}
{{- end }}

{{/*
Ready is a node whose vote counts: one that has restarted, or forgotten what it knew, is on hold, and the next one must
not be replaced before. Without a gateway there is nobody who could tell, and whoever answers is ready.
*/}}
{{- define "hookonce.redis.ready" -}}
exec:
  command:
    - sh
    - -c
    - >-
      held=$({{ include "hookonce.redis.ask" . }} get '{{ include "hookonce.redis.unready" . }}') && [ -z "$held" ]
{{- end }}

{{- define "hookonce.redis.probe" -}}
exec:
  command:
    - sh
    - -c
    - >-
      {{ include "hookonce.redis.ask" . }} ping | grep -q PONG
{{- end }}
