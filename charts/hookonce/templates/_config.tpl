{{/* The configuration file: config as it is written, and what follows from other values. */}}
{{- define "hookonce.config" -}}
{{- $config := deepCopy .Values.config }}
{{- if .Values.redis.enabled }}
{{- $redis := $config.redis | default dict }}
{{- $nodes := include "hookonce.redis.nodes" (dict "ctx" . "count" .Values.redis.nodes) | fromYamlArray }}
{{- $_ := set $redis "nodes" $nodes }}
{{- if .Values.redis.previousNodes }}
{{- $previous := include "hookonce.redis.nodes" (dict "ctx" . "count" .Values.redis.previousNodes) | fromYamlArray }}
{{- $_ := set $redis "previous" $previous }}
{{- end }}
{{- $_ := set $config "redis" $redis }}
{{- end }}
{{- with .Values.ledger }}
{{- if .enabled }}
{{- $ledger := dict "url" (dict "file" "/etc/hookonce/secrets/ledger-url") }}
{{- if .caKey }}
{{- $_ := set $ledger "tls" (dict "ca" "/etc/hookonce/secrets/ledger-ca.crt") }}
{{- end }}
{{- $_ := set $config "ledger" (merge ($config.ledger | default dict) $ledger) }}
{{- end }}
{{- end }}
{{- if .Values.queue.enabled }}
{{- $_ := set $config "queue" (merge ($config.queue | default dict) (include "hookonce.queue.config" . | fromYaml)) }}
{{- end }}
{{- if .Values.test.enabled }}
{{- $_ := set $config "routes" (append $config.routes (include "hookonce.test.route" . | fromYaml)) }}
{{- end }}
{{- toYaml $config }}
{{- end }}

{{- define "hookonce.redis.nodes" -}}
{{- $service := include "hookonce.redis.fullname" .ctx }}
{{- $ctx := .ctx }}
{{- range $i := until (int .count) }}
- url: {{ ternary "rediss" "redis" (ne $ctx.Values.redis.tls.existingSecret "") }}://{{ $service }}-{{ $i }}.{{ $service }}.{{ $ctx.Release.Namespace }}.svc:6379
  {{- if $ctx.Values.redis.auth.existingSecret }}
  username: hookonce
  password:
    file: /etc/hookonce/secrets/redis-password
  {{- end }}
  {{- if $ctx.Values.redis.tls.existingSecret }}
  tls:
    ca: /etc/hookonce/secrets/redis-ca.crt
  {{- end }}
{{- end }}
{{- end }}

{{/* Statuses by which an application says that it does not know the path: they too end the event, so that a copy is a duplicate. */}}
{{- define "hookonce.test.route" -}}
name: hookonce-test
path: {{ .Values.test.path }}
verify:
  scheme: hmac-sha256
  header: x-hookonce-test-signature
  signed: "{timestamp}.{body}"
  timestamp:
    header: x-hookonce-test-timestamp
secrets:
  - file: /etc/hookonce/secrets/{{ .Values.test.secretKey }}
identity:
  parts:
    - json: /id
completeOn: [301, 302, 303, 307, 308, 400, 401, 403, 404, 405, 406, 410, 411, 415, 422, 501]
retention: 1h
{{- end }}
