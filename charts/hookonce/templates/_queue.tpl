{{/* The release's own queue: there unless the URL of another is given. */}}
{{- define "hookonce.queue.bundled" -}}
{{- if and .Values.queue.enabled (not .Values.queue.existingSecret) (not (dig "queue" "url" "" .Values.config)) }}true{{ end }}
{{- end }}

{{- define "hookonce.queue.fullname" -}}
{{- printf "%s-queue" (include "hookonce.fullname" . | trunc 46 | trimSuffix "-") }}
{{- end }}

{{/* What gateways are told of it. */}}
{{- define "hookonce.queue.config" -}}
{{- if .Values.queue.existingSecret }}
url:
  file: /etc/hookonce/secrets/queue-url
{{- else if include "hookonce.queue.bundled" . }}
url: redis://{{ include "hookonce.queue.fullname" . }}.{{ .Release.Namespace }}.svc:6379
{{- if .Values.queue.auth.existingSecret }}
username: hookonce
password:
  file: /etc/hookonce/secrets/queue-password
{{- end }}
{{- end }}
{{- end }}

{{/* What it has acknowledged is on the disk, and nothing is evicted: a delivery that was answered 202 is there only. */}}
{{- define "hookonce.queue.conf" -}}
dir /data
appendonly yes
appendfsync always
save ""
maxmemory {{ .Values.queue.maxmemory }}
maxmemory-policy noeviction
# Who may connect is said by the access list and by the network policy.
protected-mode no
port 6379
{{- end }}

{{/* Writes the access list, which holds the password's hash, to memory, and becomes the server. */}}
{{- define "hookonce.queue.start" -}}
set -eu
may='~hoq:* &* +@all -@admin -@dangerous +info +config|get +client|setname +client|list'
{
  {{- if .Values.queue.auth.existingSecret }}
  password=$(cat /etc/hookonce-queue/auth/password)
  [ -n "$password" ]
  hash=$(printf %s "$password" | sha256sum | cut -d ' ' -f 1)
  echo "user default off"
  echo "user hookonce on #$hash $may"
  {{- else }}
  echo "user default on nopass $may"
  {{- end }}
  echo "user probe on nopass -@all +ping"
} > /run/hookonce-queue/users.acl
exec {{ .Values.redis.server }} /etc/hookonce-queue/redis.conf --aclfile /run/hookonce-queue/users.acl
{{- end }}

{{- define "hookonce.queue.probe" -}}
exec:
  command:
    - sh
    - -c
    - >-
      {{ .Values.redis.cli }} --user probe --pass probe --no-auth-warning -h 127.0.0.1 -p 6379 ping | grep -q PONG
{{- end }}
